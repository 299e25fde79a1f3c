"""A half is rounded up to a whole number; of a fraction the numerator alone is doubled, and the denominator for a half.

Worse is, in the median over the seeds and at each seed: 2 % less of the disk time served or of the requests of a class;
a p99 longer by 20 % (the mean where a class has fewer than 1,000 requests); a part of the disk time of the classes
without bound that is farther from the shares by 5 %; a test that fails, or an invariant that the swarm finds broken. A row has failed tests by module, and of
each kind of figure the worst; the names of tests go to the error output.
"""
import argparse, collections, json, os, pathlib, re, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES, PRESETS = pathlib.Path("crates/forebay-core/src"), pathlib.Path("lab/forebay-sim/presets")
DISKS, LOADS, SHARDS = ("samsung-850-pro", "gp3", "hdd-7200rpm", "four-channels", "gcp-pd-SSD-2TB"), "ABCI", 4
SEEDS = (1, 2, 3)
# requests that a disk does alone in what is measured, the bounds of that in virtual seconds, and the time before it
REQUESTS, SECONDS, WARM_UP, WARM_UP_SLOW = 60_000, (1, 30), 1, 10
RATE, LATENCY, SHARE = 0.02, 0.2, 0.05
P99_REQUESTS = 1000
SWARM = 300
# a property test that fails looks for a small case for minutes
TESTS_SECONDS = 600
# the same cases of property tests for each build, and no file of those that fail
CASES = {"PROPTEST_RNG_SEED": "1", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
FRACTIONS = ("IDLE_BUDGET", "COALESCE_SINGLE_SHARD", "COALESCE_SHARED")
PROFILE = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16", "CARGO_PROFILE_RELEASE_DEBUG": "0",
           "CARGO_INCREMENTAL": "1"}
# what no simulated request passes through, and takes long to compile
UNUSED = ("forebay", "forebay-block", "forebay-check", "forebay-cli", "forebay-experiments", "forebay-explore", "forebay-growth",
          "forebay-serve", "forebay-trace", "forebay-tune")
Plan = collections.namedtuple("Plan", "seconds warm_up")


def changed(name, value, factor):
    "The expression of a constant that is half as large or twice; `None` where it stays the same."
    inner = re.fullmatch(r"(DiskTime::from_nanos)\((.*)\)", value)
    if inner:
        return f"{inner[1]}({changed(name, inner[2], factor)})"
    if value.startswith("("):
        numbers = [number.strip() for number in value[1:-1].split(",")]
        if name in FRACTIONS:
            numbers[0 if factor == 2 else 1] = changed(name, numbers[0 if factor == 2 else 1], 2)
        else:
            numbers = [changed(name, number, factor) or number for number in numbers]
        return f"({', '.join(numbers)})"
    if re.fullmatch(r"[\d_]+", value):
        number = int(value.replace("_", ""))
        other = number * 2 if factor == 2 else (number + 1) // 2
        return None if other == number else f"{other:_}"
    return f"({value}) * 2" if factor == 2 else f"({value}) / 2"


def declaration(name):
    return re.compile(rf"(\bconst {name}: [^=;]+ =\s*)([^;]+)(;)")


