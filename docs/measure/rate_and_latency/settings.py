"The settings that the judged one is compared with: names and options of `sim run`."

# windows in units of what the disk needs at least
WINDOWS = (0.5, 0.7, 0.85, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8, 12)
# a factor on the rate of the figures; with 1.25 for these windows only
PACES = ("off", "1", "1.25")
PACED_WINDOWS = (1, 1.5, 2, 3, 4, 6, 8, 12)

NONE = [("none", ["--policy", "none"])]
POLICIES = [(policy, ["--policy", policy]) for policy in ("littles-law", "two-level-bucket")]
FIGURES = [("figures", ["--control", "rates"])]
TARGETS = [(target, ["--latency-target", target]) for target in ("p95=1ms", "p95=2ms", "disk:p95=1ms")]
COUNTS = (5, 12, 41)


def window(disk, factor, pace="off"):
    micros = max(1, round(disk.least * factor * 1e6))
    return f"window x{factor:g}, pace {pace}", ["--fixed", f"window={micros}us,pace={pace}"]


def rivals(disk, count):
    "5, 12 or all 41."
    windows = lambda *factors: [window(disk, factor) for factor in factors]
    if count == 5:
        return NONE + FIGURES + windows(1, 2, 4)
    if count == 12:
        return NONE + POLICIES + FIGURES + TARGETS[2:] + windows(1, 1.5, 2, 3, 4, 8) + [window(disk, 2, "1")]
    constants = [window(disk, factor, pace) for factor in WINDOWS for pace in PACES if pace != "1.25" or factor in PACED_WINDOWS]
    return NONE + POLICIES + FIGURES + TARGETS + constants
