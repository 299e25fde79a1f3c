"""The rules by which settings are compared.

A setting is better by a criterion where it is in the median over the seeds and in four of five pairs of the same
seed. A setting *counts* where each class with a rate gets 99 % of what the best setting serves of it, and where the
closed classes share the disk by their shares, each within 5 % of its part.

dominated: a setting that counts is as good within 1 % in every rate and in both percentiles of the judged class,
    and 5 % better in a rate or in both percentiles.
a: a setting with up to 1.25 x the high percentile has more than 1/0.95 of the rate.
b: a setting with 0.97 of the rate has less than 1/1.15 of the high percentile.
c: a setting has more than 1/0.9 of the rate at up to 2 x the high percentile, or 1/0.8 at up to 4 x.
bulk: in A, D and E a setting with 0.99 of the rate has less than 1/1.5 of the bulk's high percentile.
invisible: in C, where no scheduler at all serves everything, a percentile of a class is more than 1.05 x that
    without one. The other criteria do not apply there.
served: the judged setting does not count where another one does.

The rate is model disk time served per second by all classes, by the true figures. In B and I that is the only
rate of the classes without bound; elsewhere dominance looks at each class. In H, and in B and I on a disk that
seeks, one setting has so much more of the rate than another as the class has that gains least. The percentiles are p95 and p99, or mean and p95 where there were too few requests for p99.
"""
import collections, math, statistics
from .runs import FOR_P99

JUDGED = "the judged setting"
CRITERIA = ("dominated", "served", "a", "b", "c", "bulk", "invisible")
SERVED, SHARES = 0.99, 0.05
Row = collections.namedtuple("Row", "rates total low high bulk classes by_class")


