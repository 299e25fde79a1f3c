//! The result of a run as sentences for people.

use forebay_block::Backing;
use forebay_core::SATURATION_LENGTH_DEFAULT;
use serde::Serialize;

use crate::credits::{Credits, Spent};
use crate::drift::Steadiness;
use crate::fit::{Figure, Fit, Sector};
use crate::run::Run;
use crate::stalls;
use crate::sustained::Lasting;
use crate::target::TargetInfo;

/// Reads faster than this fraction of the disk's latency come from a cache.
const CACHED: f64 = 0.6;
/// No hard disk does this many small reads at random offsets per second.
const HARD_DISK_IOPS_MAX: f64 = 1000.0;
/// Threads that are busy for more than this fraction of the time limit the rates.
const PROCESSOR_MAX: f64 = 0.9;
/// The latency goal of the scheduler in microseconds, unless the disk needs more.
const GOAL_US: f64 = 750.0;
/// A figure with a margin above this fraction is reported as uncertain.
const MARGIN_MAX: f64 = 0.05;
/// Kinds of files that differ by less than this fraction are not reported.
const FILES_DIFFER: f64 = 0.1;
/// A first rate that exceeds the sustained one by more than this fraction is reported.
const EXCESS_MAX: f64 = 0.1;
/// A p99 that is higher by this factor with fewer requests in flight is not caused by the disk.
const P99_FALLS: f64 = 1.1;

/// A sentence about a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether something should be done about it.
    pub warns: bool,
    /// The sentence.
    pub text: String,
}

/// All sentences about a run.
pub fn verdicts(run: &Run, fit: &Fit) -> Vec<Verdict> {
    let mut all = Verdicts(beforehand(&run.target).into_iter().collect());
    let stalls = run.phases.iter().map(|phase| phase.samples.stalls);
    stalls::warning(stalls).into_iter().for_each(|text| all.warn(text));
    sector(fit, &mut all);
    seeks(fit, &mut all);
    buffer(fit, &mut all);
    buffer_left(run, fit, &mut all);
    credits(run, fit, &mut all);
    steady("reads", &fit.read_steadiness, fit, &mut all);
    steady("writes", &fit.write_steadiness, fit, &mut all);
    below_knee(fit, &mut all);
    caches(run, fit, &mut all);
    bounds(run, fit, &mut all);
    behaviour(fit, &mut all);
    discards(run, fit, &mut all);
    files(fit, &mut all);
    all.0
}

/// How to use the files, and which rates are known to be sustained.
pub fn advice(fit: &Fit) -> String {
    format!(
        "Load the scheduler with `Scheduler::from_file(\"forebay.yaml\")`, or the program's commands \
         with `--properties forebay.yaml`; Seastar reads `io-properties.yaml`. {}",
        lasting(fit)
    )
}

/// Which rates may be bursts, and why, and for how long the others stayed level.
fn lasting(fit: &Fit) -> String {
    let is_known = |direction: &Steadiness| direction.is_known();
    let (reads, writes) = (&fit.read_steadiness, &fit.write_steadiness);
    let (level, unknown): (Vec<_>, Vec<_>) =
        fit.lasting.figures().into_iter().partition(|(_, lasts)| *lasts);
    let names = |figures: &[(&str, bool)]| {
        let names: Vec<_> = figures.iter().map(|(name, _)| *name).collect();
        match names.as_slice() {
            [_, _, _, _] => String::from("All four rates"),
            [name] => format!("Its rate of {name}"),
            _ => format!("Its rates of {}", names.join(" and ")),
        }
    };
    let mut said = Vec::new();
    if !unknown.is_empty() {
        let (names, why) = (names(&unknown), why_unknown(fit));
        said.push(format!("{names} may be a burst, as the files note: {why}."));
    }
    let all_known = fit.spent().is_some() || is_known(reads) && is_known(writes);
    if !all_known && !level.is_empty() {
        let seconds = f64::min(reads.observed_seconds, writes.observed_seconds);
        said.push(format!(
            "{} stayed level for {:.1} minutes of the measurement; some disks slow down only \
             after half an hour or more.",
            names(&level),
            seconds / 60.0
        ));
    }
    match said.as_slice() {
        [] => String::from("All four rates are sustained."),
        _ => said.join(" ") + " `--budget thorough` finds out.",
    }
}

