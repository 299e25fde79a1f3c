"""Simulated disks by seed: five kinds in turn, each a disk file that `--disk` takes.

Every figure is drawn on a logarithmic scale between the bounds that stand here. Only `Random.random` is used:
its values for a seed are the same in every version of Python.
"""
import dataclasses, math, random

KINDS = ("surface", "flash", "cloud", "hdd", "raid0")
MIB = 1 << 20
# a run of a faster disk takes minutes, and shows nothing that this one does not
READS_MOST = 1_000_000
# the bandwidth is at most this for each read per second
BYTES_PER_READ = 64 << 10
# where the disk is to be slow, there are fewer members rather than slower ones
MEMBER_READS = 2000


@dataclasses.dataclass(frozen=True)
class Generated:
    "The disk file of a seed, and those of its members."
    name: str
    kind: str
    files: dict


class Draw:
    "Figures of a seed."

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def between(self, least, most):
        "Even on a logarithmic scale."
        return math.exp(math.log(least) + (math.log(most) - math.log(least)) * self.chance.random())

    def even(self, least, most):
        return least + (most - least) * self.chance.random()

    def whole(self, least, most):
        return min(most, math.floor(self.between(least, most + 1)))

    def one_of(self, values):
        return values[math.floor(self.chance.random() * len(values))]

    def chance_of(self, part):
        return self.chance.random() < part


def nanos(seconds):
    return f"{max(1, round(seconds * 1e9))}ns"


def sectors(size):
    "Bytes, a multiple of 4 KiB."
    return max(1, round(size / 4096)) * 4096


def text(kind, **keys):
    lines = [f"kind: {kind}", "source: made up, by a seed"]
    return "\n".join(lines + [f"{key}: {value}" for key, value in keys.items()]) + "\n"


def surface(draw, most):
    "A region with an exponent from 1 (a straight line) to 16 (nearly a square), and a base latency of 60 us to 3 ms."
    latency = draw.between(60e-6, 3e-3)
    # the disk is busy with 2 to 200 requests in flight
    reads = min(most, max(500, draw.between(2, 200) / latency))
    dies = draw.whole(1, 64)
    die_read = draw.even(0.2, 0.8) * min(latency, dies / reads)
    return text(
        "surface", read_iops=round(reads), write_bandwidth=round(min(draw.between(60e6, 5e9), most * BYTES_PER_READ)),
        exponent=f"{draw.between(1, 16):.3f}", read_latency=nanos(latency), write_latency=nanos(latency * draw.between(0.3, 2)),
        jitter=nanos(latency * draw.even(0.02, 0.2)), dies=dies, die_read=nanos(die_read), turn=nanos(die_read * draw.even(0, 0.1)),
        program=nanos(draw.between(20e-6, 1e-3)), program_share=f"{draw.even(0, 0.5):.3f}", slack=nanos(draw.between(3e-6, 3e-3)))


def flash(draw, most):
    "A write buffer of 8 MB to 5 GB; two in three stand still now and then to collect garbage."
    page_read = max(draw.between(40e-6, 250e-6), 1 / most)
    dies = max(1, min(draw.whole(8, 128), math.floor(most * page_read)))
    bandwidth = min(draw.between(500e6, 7e9), most * BYTES_PER_READ)
    program = bandwidth * draw.even(0.25, 0.9)
    keys = dict(
        capacity="512GB", read_command=nanos(draw.between(0.5e-6, 4e-6)), write_command=nanos(draw.between(0.5e-6, 4e-6)),
        bandwidth=round(bandwidth), read_latency=nanos(draw.between(5e-6, 30e-6)), write_latency=nanos(draw.between(4e-6, 30e-6)),
        dies=dies, page=draw.one_of(("4kB", "16kB", "32kB")), page_read=nanos(page_read), program_bandwidth=round(program),
        suspend=nanos(draw.between(20e-6, 300e-6)), write_buffer=sectors(draw.between(8 * MIB, 5 * 1024 * MIB)))
    if draw.chance_of(2 / 3):
        # 2 to 30 % of the time in which as much is written
        every = draw.between(128 * MIB, 8192 * MIB)
        keys |= dict(collect_every=sectors(every), collect_pause=nanos(min(0.1, every / program * draw.between(0.02, 0.3))))
    return text("flash", **keys)


def cloud(draw, most):
    "A volume with a cap on operations and one on bytes; half of them have credits for 1 to 1,800 s of a burst."
    operations = draw.between(300, min(most, 100_000))
    latency = draw.between(200e-6, 3e-3)
    keys = dict(
        capacity="500GB", iops=round(operations), bandwidth=round(operations * draw.between(12 << 10, 400 << 10)),
        latency=nanos(latency), jitter=nanos(latency * draw.even(0.1, 0.5)))
    if draw.chance_of(0.5):
        burst = operations * draw.between(2, 10)
        keys |= dict(burst_iops=round(burst), burst_credits=round(burst * draw.between(1, 1800)))
    return text("cloud", **keys)


def hdd(draw, _most):
    "A head over a platter."
    return text(
        "hdd", capacity=f"{draw.whole(500, 18_000)}GB", rpm=draw.one_of((5400, 5900, 7200, 10_000, 15_000)),
        seek_min=nanos(draw.between(0.5e-3, 2e-3)), seek_max=nanos(draw.between(8e-3, 25e-3)),
        bandwidth=round(draw.between(80e6, 280e6)), queue=draw.one_of((4, 8, 16, 32, 64)))


def generate(seed, kinds=KINDS, most=READS_MOST):
    "The disk of a seed, of the kind whose turn it is, with at most `most` reads per second."
    draw = Draw(seed)
    kind = kinds[seed % len(kinds)]
    name = f"generated-{seed}-{kind}" + ("" if most == READS_MOST else f"-{most}")
    if kind != "raid0":
        return Generated(name, kind, {f"{name}.yaml": MAKE[kind](draw, most)})
    members = min(draw.whole(2, 8), max(2, round(most / MEMBER_READS)))
    member = draw.one_of(("surface", "flash", "flash"))
    files = {f"{name}-member.yaml": MAKE[member](draw, most / members)}
    places = ", ".join([f"{name}-member.yaml"] * members)
    files[f"{name}.yaml"] = text("raid0", chunk=draw.one_of(("64kB", "128kB", "256kB", "512kB", "1MB")), members=f"[{places}]")
    return Generated(name, kind, files)


MAKE = {"surface": surface, "flash": flash, "cloud": cloud, "hdd": hdd}