class Cell:
    "What the settings made of a load on a disk: rows by setting and seed."

    def __init__(self, load, found):
        self.load = load
        self.found = {name: rows for name, rows in found.items() if rows and None not in rows}
        self.by_p99 = self.enough(load.judged)
        self.bulk_by_p99 = "bulk" in load.costs and self.enough("bulk")
        self.rows = {name: [self.row(classes) for classes in rows] for name, rows in self.found.items()}
        self.median = {name: self.row(self.medians(rows)) for name, rows in self.found.items()}

    def enough(self, name):
        "Whether p99 of a class rests on enough requests, of the judged setting."
        return statistics.median(classes[name].requests for classes in self.found[JUDGED]) >= FOR_P99

    def medians(self, rows):
        return {name: type(rows[0][name])(*map(statistics.median, zip(*(row[name] for row in rows)))) for name in rows[0]}

    def row(self, classes):
        load, judged = self.load, classes[self.load.judged]
        times = {name: found.iops * load.costs[name] for name, found in classes.items()}
        total = sum(times.values())
        if load.by_shares:
            rates = [classes[name].iops for name in load.asked] + [sum(times[name] for name in load.closed)]
        else:
            rates = [classes[name].iops for name in load.asked] + [times[name] for name in load.closed]
        low, high = (judged.p95, judged.p99) if self.by_p99 else (judged.mean, judged.p95)
        bulk = classes.get("bulk")
        return Row(rates, total, low, high, bulk and (bulk.p99 if self.bulk_by_p99 else bulk.p95), classes, load.by_class)

    def unserved(self):
        "Names of settings that do not count, with what they lack."
        lacks = {}
        for name in self.load.asked:
            best = max(self.median, key=lambda setting: self.median[setting].classes[name].iops)
            # more than is asked is what had piled up before
            most = min(self.median[best].classes[name].iops, self.load.asked[name])
            for setting, row in self.median.items():
                part = row.classes[name].iops / most if most else 1
                if part < SERVED:
                    lacks.setdefault(setting, []).append(f"{name} {100 * part:.0f} % of {best}")
        off = {name: self.off_shares(row.classes) for name, row in self.median.items()} if self.load.by_shares else {}
        # shares that no setting keeps are asked of none
        if None in off.values():
            for setting, found in off.items():
                if found:
                    lacks.setdefault(setting, []).append(found)
        return lacks

    def off_shares(self, classes):
        "The closed class that is farthest from its share, where that is more than 5 %."
        times = {name: classes[name].iops * self.load.costs[name] for name in self.load.closed}
        total, shares = sum(times.values()) or 1, sum(self.load.closed.values())
        ratio = {name: times[name] / total / (self.load.closed[name] / shares) for name in times}
        worst = max(ratio, key=lambda name: abs(ratio[name] - 1))
        return f"{worst} has {ratio[worst]:.2f} of its share" if abs(ratio[worst] - 1) > SHARES else None

    def is_better(self, name, criterion):
        "In the median, and in four of five pairs."
        pairs = list(zip(self.rows[name], self.rows[JUDGED]))
        held = sum(criterion(other, this) for other, this in pairs)
        return criterion(self.median[name], self.median[JUDGED]) and held >= math.ceil(0.8 * len(pairs))

    def judge(self):
        "Criteria that the judged setting misses, each with the settings that show it, the clearest first."
        lacks = self.unserved()
        counting = [name for name in self.rows if name not in lacks and name != JUDGED]
        if self.load.name == "C" and "none" in counting:
            return self.judge_invisible(lacks)
        missed = {}
        if JUDGED in lacks and counting:
            missed["served"] = self.serving(counting)
        for name, criterion in TESTS.items():
            if name == "bulk" and not self.load.judges_bulk():
                continue
            found = [setting for setting in counting if self.is_better(setting, criterion)]
            if found:
                missed[name] = sorted(found, key=self.advantage, reverse=True)
        return missed

    def judge_invisible(self, lacks):
        missed = {"served": ["none"]} if JUDGED in lacks else {}
        felt = lambda other, this: any(
            ours > 1.05 * theirs for name in this.classes
            for ours, theirs in zip(self.percentiles(this, name), self.percentiles(other, name)))
        if self.is_better("none", felt):
            missed["invisible"] = ["none"]
        return missed

    def percentiles(self, row, name):
        found = row.classes[name]
        return (found.p95, found.p99) if self.enough(name) else (found.mean, found.p95)

    def serving(self, counting):
        "Settings that give the most to some class, which show what could be served."
        best = {max(counting, key=lambda setting: self.median[setting].classes[name].iops) for name in self.load.asked}
        return sorted(best) or sorted(counting, key=self.advantage, reverse=True)[:1]

    def advantage(self, name):
        "How much better a setting is, as a logarithm."
        other, this = self.median[name], self.median[JUDGED]
        return math.log(max(gain(other, this), 1e-9)) - 0.25 * math.log(max(other.high, 1e-9) / max(this.high, 1e-9))

    def chosen(self, missed):
        "Rivals to compare once more: the two clearest of each criterion."
        return {name for names in missed.values() for name in names[:2]}

    def explain(self, criterion, names):
        other, this = self.median[names[0]], self.median[JUDGED]
        percent = lambda ours, theirs: f"{100 * (theirs / ours - 1):+.0f} %" if ours else "?"
        if criterion == "served":
            return f"served: {'; '.join(self.unserved().get(JUDGED, ['?']))}"
        if criterion == "invisible":
            worst = max(this.classes, key=lambda name: max(
                ours / max(theirs, 1e-9) for ours, theirs in zip(self.percentiles(this, name), self.percentiles(other, name))))
            pairs = list(zip(self.percentiles(this, worst), self.percentiles(other, worst)))
            return f"invisible: {worst} " + ", ".join(f"{ours:.2f} ms for {theirs:.2f}" for ours, theirs in pairs)
        if criterion == "bulk":
            return f"bulk: {names[0]} has {other.bulk:.2f} ms for {this.bulk:.2f}"
        changes = sorted(100 * (theirs / max(ours, 1e-9) - 1) for ours, theirs in zip(this.rates, other.rates))
        rates = " to ".join(f"{change:+.0f}" for change in dict.fromkeys((round(changes[0]), round(changes[-1]))))
        return (f"{criterion}: {names[0]} (rates {rates} %, {self.low_name()} {percent(this.low, other.low)}, "
                f"{self.high_name()} {percent(this.high, other.high)})" + (f" and {len(names) - 1} more" if names[1:] else ""))

    def low_name(self):
        return "p95" if self.by_p99 else "mean"

    def high_name(self):
        return "p99" if self.by_p99 else "p95"


def dominates(other, this):
    pairs = list(zip(other.rates, this.rates))
    as_good = all(theirs >= ours * 0.99 for theirs, ours in pairs) and other.low <= this.low * 1.01 and other.high <= this.high * 1.01
    faster = any(theirs >= ours * 1.05 for theirs, ours in pairs)
    quicker = other.low <= this.low * 0.95 and other.high <= this.high * 0.95
    return as_good and (faster or quicker)


def gain(other, this):
    "How many times the rate of one setting another one has."
    pairs = zip(other.rates, this.rates) if this.by_class else [(other.total, this.total)]
    return min(theirs / max(ours, 1e-9) for theirs, ours in pairs)


def off_a(other, this):
    return other.high <= 1.25 * this.high and gain(other, this) > 1 / 0.95


def off_b(other, this):
    return gain(other, this) >= 0.97 and this.high > 1.15 * other.high


def off_c(other, this):
    more = gain(other, this)
    return other.high <= 2 * this.high and more > 1 / 0.9 or other.high <= 4 * this.high and more > 1 / 0.8


def slow_bulk(other, this):
    return bool(this.bulk and other.bulk) and gain(other, this) >= 0.99 and this.bulk > 1.5 * other.bulk


TESTS = {"dominated": dominates, "a": off_a, "b": off_b, "c": off_c, "bulk": slow_bulk}