/// Why some rates may be bursts.
fn why_unknown(fit: &Fit) -> String {
    if fit.lasting.may_have_credits {
        return String::from(
            "its reads and writes have the same rate, as on volumes with burst credits. Such \
             credits last for half an hour or more, so use --watch",
        );
    }
    let Lasting { read_iops, read_bandwidth, buffer_passed, .. } = fit.lasting;
    let buffer = (!buffer_passed).then_some("a buffer may hold all the data that was written");
    let uneven = buffer_passed || !(read_iops && read_bandwidth);
    let uneven = uneven.then_some("they were not level for long enough");
    buffer.into_iter().chain(uneven).collect::<Vec<_>>().join(", and ")
}

/// A warning before the measurement, if the file system needs one.
pub fn beforehand(target: &TargetInfo) -> Option<Verdict> {
    let kind = target.filesystem.as_str();
    let text = match Backing::of(kind) {
        Backing::Program => format!(
            "A program serves this file system ({kind}), not the kernel: direct I/O may end in \
             its cache, so that memory is measured instead of a disk. Measure the underlying \
             directory on the disk itself."
        ),
        Backing::Disk if kind == "overlay" => String::from(
            "An overlay keeps written data in its upper directory, on an unknown disk or in \
             memory. Measure that directory, or one of a volume.",
        ),
        _ => return None,
    };
    Some(Verdict { warns: true, text })
}

/// The verdicts so far.
struct Verdicts(Vec<Verdict>);

impl Verdicts {
    /// Something should be done.
    fn warn(&mut self, text: impl Into<String>) {
        self.add(true, text);
    }

    /// Nothing is to be done.
    fn note(&mut self, text: impl Into<String>) {
        self.add(false, text);
    }

    fn add(&mut self, warns: bool, text: impl Into<String>) {
        self.0.push(Verdict { warns, text: text.into() });
    }
}

fn sector(fit: &Fit, all: &mut Verdicts) {
    let (sector, measured) = (fit.sector, fit.sector.measured());
    match sector.stated {
        Some(stated) if sector.disagrees() => all.warn(format!(
            "The device states sectors of {stated} bytes, but behaves as if they had {measured}. \
             Make file systems with blocks of at least {measured} bytes."
        )),
        _ if measured == 0 => {
            all.note("The disk's rates varied too much to determine the size of its sectors.");
        }
        Some(_) if measured == sector.tried_from && measured > 512 => all.note(format!(
            "Sectors smaller than {measured} bytes cannot be distinguished through this file \
             system."
        )),
        _ => all.note(sector_measured(sector)),
    }
}

fn seeks(fit: &Fit, all: &mut Verdicts) {
    let Some(seeks) = fit.seeks else { return };
    let found = format!(
        "reads of 128 KiB are {:.1} +- {:.1} times as fast in sequence as at random places",
        seeks.times, seeks.margin
    );
    match seeks.known() {
        Some(true) => all.note(format!("It has a seeking head: {found}.")),
        Some(false) => {}
        None => all.warn(format!(
            "Whether it has a seeking head is unknown, since its rates varied: {found}. The files \
             do not state it: if it has one, add `seeks: true` to `forebay.yaml`."
        )),
    }
}

fn buffer(fit: &Fit, all: &mut Verdicts) {
    if let Some(buffer) = fit.buffer {
        all.warn(format!(
            "Writes ran at {:.0} MB/s until a buffer of about {:.1} GB was full, and at {:.0} \
             from then on.",
            buffer.before / 1e6,
            buffer.bytes as f64 / 1e9,
            buffer.behind / 1e6
        ));
    }
}

fn sector_measured(sector: Sector) -> String {
    match (sector.by_size, sector.by_shift) {
        (Some(size), Some(shift)) if size != shift => format!(
            "The rates of writes of each size suggest sectors of {size} bytes, the cost of \
             shifted writes {shift}: the larger is safe for the blocks of file systems."
        ),
        _ => format!("The disk behaves as if its sectors had {} bytes.", sector.measured()),
    }
}

