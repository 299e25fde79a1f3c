"The command: which cells are run, and what is printed of them."
import argparse, collections, concurrent.futures, os, pathlib, sys, tempfile, time
from . import generated, loads, page, settings
from .disks import Disk
from .judge import CRITERIA, JUDGED, Cell
from .runs import Plan, Runner

PRESETS = pathlib.Path(__file__).resolve().parents[3] / "lab/forebay-sim/presets"
CONFIRMING = range(6, 11)
OFF = "off the frontier by a, b or c"
# a debug build simulates some 45,000 requests per second of processor time: the disks are slow ones
SMOKE_DISKS, SMOKE_READS, SMOKE_LOADS = 10, 6000, "ABC"


def options_of(doc):
    parser = argparse.ArgumentParser(prog="frontier", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("disks", nargs="*", metavar="DISK")
    parser.add_argument("--judge", default="", metavar="OPTIONS", help="options of sim run for the setting that is judged; none are the default")
    parser.add_argument("--generated", type=int, default=0, metavar="N", help="disks by seed instead of named ones")
    parser.add_argument("--from", type=int, default=1, metavar="SEED", dest="first", help="the first seed (1)")
    parser.add_argument("--kinds", default=",".join(generated.KINDS), help="kinds of generated disks, in turn")
    parser.add_argument("--keep-disks", metavar="DIR", help="write generated disks here")
    parser.add_argument("--loads", default="ABCDEFGHI", help="letters; H is H1 to H4")
    parser.add_argument("--shards", default="4", metavar="N,...", help="other numbers than the first are for A and B only")
    parser.add_argument("--settings", type=int, choices=settings.COUNTS, help="how many rivals (41; 12 for generated disks)")
    parser.add_argument("--seeds", type=int, help="rivals are chosen by medians over these (5; 1 for generated disks)")
    parser.add_argument("--seconds", type=float, help="the shortest run, in virtual seconds (4; 1 for generated disks)")
    parser.add_argument("--warm-up", type=float, help="before measuring (2 s; 1 s for generated disks; 10 s where a disk is slow)")
    parser.add_argument("--quick", action="store_true", help="one seed, and no second comparison")
    parser.add_argument("--rivals", metavar="FILE", help="keep what the other settings did here, and do not run them again")
    parser.add_argument("--page", metavar="FILE.html", help="write charts")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--smoke", action="store_true", help="ten slow generated disks, five rivals: fails where too many cells are dominated or not served")
    parser.add_argument("--dominated-most", type=float, metavar="PERCENT", default=5, help="with --smoke (5)")
    parser.add_argument("--unserved-most", type=float, metavar="PERCENT", default=0, help="with --smoke (0)")
    options = parser.parse_args()
    if options.smoke:
        options.generated, options.loads, options.quick = SMOKE_DISKS, SMOKE_LOADS, True
        options.settings = options.settings or 5
    few = options.generated > 0
    options.settings = options.settings or (12 if few else 41)
    options.seeds = 1 if options.quick else options.seeds or (1 if few else 5)
    options.seconds = options.seconds or (1 if few else 4)
    options.warm_up = options.warm_up if options.warm_up is not None else (1 if few else 2)
    options.shards = [int(count) for count in options.shards.split(",")]
    options.loads = [name for name in loads.NAMES if name[0] in options.loads]
    return options


def generated_disks(options, folder):
    kinds = options.kinds.split(",")
    most = SMOKE_READS if options.smoke else generated.READS_MOST
    for seed in range(options.first, options.first + options.generated):
        made = generated.generate(seed, kinds, most)
        for name, text in made.files.items():
            (folder / name).write_text(text)
        place = folder / f"{made.name}.yaml"
        yield Disk(made.name, str(place), made.kind, "\n".join(made.files.values()))


def disks(options, folder):
    if options.generated:
        return list(generated_disks(options, folder))
    names = options.disks or sorted(path.stem for path in PRESETS.glob("*.yaml"))
    text = lambda name: pathlib.Path(name).read_text() if pathlib.Path(name).is_file() else ""
    return [Disk(name, name, text=text(name)) for name in names]


class Comparison:
    "Runs cells, and counts what the judged setting misses."

    def __init__(self, options, pool):
        self.options, self.pool = options, pool
        self.runner = Runner(options.rivals)
        self.cells, self.missed = 0, collections.Counter()
        self.by_kind = collections.defaultdict(collections.Counter)
        self.shown = []

    def run(self, disk, load, names, seeds):
        plan = Plan(disk, load, self.options.seconds, self.options.warm_up, by_p95=self.options.smoke)
        tasks = {(JUDGED, seed): self.pool.submit(self.runner.run, disk, load, (JUDGED, self.options.judge.split()), plan, seed, False) for seed in seeds}
        for name, options in names:
            tasks |= {(name, seed): self.pool.submit(self.runner.run, disk, load, (name, options), plan, seed, True) for seed in seeds}
        found = collections.defaultdict(list)
        for (name, _), task in tasks.items():
            found[name].append(task.result())
        if None in found[JUDGED]:
            sys.exit(f"{disk.name}, load {load.name}: `{self.options.judge}` is refused")
        return Cell(load, found)

    def compare(self, disk, load):
        began = time.monotonic()
        names = settings.rivals(disk, self.options.settings)
        cell = self.run(disk, load, names, range(1, self.options.seeds + 1))
        missed, judged_by = cell.judge(), cell
        first = list(missed)
        if missed and not self.options.quick:
            chosen = cell.chosen(missed)
            judged_by = self.run(disk, load, [one for one in names if one[0] in chosen], CONFIRMING)
            again = judged_by.judge()
            missed = {criterion: again[criterion] for criterion in missed if criterion in again}
        self.cells += 1
        for criterion in (*missed, *[OFF for _ in {"a", "b", "c"} & missed.keys()][:1]):
            self.missed[criterion] += 1
            self.by_kind[disk.kind][criterion] += 1
        self.by_kind[disk.kind]["cells"] += 1
        verdict = "; ".join(judged_by.explain(criterion, by) for criterion, by in missed.items())
        if not missed:
            verdict = f"ok; on the first seeds alone: {', '.join(first)}" if first else "ok"
        this = cell.median[JUDGED]
        print(f"{disk.name:24} {load.name:2} {load.shards:2} {line(cell, this)}  {time.monotonic() - began:5.1f} s  {verdict}", flush=True)
        self.shown.append((disk, cell, missed, verdict))

    def summary(self):
        text = lambda counts: ", ".join(f"{criterion} {counts[criterion]}" for criterion in (*CRITERIA, OFF))
        yield f"{self.cells} cells: {text(self.missed)}"
        if len(self.by_kind) > 1:
            for kind, counts in sorted(self.by_kind.items()):
                yield f"  {kind}, {counts['cells']} cells: {text(counts)}"


def line(cell, row):
    "Rates and latencies of the judged setting."
    bulk = sum(found.bandwidth for name, found in row.classes.items() if name != cell.load.judged)
    judged = row.classes[cell.load.judged]
    return (f"{row.total:6.3f} of the disk  {bulk / 1e6:8.1f} MB/s {judged.iops:9.0f}/s  "
            f"{cell.low_name()} {row.low:8.2f}  {cell.high_name()} {row.high:8.2f} ms")


def failures(options, comparison):
    "What a smoke test does not let pass."
    for criterion, most in (("dominated", options.dominated_most), ("served", options.unserved_most)):
        part = 100 * comparison.missed[criterion] / comparison.cells
        if part > most:
            yield f"{criterion}: {part:.0f} % of the cells; at most {most:g} % may be"


def main(doc):
    options = options_of(doc)
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        folder = pathlib.Path(options.keep_disks or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(options, pool)
        for disk in disks(options, folder):
            for index, shards in enumerate(options.shards):
                for name in options.loads:
                    if index == 0 or name in ("A", "B"):
                        comparison.compare(disk, loads.make(disk, name, shards))
    print(*comparison.summary(), sep="\n")
    if options.page:
        pathlib.Path(options.page).write_text(page.html_page(options.judge, comparison.shown))
    if options.smoke:
        failed = list(failures(options, comparison))
        print(*failed, sep="\n", file=sys.stderr)
        sys.exit(1 if failed else 0)
