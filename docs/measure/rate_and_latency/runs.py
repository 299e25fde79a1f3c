"Runs of the simulator, several at a time, and the file that keeps what rivals did."
import collections, hashlib, json, pathlib, subprocess, sys, tempfile, threading
from .disks import FOREBAY

# of one class: requests and bytes per second, requests in all, and latencies from the due time in ms
Class = collections.namedtuple("Class", "iops bandwidth requests mean p95 p99")
# requests that a percentile rests on; a run is a twentieth longer, since requests come by chance
FOR_P95, FOR_P99, SPARE = 1000, 5000, 1.05
SECONDS_MOST = 600


class Plan:
    "How long a load runs on a disk, by the rate of the judged class."

    def __init__(self, disk, load, shortest, warm_up, by_p95=False):
        rate = load.judged_rate(disk)
        for_p99, for_p95 = FOR_P99 * SPARE / rate, FOR_P95 * SPARE / rate
        needed = for_p99 if for_p99 <= SECONDS_MOST and not by_p95 else for_p95
        self.seconds = min(SECONDS_MOST, max(shortest, needed))
        self.warm_up = max(warm_up, 10) if disk.is_slow() else warm_up


class Runner:
    "Runs one setting with one seed."

    def __init__(self, kept):
        self.lock = threading.Lock()
        self.kept = pathlib.Path(kept) if kept else None
        self.known = {}
        self.refused = set()
        if self.kept and self.kept.exists():
            for line in self.kept.read_text().splitlines():
                key, found = json.loads(line)
                self.known[key] = found

    def run(self, disk, load, setting, plan, seed, keep):
        "What each class got; None where the setting is refused."
        name, options = setting
        asked = ["--shards", str(load.shards), "--duration", f"{plan.seconds:.1f}s", "--warmup", f"{plan.warm_up}s",
                 "--seed", str(seed), *options]
        text = "\n".join([disk.name, disk.text, load.text, *asked])
        key = f"{disk.name} {load.name} {name} {seed} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        if keep and key in self.known:
            found = self.known[key]
        else:
            found = self.simulate(disk, load, name, asked)
            if keep and self.kept:
                with self.lock, self.kept.open("a") as file:
                    file.write(json.dumps([key, found]) + "\n")
        return found and {name: Class(*values) for name, values in found.items()}

    def simulate(self, disk, load, name, asked):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(load.text)
            file.flush()
            answer = subprocess.run([FOREBAY, "sim", "run", file.name, "--disk", disk.place, "--compare", "off", "--format", "json", *asked],
                                    capture_output=True, text=True)
        if answer.returncode:
            with self.lock:
                if name not in self.refused:
                    self.refused.add(name)
                    print(f"{disk.name}, load {load.name}: `{name}` is refused: {answer.stderr.strip()}", file=sys.stderr)
            return None
        return {found["name"]: figures(found, load) for found in json.loads(answer.stdout)["classes"]}


def figures(found, load):
    "Latencies of a class whose requests are followed by a flush are those of both."
    latency = dict(found["latency_us"])
    if "flushes" in found:
        # the sum of two percentiles is an upper bound of the sum's
        latency = {key: value + found["flushes"]["latency_us"][key] for key, value in latency.items()}
    size = load.sizes[found["name"]]
    iops = found["bandwidth_bytes_per_second"] / size
    requests = found["requests"] - found.get("flushes", {}).get("requests", 0)
    return Class(iops, found["bandwidth_bytes_per_second"], requests, *(latency[key] / 1e3 for key in ("mean", "p95", "p99")))