fn buffer_left(run: &Run, fit: &Fit, all: &mut Verdicts) {
    if fit.lasting.write_bandwidth
        && let Some(bytes) = crate::sustained::buffer_left(run)
    {
        let gb = bytes as f64 / 1e9;
        all.note(format!(
            "A write buffer of more than {gb:.1} GB that is emptied while it fills would have \
             gone unnoticed: longer budgets detect larger ones."
        ));
    }
}

fn credits(run: &Run, fit: &Fit, all: &mut Verdicts) {
    let minutes = |seconds: f64| format!("{:.0} minutes", seconds / 60.0);
    match fit.credits {
        Some(Credits { burst, spent: Some(spent), .. }) => {
            let Spent { lasting, left, margin, left_at } = spent;
            let on_end = left / (burst - lasting.mean).max(f64::MIN_POSITIVE);
            all.warn(format!(
                "It has burst credits: {burst:.0} operations per second with them, {:.0} without; \
                 the latter is in the files. {left:.0} +- {margin:.0} credits were left {} into \
                 the measurement, enough for {} without a break; they were used up, and accrue at \
                 {:.0} per second.",
                lasting.mean,
                minutes(left_at),
                minutes(on_end),
                lasting.mean
            ));
        }
        Some(Credits { burst, held_seconds, held_operations, .. }) => all.warn(format!(
            "No credits ran out: at up to {burst:.0} per second it did {held_operations} \
             operations without a break, in {}. A longer burst would have gone unnoticed. Watch \
             for longer (--watch), raise the write limit (--write-limit), or watch while nothing \
             else uses the disk.",
            minutes(held_seconds)
        )),
        None if run.watch_hours > 0 && run.complete => all.note(
            "It has no burst credits: a volume with credits does as many reads as writes, and \
             this disk does not, or does more than any volume, or has a seeking head.",
        ),
        None => {}
    }
}

fn steady(what: &str, steadiness: &Steadiness, fit: &Fit, all: &mut Verdicts) {
    if fit.spent().is_some() {
        return;
    }
    let minutes = steadiness.observed_seconds / 60.0;
    if let Some(burst) = steadiness.burst {
        let on = if fit.lasting.may_have_credits { " on credits" } else { "" };
        all.warn(format!(
            "Small {what} ran at {:.0} per second until {:.0} s into the measurement, and at \
             {:.0} from then on: a burst{on}. The lower figure is in the files.",
            burst.high, burst.seconds, burst.low
        ));
    } else if steadiness.burst_excess > 0.0 {
        all.add(
            steadiness.burst_excess > EXCESS_MAX,
            format!(
                "The first small {what} ran {:.0} % faster than {minutes:.1} minutes later.",
                steadiness.burst_excess * 100.0
            ),
        );
    }
    if steadiness.is_known() {
        all.note(format!("Small {what} are steady: watched for {minutes:.0} minutes."));
    } else if steadiness.trace.len() >= 5 && !steadiness.level {
        let (range, slope) = (steadiness.range * 100.0, steadiness.slope * 100.0);
        all.warn(format!(
            "Small {what} are not steady: over the last rounds they range over {range:.0} % \
             and drift by {slope:.0} %. Measure again when nothing else uses the disk, or with \
             `--budget thorough`."
        ));
    }
}

/// With fewer requests in flight latencies are no longer, unless something came between.
fn below_knee(fit: &Fit, all: &mut Verdicts) {
    for pair in fit.below_knee.windows(2) {
        let [fewer, more] = pair else { continue };
        if fewer.percent < more.percent && fewer.p99_us > more.p99_us * P99_FALLS {
            all.warn(format!(
                "The p99 at {} % of the knee, {:.0} us, is doubtful: it is higher than that at {} \
                 %, {:.0} us, so something else used the disk at that time. Measure again when \
                 nothing does.",
                fewer.percent, fewer.p99_us, more.percent, more.p99_us
            ));
        }
    }
}

