//! What happened between two scrapes.

use std::collections::HashMap;

use forebay_load::results::model::rounded;
use forebay_report::verdict::{
    BlockedSeconds, ClassFigures, DiskFigures, Finding, MemberFigures, StallFigures, TargetFigures,
    findings, is_alike,
};

use super::open_metrics::{ClassSamples, DiskSamples, Scrape};

/// A disk whose work waited for so long since its process began has a speed to compare with.
const WAITED_MIN: f64 = 1.0;
/// The reasons for which queues let nothing through.
const REASONS: [&str; 5] = ["pace", "window", "class_limit", "ahead", "pace_disk_idle"];
/// Mixes of requests are alike by their number, by their bytes, and by the work that they are.
const OF_MIX: [&[&str]; 3] = [
    &["total_read_ops_total", "total_write_ops_total"],
    &["total_read_bytes_total", "total_write_bytes_total"],
    &["consumption_total"],
];
/// Time in flight of a member of a striped array, before the member's name.
const MEMBER_IN_FLIGHT: &str = "device_member_in_flight_seconds_total/";
/// A class is held back by its limit where that was so for this part of the time.
const LIMITED: f64 = 0.1;

/// What happened in a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    pub(super) seconds: f64,
    /// Counters fell: it is another process, and what is shown is since its start.
    pub(super) restarted: bool,
    pub(super) disks: Vec<DiskInterval>,
}

/// Of a disk.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskInterval {
    pub(super) name: String,
    pub(super) figures: DiskFigures,
    pub(super) findings: Vec<Finding>,
    /// Seconds.
    pub(super) window: Option<f64>,
    pub(super) target: Option<f64>,
    pub(super) in_disk: f64,
    pub(super) in_disk_seconds: f64,
    /// As `figures.classes`.
    pub(super) classes: Vec<ClassInterval>,
}

/// Of a class on a disk, alongside its figures.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassInterval {
    /// Per second.
    pub(super) operations: f64,
    pub(super) bytes: f64,
    pub(super) in_disk: f64,
    /// The longest time in the disk of a request that came back, in seconds; 0 if none did.
    pub(super) longest: f64,
    /// The longest time in any queue of a request that was dispatched, in seconds, since the class
    /// was added.
    pub(super) queue_longest: f64,
    /// Parts of 1.
    pub(super) asked: f64,
    pub(super) got: f64,
    /// Why its requests waited; empty if they did not.
    pub(super) why: &'static str,
}

/// Values by name now and before.
#[derive(Clone, Copy)]
struct Since<'a> {
    now: &'a HashMap<String, f64>,
    before: Option<&'a HashMap<String, f64>>,
}

impl<'a> Since<'a> {
    /// How much a counter grew; a number that is not negative.
    fn of(self, name: &str) -> f64 {
        let before = self.before.and_then(|before| before.get(name)).copied().unwrap_or(0.0);
        let grown = self.gauge(name).unwrap_or(0.0) - before;
        if grown.is_finite() { grown.max(0.0) } else { 0.0 }
    }

    fn gauge(self, name: &str) -> Option<f64> {
        self.now.get(name).copied().filter(|value| value.is_finite())
    }

    fn before_of(self, name: &str) -> Option<f64> {
        self.before.and_then(|before| before.get(name)).copied()
    }

    /// Whether a counter fell.
    fn fell(self) -> bool {
        let is_counter = |name: &str| name.split('/').next().unwrap_or(name).ends_with("_total");
        let counters = self.now.iter().filter(|(name, _)| is_counter(name));
        let mut before = counters.filter_map(|(name, now)| Some((now, self.before?.get(name)?)));
        before.any(|(now, before)| now < before)
    }
}

