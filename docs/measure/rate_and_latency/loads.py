"""The loads: job files that are made for a disk.

A to E are two classes, `reads` and `bulk`. A has reads at 20 % of what the disk does and sequential writes without
bound; B both without bound; C reads at 40 % and writes at 30 %; D is A with random writes of 16 KiB; E has reads
at 5 % and a scan without bound. F is A with writes that come in bursts, 200 ms of every 500. G has a `log`, which
appends 16 KiB at 5 % of the disk and flushes after each, alongside sequential writes without bound. H1 to H4 are one
to four requests in all: a read, a read and a write of 128 KiB, two reads and a write, two of each. I is eight
classes: reads at 10 %, and seven without bound whose shares are 100 to 400.

The judged class is `log` in G, and `reads` in all others.
"""
import dataclasses
from .disks import LARGE, SMALL

NAMES = ("A", "B", "C", "D", "E", "F", "G", "H1", "H2", "H3", "H4", "I")
# closed classes of load I: kind, size of requests, shares
EIGHT = (("randread", 4, 100), ("randread", 16, 200), ("seqread", 128, 200), ("randwrite", 4, 100),
         ("randwrite", 16, 200), ("seqwrite", 64, 200), ("seqwrite", 128, 400))

SEQUENTIAL = ("seqread", "seqwrite", "append")


@dataclasses.dataclass
class Load:
    "A job file, and what is judged about it."
    name: str
    judged: str
    shards: int
    # whether the closed classes want all of the disk, so that shares decide
    by_shares: bool = False
    # whether each class counts by itself, since no sum is fair
    by_class: bool = False
    text: str = ""
    # disk time of a request, in seconds, and its size
    costs: dict = dataclasses.field(default_factory=dict)
    sizes: dict = dataclasses.field(default_factory=dict)
    # classes with a rate: requests per second that are asked for
    asked: dict = dataclasses.field(default_factory=dict)
    # classes without one: shares
    closed: dict = dataclasses.field(default_factory=dict)

    def add(self, disk, name, kind, size, shares, fibers, rate=None, where="all", extra="", options=()):
        "A class of one job; a rate is per second and fiber."
        is_write = "read" not in kind
        self.costs[name] = disk.cost(size, is_write, goes_on=kind in SEQUENTIAL)
        self.sizes[name] = size
        places = self.shards if where == "all" else len(where)
        if rate:
            self.asked[name] = rate * fibers * places
        else:
            self.closed[name] = shares
        where = where if where == "all" else list(where)
        pace = f"rps: {rate}, " if rate else ""
        options = "".join(f", options: {{{', '.join(options)}}}" for _ in options[:1])
        self.text += (f"- {{name: {name}, type: {kind}, shards: {where}, shard_info: {{parallelism: {fibers}, {pace}"
                      f"reqsize: {size >> 10}kB, shares: {shares}{extra}}}{options}}}\n")

    def add_paced(self, disk, name, kind, size, shares, rate, fibers_most, options=()):
        "A class that comes by chance, at a rate over all shards."
        fibers, where = fibers_most, "all"
        # a fiber does whole requests per second, at least one: fewer fibers come nearer
        while fibers > 1 and rate / self.shards / fibers < 2 / 3:
            fibers //= 2
        if rate < self.shards / 2:
            where = range(max(1, round(rate)))
        places = self.shards if where == "all" else len(where)
        each = max(1, round(rate / places / fibers))
        self.add(disk, name, kind, size, shares, fibers, each, where, options=("pause_distribution: poisson", *options))

    def judged_rate(self, disk):
        "About how many requests per second the judged class has."
        if self.judged in self.asked:
            return self.asked[self.judged]
        if self.by_shares:
            return disk.read_iops * 0.4
        return 0.4 / max(disk.base, 1 / disk.read_iops)

    def judges_bulk(self):
        "Whether the bulk's own latency is a criterion."
        return self.name in ("A", "D", "E")


def make(disk, name, shards):
    "A load for a disk."
    wants_all = name in ("B", "I")
    # what a request costs a disk that seeks depends on the one before it: no price is true for long
    load = Load(name, "log" if name == "G" else "reads", shards, by_shares=wants_all and not disk.seeks,
                by_class=wants_all and disk.seeks or name.startswith("H"))
    fibers = 100 if disk.read_iops >= 3000 else 4

    def reads(part, shares):
        load.add_paced(disk, "reads", "randread", SMALL, shares, disk.read_iops * part, fibers)

    def bulk(kind, size, fibers, shares, **more):
        load.add(disk, "bulk", kind, size, shares, fibers, **more)

    if name == "A":
        reads(0.2, 100)
        bulk("seqwrite", LARGE, 16, 100)
    elif name == "B":
        load.add(disk, "reads", "randread", SMALL, 500, 64)
        bulk("seqwrite", LARGE, 16, 500)
    elif name == "C":
        reads(0.4, 1000)
        bulk("seqwrite", LARGE, 16, 100, rate=max(1, round(disk.write_bandwidth * 0.3 / LARGE / shards / 16)))
    elif name == "D":
        reads(0.2, 1000)
        bulk("randwrite", 16 << 10, 64, 100)
    elif name == "E":
        reads(0.05, 1000)
        bulk("seqread", LARGE, 16, 100)
    elif name == "F":
        reads(0.2, 100)
        bulk("seqwrite", LARGE, 16, 100, extra=", think_after: 200ms, think_time: 300ms")
    elif name == "G":
        commit = disk.cost(16 << 10, True, goes_on=True) + disk.flush
        load.add_paced(disk, "log", "append", 16 << 10, 1000, min(0.05 / commit, 2000), 16, ("fsync_every: 1",))
        load.costs["log"] = commit
        bulk("seqwrite", LARGE, 16, 100)
    elif name == "I":
        reads(0.1, 1000)
        for index, (kind, kib, shares) in enumerate(EIGHT):
            load.add(disk, f"{kind}-{index + 2}", kind, kib << 10, shares, 32)
    else:
        requests = int(name[1])
        at = [index % shards for index in range(requests)]
        reading = max(1, requests // 2 + requests % 2)
        few(load, disk, "reads", "randread", SMALL, at[:reading])
        if requests > 1:
            few(load, disk, "bulk", "seqwrite", LARGE, at[reading:])
    return load


def few(load, disk, name, kind, size, places):
    "One request at a time on each place; places may be the same."
    where = sorted(set(places))
    load.add(disk, name, kind, size, 100, len(places) // len(where), where=where)