fn caches(run: &Run, fit: &Fit, all: &mut Verdicts) {
    let base = fit.base_latency_us;
    if let Some(cached) = fit.cached_latency_us.filter(|&cached| cached < base * CACHED) {
        all.warn(format!(
            "Reading the same MiB repeatedly takes {cached:.0} us per request, other places \
             {base:.0} us: there is a cache below the file system."
        ));
    }
    let iops = fit.read_iops.value;
    if run.target.rotational == Some(true) && iops > HARD_DISK_IOPS_MAX {
        all.warn(format!(
            "The device states that it is a hard disk, but does {iops:.0} random reads per \
             second, which no hard disk can: a cache of the host or a controller answers, or the \
             statement is wrong."
        ));
    }
    if let Some((link, kind)) = &run.target.link
        && fit.read_bandwidth.value > *link as f64
    {
        all.warn(format!(
            "It reads {:.0} MB/s, and its {kind} link carries {:.0}: memory answers, not the disk.",
            fit.read_bandwidth.value / 1e6,
            *link as f64 / 1e6
        ));
    }
}

fn bounds(run: &Run, fit: &Fit, all: &mut Verdicts) {
    if fit.processor > PROCESSOR_MAX {
        all.warn(format!(
            "The {} threads were {:.0} % busy: the processors limit the small requests, and the \
             disk may do more.",
            run.target.threads,
            fit.processor * 100.0
        ));
    }
    for (name, figure) in figures(fit) {
        let part = figure.uncertainty();
        if part > MARGIN_MAX {
            all.warn(format!(
                "{name} per second are known only to within {:.0} %; measure longer, or when \
                 nothing else uses the disk.",
                part * 100.0
            ));
        }
    }
}

fn figures(fit: &Fit) -> [(&'static str, Figure); 4] {
    [
        ("Small reads", fit.read_iops),
        ("Small writes", fit.write_iops),
        ("Bytes read", fit.read_bandwidth),
        ("Bytes written", fit.write_bandwidth),
    ]
}

fn behaviour(fit: &Fit, all: &mut Verdicts) {
    for (name, knee) in [("reads", &fit.read_knee), ("writes", &fit.write_knee)] {
        let said = match knee.requests {
            Some(1) => format!(
                "With one of the small {name} in flight it reaches 95 % of its highest rate; more \
                 only wait longer."
            ),
            Some(requests) => format!(
                "With {requests} small {name} in flight it reaches 95 % of its highest rate; more \
                 only wait longer."
            ),
            None => format!(
                "How many small {name} in flight reach 95 % of its highest rate is unknown: its \
                 rates varied too much."
            ),
        };
        all.note(said);
    }
    if fit.base_latency_us > GOAL_US {
        all.note(format!(
            "A single small read takes {:.1} ms, more than the usual latency goal of {:.2} ms: \
             the scheduler allows for that.",
            fit.base_latency_us / 1e3,
            GOAL_US / 1e3
        ));
    }
    for (name, sizes) in [("Reads", &fit.read), ("Writes", &fit.write)] {
        match sizes.saturation.bytes {
            Some(bytes) if bytes > SATURATION_LENGTH_DEFAULT => all.warn(format!(
                "{name} reach the bandwidth only from {} KiB on, not from the usual 128: send \
                 larger requests.",
                bytes >> 10
            )),
            Some(_) => {}
            None => all.note(format!(
                "{name} of several sizes varied too much to determine the size that reaches the \
                 bandwidth: the files keep the usual 128 KiB."
            )),
        }
    }
}

fn discards(run: &Run, fit: &Fit, all: &mut Verdicts) {
    if run.target.discards && fit.discard.is_none() {
        all.note(
            "The cost of discards is unknown: too few were counted, or reads without them varied \
             by more. The files do not state it; try a longer `--budget`.",
        );
    }
}

fn files(fit: &Fit, all: &mut Verdicts) {
    let states = fit.file_states;
    let Some(written) = states.written else { return };
    let kinds = [
        ("that grows", states.fresh),
        ("cut to its length in advance", states.truncated),
        ("whose space was reserved in advance", states.allocated),
    ];
    for (kind, rate) in kinds {
        let ratio = rate.unwrap_or(written) / written.max(1.0);
        if (ratio - 1.0).abs() > FILES_DIFFER {
            all.add(
                ratio < 1.0,
                format!(
                    "A file {kind} is written at {:.0} % of the speed of overwriting.",
                    ratio * 100.0
                ),
            );
        }
    }
}