/// What happened between two scrapes, which came `elapsed` seconds after each other.
pub(super) fn between(before: &Scrape, now: &Scrape, elapsed: f64) -> Interval {
    let of_process = Since { now: &now.values, before: Some(&before.values) };
    let seconds = counted_seconds(before, now).unwrap_or(elapsed);
    let fell = |disk: &DiskSamples| {
        let before = before.find(&disk.name).map(|before| &before.values);
        Since { now: &disk.values, before }.fell()
    };
    let younger = of_process.gauge("uptime_seconds") < of_process.before_of("uptime_seconds");
    let restarted = younger || of_process.fell() || now.disks.iter().any(fell);
    let none = Scrape::default();
    let before = if restarted { &none } else { before };
    // those without figures and classes are there for files of no disk
    let is_used =
        |disk: &&DiskSamples| !disk.classes.is_empty() || disk.values.contains_key("read_iops");
    let disks = now.disks.iter().filter(is_used);
    let disks = disks.map(|disk| disk_between(before.find(&disk.name), disk, seconds)).collect();
    Interval { seconds, restarted, disks }
}

/// By how much the clock of the process went on, which is not when its text was asked for: who asks
/// soon after another gets the same. `None` for a process that does not say.
fn counted_seconds(before: &Scrape, now: &Scrape) -> Option<f64> {
    let up = |scrape: &Scrape| scrape.values.get("uptime_seconds").copied();
    let (before, now) = (up(before)?, up(now)?);
    let seconds = if now < before { now } else { now - before };
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

/// The figures of a disk itself.
fn disk_figures(before: Option<&DiskSamples>, now: &DiskSamples, seconds: f64) -> DiskFigures {
    let since = Since { now: &now.values, before: before.map(|before| &before.values) };
    let gauge = |name| since.gauge(name).unwrap_or(0.0);
    let own = |direction| {
        let name = format!("device_unscheduled_own_bytes_total/{direction}");
        since.gauge(&name).map(|_| since.of(&name) as u64)
    };
    DiskFigures {
        seconds,
        queues: gauge("queues") as u32,
        speed: ratio(since.of("waited_consumption_total"), since.of("waited_seconds_total")),
        speed_before: speed_before(before),
        waited_seconds: since.of("waited_seconds_total"),
        stalls: stalls(since),
        target: target(since, seconds),
        flow_ratio: gauge("flow_ratio"),
        blocked: BlockedSeconds::of(blocked_by_reason(since)),
        mix_changed: before.is_some_and(|before| mix_changed(before, now)),
        late_turns: since.of("late_turns_total") as u64,
        late_seconds: since.of("late_turn_seconds_total"),
        turn_overdue_seconds: gauge("turn_overdue_seconds"),
        written: since.of("device_done_bytes_total/write") as u64,
        written_unscheduled: since.of("device_unscheduled_bytes_total/write") as u64,
        written_unscheduled_own: own("write"),
        read: since.of("device_done_bytes_total/read") as u64,
        read_unscheduled: since.of("device_unscheduled_bytes_total/read") as u64,
        read_unscheduled_own: own("read"),
        members: members(since),
        ..DiskFigures::default()
    }
}

/// What the members of a striped array had in flight, by name.
fn members(since: Since<'_>) -> Vec<MemberFigures> {
    let names = since.now.keys().filter_map(|key| key.strip_prefix(MEMBER_IN_FLIGHT));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let figures = |name: &str| MemberFigures {
        name: name.to_owned(),
        in_flight_seconds: since.of(&format!("{MEMBER_IN_FLIGHT}{name}")),
    };
    names.into_iter().map(figures).collect()
}

/// For how long queues let nothing through.
fn blocked_by_reason(since: Since<'_>) -> [(&'static str, f64); REASONS.len()] {
    REASONS.map(|reason| (reason, since.of(&format!("blocked_seconds_total/{reason}"))))
}

