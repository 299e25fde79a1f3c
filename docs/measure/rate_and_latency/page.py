"The page: for each cell a scatter of rate against latency, as SVG without scripts."
import html, math
from .judge import JUDGED

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 14, 12, 46
# from this ratio of the largest to the least the axis of latency is logarithmic
LOG_FROM = 5
# from this ratio of the least to the largest the axis of rate does not begin at 0
CLOSE_RATES = 0.5

STYLE = """
:root{color-scheme:light dark;--page:#fff;--ink:#1c1f23;--faint:#5c6570;--line:#d4d9df;--judged:#c2410c;--window:#1d6fb8;--paced:#2b8a6e;--figures:#8a5fbf;--older:#8c6d00;--none:#6b7280}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e9ed;--faint:#a3adb8;--line:#343b44;--judged:#ff8a4c;--window:#6cb6ff;--paced:#5fd0a8;--figures:#c4a3f5;--older:#e0bd4a;--none:#a3adb8}}
body{font:15px/1.45 system-ui,sans-serif;margin:20px auto;max-width:1480px;padding:0 16px;background:var(--page);color:var(--ink)}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:22px 16px}
figure{margin:0}figcaption{font-weight:600}figcaption small{font-weight:400;color:var(--faint)}
svg{max-width:100%;height:auto;font-size:12px;display:block}svg text{fill:var(--faint)}
.axis{stroke:var(--faint);fill:none}.grid{stroke:var(--line)}
.judged{fill:var(--judged);stroke:var(--page)}.window{fill:var(--window)}.paced{fill:none;stroke:var(--paced);stroke-width:1.6}
.figures{fill:var(--figures)}.older{fill:var(--older)}.none{stroke:var(--none);stroke-width:2;fill:none}
.curve{fill:none;stroke:var(--window);opacity:.45}.uncounted{opacity:.32}.better{stroke:var(--ink);stroke-width:1.6}
.legend{display:flex;flex-wrap:wrap;gap:4px 22px;padding:8px 0}.legend span{display:flex;align-items:center;gap:6px}
.verdict{font-size:13px;color:var(--faint);margin:2px 0 0;overflow-wrap:anywhere}.missed{color:var(--judged)}
"""
LEGEND = (
    ("judged", "judged: {judged}"), ("window", "constant window without pace, joined by size"), ("paced", "constant window and pace"),
    ("figures", "figures and latency targets"), ("older", "older policies"), ("none", "no scheduler"))


def family(name):
    if name == JUDGED:
        return "judged"
    if name.startswith("window"):
        return "window" if name.endswith("off") else "paced"
    if name.startswith("figures"):
        return "figures"
    return "none" if name == "none" else "older"


def mark(kind, x, y, classes="", title=""):
    "The shape of a family at a place: shapes differ, so that colours need not."
    inside = f"<title>{html.escape(title)}</title>" if title else ""
    shape = {
        "judged": f'path d="M{x:.1f} {y - 10:.1f}l10 10l-10 10l-10 -10z"',
        "window": f'circle cx="{x:.1f}" cy="{y:.1f}" r="4"',
        "paced": f'circle cx="{x:.1f}" cy="{y:.1f}" r="3.4"',
        "figures": f'rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"',
        "older": f'path d="M{x:.1f} {y - 5:.1f}l5 9h-10z"',
        "none": f'path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"',
    }[kind]
    return f'<{shape} class="{kind} {classes}">{inside}</{shape.split()[0]}>'


def steps(least, most, wanted=5):
    "Round values of an even scale."
    raw = (most - least) / wanted
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if raw <= size * factor)
    first = math.ceil(least / step - 1e-9)
    return [step * index for index in range(first, math.floor(most / step + 1e-9) + 1)]


def time(millis):
    "A tick of the axis of latency."
    for size, unit in ((1000, "s"), (1, "ms")):
        if millis >= size:
            return f"{millis / size:.6g} {unit}"
    return f"{millis * 1000:.4g} us" if millis else "0"