class Build:
    "A checkout in a folder of its own, and what is built of it."

    def __init__(self, folder):
        self.checkout, self.target = folder / "checkout", folder / "target"
        self.program = self.target / "release/forebay"
        self.commit, self.sources = (
            subprocess.run(["git", "rev-parse", what], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
            for what in ("HEAD", "HEAD:crates"))
        if self.checkout.exists():
            self.git("checkout", "--quiet", "--force", "--detach", self.commit)
        else:
            self.git("worktree", "add", "--quiet", "--detach", self.checkout, self.commit, cwd=ROOT)

    def git(self, *words, cwd=None):
        subprocess.run(["git", *map(str, words)], cwd=cwd or self.checkout, check=True)

    def close(self):
        self.git("worktree", "remove", "--force", self.checkout, cwd=ROOT)

    def cargo(self, *words):
        environment = os.environ | PROFILE | {"CARGO_TARGET_DIR": str(self.target)}
        plain = [word for name in UNUSED for word in ("--config", f"profile.release.package.{name}.opt-level=0")]
        return subprocess.run(["cargo", *plain, *words], cwd=self.checkout, env=environment, capture_output=True, text=True)

    def value(self, path, name):
        "The expression of a constant."
        found = declaration(name).search((self.checkout / SOURCES / path).read_text())
        if not found:
            sys.exit(f"there is no constant {name} in {SOURCES / path}")
        return " ".join(found[2].split())

    def set(self, path, name, value):
        "What the constant was before."
        file = self.checkout / SOURCES / path
        file.write_text(declaration(name).sub(lambda found: found[1] + value + found[3], file.read_text(), count=1))

    def reset(self):
        self.git("checkout", "--quiet", "--", SOURCES)

    def measure(self):
        "What the present sources do."
        built = self.cargo("build", "--release", "--quiet", "-p", "forebay-cli")
        if built.returncode:
            return {"failed": ["it does not build"], "rows": {}}
        failed = self.failed_tests()
        swarm = subprocess.run([str(self.program), "sim", "swarm", str(SWARM), "--seed", "0"], capture_output=True, text=True)
        if swarm.returncode:
            failed.append("swarm: " + next((line[2:] for line in swarm.stdout.splitlines() if line.startswith("# ")), "?"))
        return {"failed": failed, "rows": cells(self.program)}

    def failed_tests(self):
        "Names of tests in virtual time that fail, and of those that do not end, which are marked."
        built = self.cargo("test", "--release", "-p", "forebay-core", "--test", "virtual_time", "--no-run")
        found = re.search(r"Executable .*\((.*)\)", built.stderr)
        if built.returncode or not found:
            return ["the tests do not build"]
        program = self.target.parent / found[1]
        names = re.findall(r"^(.*): test$", subprocess.run([program, "--list"], capture_output=True, text=True).stdout, re.MULTILINE)
        with tempfile.TemporaryFile("w+") as output:
            try:
                subprocess.run([program], stdout=output, stderr=subprocess.STDOUT, cwd=self.checkout / "crates/forebay-core",
                               env=os.environ | CASES, timeout=TESTS_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            output.seek(0)
            ended = dict(re.findall(r"^test (.*) \.\.\. (ok|FAILED)$", output.read(), re.MULTILINE))
        failed = [name for name in names if ended.get(name) == "FAILED"]
        return failed + [f"unfinished:{name}" for name in names if name not in ended]


def cells(program):
    "By disk, load and seed, the figures of each class."
    # the modules ask a program what a disk does, which no constant changes
    os.environ["FOREBAY"] = str(program)
    from . import disks, loads, runs
    runner, rows = runs.Runner(None), {}
    for name in DISKS:
        disk = disks.Disk(name, str(ROOT / PRESETS / f"{name}.yaml"))
        seconds = min(max(REQUESTS / disk.read_iops, SECONDS[0]), SECONDS[1])
        plan = Plan(seconds, WARM_UP_SLOW if disk.is_slow() else WARM_UP)
        for letter in LOADS:
            load = loads.make(disk, letter, SHARDS)
            for seed in SEEDS:
                classes = runner.run(disk, load, ("default", []), plan, seed, False)
                rows[f"{name} {letter} {seed}"] = dict(figures(load, classes))
    return rows


def figures(load, classes):
    "Names of figures, each with its value; more is better, except of latencies and distances from shares."
    times = {name: found.iops * load.costs[name] for name, found in classes.items()}
    yield "disk time", sum(times.values())
    for name, found in classes.items():
        yield f"rate {name}", found.iops
        yield (f"p99 {name}", found.p99) if found.requests >= P99_REQUESTS else (f"mean {name}", found.mean)
    if load.by_shares:
        total, shares = sum(times[name] for name in load.closed) or 1, sum(load.closed.values())
        for name, part in load.closed.items():
            yield f"share {name}", abs(times[name] / total / (part / shares) - 1)


def worse(kind, before, after):
    "By how much a figure is worse, if that is too much: a part, and the text."
    if kind == "share":
        by, most = after - before, SHARE
    elif kind in ("p99", "mean"):
        by, most = after / max(before, 1e-9) - 1, LATENCY
    else:
        by, most = 1 - after / max(before, 1e-9), RATE
    return by if by > most else 0


def compared(before, after):
    "What got worse, the clearest first."
    found = collections.defaultdict(list)
    for cell in sorted({key.rsplit(" ", 1)[0] for key in before["rows"]}):
        seeds = [(before["rows"][f"{cell} {seed}"], after["rows"].get(f"{cell} {seed}", {})) for seed in SEEDS]
        for figure in seeds[0][0]:
            pairs = [(this[figure], other[figure]) for this, other in seeds if figure in this and figure in other]
            kind = figure.split()[0]
            if len(pairs) < len(SEEDS) or not all(worse(kind, *pair) for pair in pairs):
                continue
            by = worse(kind, *(statistics.median(values) for values in zip(*pairs)))
            if by:
                found[kind].append((by, cell, figure.split(" ", 1)[1]))
    failed = [name for name in after["failed"] if name not in before["failed"]]
    return failed, {kind: sorted(each, reverse=True) for kind, each in found.items()}


def text(failed, found):
    "The same in a few words: failed tests by their module, and of each kind of figure the one that is worst."
    modules = collections.Counter(name.split(":")[0] for name in failed)
    words = [f"{module} {count}" for module, count in modules.items()]
    for kind, each in found.items():
        by, cell, name = each[0]
        sign, name = ("-", "" if kind == "disk" else f" {name}") if kind in ("disk", "rate") else ("+", f" {name}")
        rest = f", {len(each) - 1} more" if each[1:] else ""
        words.append(f"{'disk time' if kind == 'disk' else kind} {sign}{100 * by:.0f} % ({cell}{name}{rest})")
    return "; ".join(words) or "nothing"


def of_page():
    "The constants of the table of docs/scheduler.md."
    page = (ROOT / "docs/scheduler.md").read_text()
    return [f"{path}:{name}" for name, path in re.findall(r"^\| `([A-Z_0-9]+)` in `([a-z_0-9/]+\.rs)` \|", page, re.MULTILINE)]


def main(doc):
    parser = argparse.ArgumentParser(prog="constants", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("constants", nargs="*", metavar="FILE:CONSTANT")
    parser.add_argument("--folder", metavar="DIR", help="build here, and leave it for the next time")
    parser.add_argument("--results", metavar="FILE", help="keep what was measured here, and do not measure it again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        build = Build(pathlib.Path(options.folder or temporary).resolve())
        try:
            compare(build, options)
        finally:
            build.reset() if options.folder else build.close()


def compare(build, options):
    file = options.results and pathlib.Path(options.results)
    known = dict(map(json.loads, file.read_text().splitlines())) if file and file.exists() else {}

    def measured(what):
        key = f"{build.sources[:12]} {what}"
        if key not in known:
            known[key] = build.measure()
            if file:
                with file.open("a") as lines:
                    lines.write(json.dumps([key, known[key]]) + "\n")
        return known[key]

    before = measured("as it is")
    print("as it is:", *(before["failed"] or ["no test fails"]), sep=" ", flush=True)
    print("| constant | halved | doubled |\n|---|---|---|", flush=True)
    for constant in options.constants or of_page():
        path, name = constant.split(":")
        value, columns = build.value(path, name), []
        for factor in (0.5, 2):
            other = changed(name, value, factor)
            if other is None:
                columns.append("cannot be halved")
                continue
            build.set(path, name, other)
            failed, found = compared(before, measured(f"{constant} = {other}"))
            columns.append(text(failed, found))
            build.reset()
            for test in failed:
                print(f"{constant} = {other}: fails {test}", file=sys.stderr, flush=True)
        print(f"| `{name}` | {' | '.join(columns)} |", flush=True)