fn disk_between(before: Option<&DiskSamples>, now: &DiskSamples, seconds: f64) -> DiskInterval {
    let since = Since { now: &now.values, before: before.map(|before| &before.values) };
    let gauge = |name| since.gauge(name).unwrap_or(0.0);
    let mut figures = disk_figures(before, now, seconds);
    let top = top_reason(&blocked_by_reason(since));
    let mut classes = Vec::new();
    for class in &now.classes {
        let (of_class, interval) =
            class_between(before.and_then(|b| b.find(&class.name)), class, seconds, top);
        let since = class_since(before.and_then(|b| b.find(&class.name)), class);
        for (sum, name) in [
            (&mut figures.overdue, "overdue_total"),
            (&mut figures.writes, "total_write_ops_total"),
            (&mut figures.writes_misaligned, "misaligned_write_ops_total"),
        ] {
            *sum = sum.saturating_add(since.of(name) as u64);
        }
        figures.classes.push(of_class);
        classes.push(interval);
    }
    let longest = classes.iter().map(|class: &ClassInterval| class.longest);
    figures.longest = longest.reduce(f64::max);
    share(&figures.classes, &mut classes);
    let dispatched: f64 = figures.classes.iter().map(|class| class.consumption).sum();
    figures.consumption = since.gauge("read_iops").map(|_| dispatched);
    DiskInterval {
        name: now.name.clone(),
        findings: findings(&figures),
        figures,
        window: since.gauge("window_corrected_seconds").or_else(|| since.gauge("window_seconds")),
        target: since.gauge("latency_target_seconds"),
        in_disk: gauge("in_disk"),
        in_disk_seconds: gauge("in_disk_seconds"),
        classes,
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Of all that was before.
fn speed_before(before: Option<&DiskSamples>) -> Option<f64> {
    let of = |name| before.and_then(|before| before.values.get(name)).copied();
    let waited = of("waited_seconds_total").filter(|&waited| waited >= WAITED_MIN)?;
    ratio(of("waited_consumption_total")?, waited)
}

/// Whether what the classes did since `before` is of another mix than all that they did until then.
fn mix_changed(before: &DiskSamples, now: &DiskSamples) -> bool {
    let is_alike = |kinds: &[&str]| {
        let each = now.classes.iter().flat_map(|class| {
            let since = class_since(before.find(&class.name), class);
            let counted = move |kind: &&str| (since.before_of(kind).unwrap_or(0.0), since.of(kind));
            kinds.iter().map(counted)
        });
        let (then, since): (Vec<f64>, Vec<f64>) = each.unzip();
        is_alike(&then, &since)
    };
    !OF_MIX.into_iter().all(is_alike)
}

fn stalls(since: Since<'_>) -> StallFigures {
    let seconds = since.of("stalled_seconds_total");
    StallFigures {
        count: since.of("stalls_total") as u64,
        seconds,
        // of all time: in this interval at most what all were together
        longest_seconds: since.gauge("stall_max_seconds").unwrap_or(0.0).min(seconds),
        overdue: since.of("stall_overdue_total") as u64,
    }
}

/// A disk that stood still for more than this part of an interval kept no target in it.
const STALLED_PART: f64 = 0.05;

fn target(since: Since<'_>, seconds: f64) -> Option<TargetFigures> {
    let latency = since.gauge("latency_target_seconds")?;
    let stalled = since.of("stalled_seconds_total") > seconds * STALLED_PART;
    let measured = since.of("target_measured_total") > 0.0 || stalled;
    let holds = since.gauge("latency_target_holds").map(|holds| holds > 0.0 && !stalled);
    Some(TargetFigures {
        target: format!("of {} ms", rounded(latency * 1e3, 3)),
        holds: holds.filter(|_| measured),
        attainable: since.gauge("latency_target_attainable").is_none_or(|can| can > 0.0),
    })
}

/// Why queues let nothing through for most of the time that they had work.
fn top_reason(blocked: &[(&'static str, f64)]) -> &'static str {
    let most = blocked.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    match most.filter(|(_, seconds)| *seconds > 0.0).map(|(reason, _)| *reason) {
        Some("class_limit") => "limit",
        Some("pace_disk_idle") => "pace?",
        Some(reason) => reason,
        None => "",
    }
}

/// A class that was removed and added again counts from its start.
fn class_since<'a>(before: Option<&'a ClassSamples>, now: &'a ClassSamples) -> Since<'a> {
    let since = Since { now: &now.values, before: before.map(|before| &before.values) };
    if since.fell() { Since { before: None, ..since } } else { since }
}

fn class_between(
    before: Option<&ClassSamples>,
    now: &ClassSamples,
    seconds: f64,
    top: &'static str,
) -> (ClassFigures, ClassInterval) {
    let since = class_since(before, now);
    let before = before.filter(|_| since.before.is_some());
    let of_span = |name: &str, part: f64| {
        let bounds = |of: &ClassSamples| of.buckets.get(name).cloned().unwrap_or_default();
        percentile(&before.map(bounds).unwrap_or_default(), &bounds(now), part)
    };
    let figures = ClassFigures {
        name: now.name.clone(),
        shares: since.gauge("shares").unwrap_or(0.0) as u32,
        consumption: since.of("consumption_total") / seconds,
        waiting: since.gauge("queue_length").unwrap_or(0.0),
        // metrics do not tell the groups of classes, within which their shares count
        while_waiting: None,
        held: since.gauge("stuck_requests").unwrap_or(0.0) as u64,
        held_seconds: since.gauge("stuck_seconds").unwrap_or(0.0),
        queue_p99: of_span("queue_latency_seconds", 0.99),
        disk_p99: of_span("disk_latency_seconds", 0.99),
        starved_seconds: since.of("starvation_time_sec_total"),
        limited_seconds: since.of("limited_seconds_total"),
        errors: since.of("errors_total") as u64,
    };
    let per_second =
        |names: &[&str]| names.iter().map(|name| since.of(name)).sum::<f64>() / seconds;
    let waited = figures.waiting > 0.0 || since.of("total_delay_sec_total") > 0.0;
    let why = match waited {
        false => "",
        true if figures.limited_seconds > seconds * LIMITED => "limit",
        true => top,
    };
    let interval = ClassInterval {
        operations: per_second(&[
            "total_operations_total",
            "total_discard_ops_total",
            "total_flush_ops_total",
        ]),
        bytes: per_second(&["total_bytes_total"]),
        in_disk: since.gauge("disk_queue_length").unwrap_or(0.0),
        longest: of_span("disk_latency_seconds", 1.0),
        queue_longest: since.gauge("delay_max_seconds").unwrap_or(0.0),
        asked: 0.0,
        got: 0.0,
        why,
    };
    (figures, interval)
}

/// What each class is to have by its shares, of those that did or want something, and what it had.
fn share(figures: &[ClassFigures], classes: &mut [ClassInterval]) {
    let wants = |class: &ClassFigures| class.consumption > 0.0 || class.waiting > 0.0;
    let all = || figures.iter().filter(|class| wants(class));
    let shares: f64 = all().map(|class| f64::from(class.shares)).sum();
    let got: f64 = all().map(|class| class.consumption).sum();
    for (class, interval) in figures.iter().zip(classes).filter(|(class, _)| wants(class)) {
        interval.asked = ratio(f64::from(class.shares), shares).unwrap_or(0.0);
        interval.got = ratio(class.consumption, got).unwrap_or(0.0);
    }
}

/// The percentile of what came between two counts of a histogram, in a bucket on the straight line
/// as Prometheus has it; 0 if nothing came.
fn percentile(before: &[(f64, f64)], now: &[(f64, f64)], part: f64) -> f64 {
    let earlier: HashMap<u64, f64> =
        before.iter().map(|(bound, count)| (bound.to_bits(), *count)).collect();
    let count = |(bound, count): &(f64, f64)| {
        (*bound, count - earlier.get(&bound.to_bits()).copied().unwrap_or(0.0))
    };
    let mut counts: Vec<_> = now.iter().map(count).filter(|(_, count)| *count >= 0.0).collect();
    counts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let Some((_, all)) = counts.last().copied().filter(|(_, all)| *all > 0.0) else { return 0.0 };
    let (mut bound_below, mut below) = (0.0, 0.0);
    for (bound, count) in counts {
        if count >= all * part {
            let within = (all * part - below) / (count - below).max(f64::MIN_POSITIVE);
            let width = if bound.is_finite() { bound - bound_below } else { 0.0 };
            return bound_below + width * within.clamp(0.0, 1.0);
        }
        (bound_below, below) = (bound, count);
    }
    bound_below
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