def log_steps(least, most):
    "1, 2 and 5 of each power of ten; fewer where there are many powers."
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    factors = (1, 2, 5) if math.log10(most / least) < 2.5 else (1,)
    return [factor * 10.0 ** power for power in powers for factor in factors if least <= factor * 10.0 ** power <= most]


class Scale:
    "Values to places on an axis."

    def __init__(self, values, start, end, is_log, from_zero=True):
        least, most = min(values), max(values)
        if is_log:
            self.least, self.most = least / 1.25, most * 1.25
        else:
            self.least = 0 if from_zero else least - 0.15 * (most - least or most)
            self.most = most + 0.06 * (most - self.least) or 1
        self.is_log, self.start, self.end = is_log, start, end

    def place(self, value):
        turn = math.log if self.is_log else float
        part = (turn(value) - turn(self.least)) / (turn(self.most) - turn(self.least))
        return self.start + (self.end - self.start) * part

    def ticks(self):
        return log_steps(self.least, self.most) if self.is_log else steps(self.least, self.most)


def axes(x, y, latency):
    parts = []
    for value in x.ticks():
        at = x.place(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:.6g}</text>')
    for value in y.ticks():
        at = y.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>'
                     f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{time(value)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    scale = " (logarithmic scale)" if y.is_log else ""
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
                 f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">rate: disk time served, seconds per second</text>'
                 f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{latency}{scale}</text>')
    return "".join(parts)


def figure(disk, cell, missed, verdict):
    "A cell."
    rows = {name: row for name, row in cell.median.items() if row.high > 0}
    lacks, judged = cell.unserved(), cell.load.judged
    better = {name for names in missed.values() for name in names}
    latency = f"{cell.high_name()} of {judged}"
    rates, highs = [row.total for row in rows.values()], [row.high for row in rows.values()]
    x = Scale(rates, LEFT, WIDTH - RIGHT, False, from_zero=min(rates) < CLOSE_RATES * max(rates))
    y = Scale(highs, HEIGHT - BOTTOM, TOP, max(highs) > LOG_FROM * min(highs))
    curve = " ".join(f"{x.place(row.total):.1f},{y.place(row.high):.1f}" for name, row in rows.items() if family(name) == "window")
    marks = [f'<polyline class="curve" points="{curve}"/>']
    # the judged one is the largest, and lies below the others
    for name, row in sorted(rows.items(), key=lambda item: item[0] != JUDGED):
        title = f"{name}: {row.total:.3f} s/s, {cell.low_name()} {row.low:.3g} ms, {cell.high_name()} {row.high:.3g} ms"
        if name in lacks:
            title += f"; does not count: {'; '.join(lacks[name])}"
        classes = ("uncounted " if name in lacks and name != JUDGED else "") + ("better" if name in better else "")
        marks.append(mark(family(name), x.place(row.total), y.place(row.high), classes, title))
    shards = "shard" if cell.load.shards == 1 else "shards"
    return (f'<figure><figcaption>{html.escape(disk.name)}, load {cell.load.name} <small>{cell.load.shards} {shards}</small></figcaption>'
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="rate against {latency}">'
            f'{axes(x, y, latency)}{"".join(marks)}</svg>'
            f'<p class="verdict{" missed" if missed else ""}">{html.escape(verdict)}</p></figure>')


def html_page(judged, cells):
    judged = judged or "the default"
    keys = "".join(f'<span><svg width="22" height="22">{mark(kind, 11, 11)}</svg>{html.escape(text.format(judged=judged))}</span>' for kind, text in LEGEND)
    ok = sum(not missed for _, _, missed, _ in cells)
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>Rate against latency</title><style>{STYLE}</style><h1>Rate against latency</h1>"
            f"<p>{len(cells)} cells, a disk and a load each; in {ok} nothing is known that is better. More rate is to the right, less "
            f"latency is below; at a rate of 1 the disk does what its figures say. Pale settings do not count: they serve less than is asked, or not by the shares. Those with a "
            f"ring are better than the judged one. The pointer shows names and figures.</p>"
            f'<div class="legend">{keys}</div><main>{"".join(figure(*cell) for cell in cells)}</main></html>')
