"What a simulated disk is said to do, and what requests cost it by that."
import dataclasses, json, os, subprocess, sys

FOREBAY = os.environ.get("FOREBAY", "forebay")
SMALL, LARGE = 4 << 10, 128 << 10


@dataclasses.dataclass
class Disk:
    "The true figures, as `forebay info --disk` prints them."
    name: str
    place: str
    kind: str = "named"
    text: str = ""

    def __post_init__(self):
        report = json.loads(self.info("json"))["disks"][0]
        figures = report["figures"]
        self.read_costs, self.write_costs = (
            [(found["bytes"], found["cost"]["us"] * 1e-6) for found in report[key]] for key in ("read_costs", "write_costs"))
        self.read_iops = figures["read_iops"]
        self.read_bandwidth, self.write_bandwidth = figures["read_bandwidth"], figures["write_bandwidth"]
        # where a request goes on from the one before it, its bytes alone count
        self.seeks = "seeks: true" in self.info("properties")
        self.base = (figures["base_latency_us"] or 0) * 1e-6
        # a flush costs as much as a small write where the disk states nothing
        self.flush = figures["flush_us"] * 1e-6 if figures.get("flush_us") else self.cost(SMALL, True)
        # what the disk needs in flight at least: the base latency, or 128 KiB in the dearer direction
        self.least = max(self.base, self.cost(LARGE, False), self.cost(LARGE, True))

    def info(self, form):
        try:
            answer = subprocess.run([FOREBAY, "info", "--disk", self.place, "--format", form], capture_output=True, text=True)
        except FileNotFoundError:
            sys.exit(f"there is no `{FOREBAY}`; build it, and name it in FOREBAY")
        if answer.returncode:
            sys.exit(f"{self.name}: {answer.stderr.strip()}")
        return answer.stdout

    def cost(self, size, is_write, goes_on=False):
        "Seconds of disk time: the price at the printed sizes, and a straight line between them."
        if goes_on and self.seeks:
            return size / (self.write_bandwidth if is_write else self.read_bandwidth)
        costs = self.write_costs if is_write else self.read_costs
        (small, cheap), (large, dear) = next(
            (pair for pair in zip(costs, costs[1:]) if size <= pair[1][0]), (costs[-2], costs[-1]))
        return cheap + (dear - cheap) * (size - small) / (large - small)

    def is_slow(self):
        "Seeks, or so few operations that the window takes seconds to settle."
        return self.read_iops < 1000
