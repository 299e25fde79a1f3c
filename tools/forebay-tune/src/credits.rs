//! Burst credits: whether a volume is faster while it has credits, how many it had, and its sustained
//! rate without them.
//!
//! A volume earns credits at its sustained rate and spends one on each operation. So after they have
//! run out, the credits at an earlier moment are the operations since then, less those that the
//! sustained rate allows in that time. A volume whose credits are full earns none, so the moment with
//! the highest result is used.

use serde::Serialize;

use crate::drift::LEVEL;
use crate::phase::{Pattern, Purpose, Work};
use crate::plateau::{LEVEL_ROUNDS, first};
use crate::probe::{CreditProbe, DiskCounters};
use crate::run::Run;
use crate::samples::Rate;
use crate::statistics::confidence;

/// Without credits the rate falls by more than this fraction.
pub(crate) const FALL: f64 = 0.2;
/// Above this fraction of the bandwidth, the bandwidth itself may limit the operations.
const BANDWIDTH_PART: f64 = 0.5;
/// Measurements at most this many seconds apart count as continuous.
const ON_END: f64 = 1.0;
/// The resolution of measured rates, as a fraction of the rate.
const RESOLUTION: f64 = 0.002;

/// The result of watching a volume for burst credits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Credits {
    /// The highest rate, in operations per second.
    pub burst: f64,
    /// The longest time for which it kept that rate, in seconds.
    pub held_seconds: f64,
    /// The number of operations in that time.
    pub held_operations: u64,
    /// The figures of a volume whose credits ran out. `None` while they have not.
    pub spent: Option<Spent>,
}

/// The figures of a volume whose credits ran out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spent {
    /// The sustained rate, in operations per second. The volume earns as many credits per second.
    pub lasting: Rate,
    /// The number of credits at the time `left_at`.
    pub left: f64,
    /// Half of the 95 % confidence interval of `left`.
    pub margin: f64,
    /// The time of `left`, in seconds since the measurement began or was resumed.
    pub left_at: f64,
}

/// The small operations per second at the beginning, in the faster direction.
pub(crate) fn first_operations(run: &Run) -> f64 {
    let of = |work| first(run, work, Pattern::Random).map_or(0.0, |at| at.samples.rate().mean);
    f64::max(of(Work::Read), of(Work::Write))
}

/// The probes since the measurement began or went on: the clock begins at zero each time, and what the
/// disk has done is counted from when the machine started.
fn since_resumed(run: &Run) -> &[CreditProbe] {
    let is_before = |probe: &DiskCounters, then: &DiskCounters| {
        probe.at < then.at || probe.operations < then.operations
    };
    let went_on = run.probes.iter().rposition(|probe| is_before(&probe.before, &run.watch_began));
    let goes_on =
        |pair: &[CreditProbe]| matches!(pair, [old, new] if is_before(&new.before, &old.after));
    let last = went_on.max(run.probes.windows(2).rposition(goes_on));
    run.probes.get(last.map_or(0, |last| last + 1)..).unwrap_or_default()
}

/// The hours for which the disk was watched for credits.
pub(crate) fn hours_watched(probes: &[CreditProbe]) -> f64 {
    let last_ones = probes.iter().zip(probes.iter().skip(1).map(Some).chain([None]));
    let ends = last_ones.filter(|(old, new)| new.is_none_or(|new| new.before.at < old.after.at));
    ends.map(|(last, _)| last.after.at).sum::<f64>() / 3600.0
}

/// The highest rate in operations per second, of all probes and of the ladder of requests in flight.
fn fastest(run: &Run, probes: &[CreditProbe]) -> f64 {
    let steps = |work| run.of(Purpose::Concurrency, work).map(|step| step.samples.rate().mean);
    let before = steps(Work::Read).chain(steps(Work::Write));
    before.chain(probes.iter().map(CreditProbe::rate)).fold(0.0, f64::max)
}

/// The credits of the volume according to the probes of `run`. `None` without probes.
pub(crate) fn credits(run: &Run) -> Option<Credits> {
    let probes = since_resumed(run);
    let most = fastest(run, probes);
    let stream = |work| {
        let first = first(run, work, Pattern::Sequential);
        first.map_or(0.0, |at| at.samples.rate().mean * f64::from(at.phase.request_bytes))
    };
    let bandwidth = f64::max(stream(Work::Read), stream(Work::Write));
    let is_slow = |probe: &CreditProbe| {
        probe.rate() * (1.0 + FALL) < most && probe.bandwidth() < bandwidth * BANDWIDTH_PART
    };
    let fell = probes.iter().rposition(|probe| !is_slow(probe)).map_or(0, |place| place + 1);
    let (mut held, mut longest): (Option<[DiskCounters; 2]>, [DiskCounters; 2]) =
        Default::default();
    for probe in probes {
        let from = held.filter(|[_, last]| probe.before.at - last.at <= ON_END);
        held =
            (!is_slow(probe)).then(|| [from.map_or(probe.before, |[from, _]| from), probe.after]);
        let seconds = |[from, to]: [DiskCounters; 2]| to.at - from.at;
        longest = held.filter(|&now| seconds(now) > seconds(longest)).unwrap_or(longest);
    }
    (!probes.is_empty()).then(|| Credits {
        burst: first_operations(run).max(most),
        held_seconds: longest[1].at - longest[0].at,
        held_operations: longest[1].operations.saturating_sub(longest[0].operations),
        spent: spent(run.watch_began, probes, fell),
    })
}

/// Whether the next probe has to read, because the last one wrote and was slow. A full write buffer
/// makes only writes slow.
pub(crate) fn reads_next(run: &Run) -> bool {
    let probes = since_resumed(run);
    let slow = |last: &CreditProbe| last.rate() * (1.0 + FALL) < fastest(run, probes);
    probes.last().is_some_and(|last| last.work == Work::Write && slow(last))
}

/// The figures of a volume whose credits ran out during the probe `fell`. `None` if the probes
/// after it are too few, uneven, or all of writes.
fn spent(began: DiskCounters, probes: &[CreditProbe], fell: usize) -> Option<Spent> {
    let (ran_out, without) = probes.get(fell..)?.split_first()?;
    let rates: Vec<f64> = without.iter().map(CreditProbe::rate).collect();
    let seconds: f64 = without.iter().map(CreditProbe::seconds).sum();
    let mean = without.iter().map(CreditProbe::operations).sum::<u64>() as f64 / seconds;
    let level = rates.iter().all(|rate| (rate - mean).abs() <= mean * LEVEL);
    let reads = without.iter().any(|probe| probe.work == Work::Read);
    if without.len() < LEVEL_ROUNDS || !level || !reads {
        return None;
    }
    let margin = confidence(&rates).max(mean * RESOLUTION);
    let end = ran_out.after;
    let left = |from: &DiskCounters| {
        let done = end.operations.saturating_sub(from.operations) as f64;
        done - mean * (end.at - from.at)
    };
    let moments = probes.get(..=fell)?.iter().map(|probe| probe.before);
    let most = moments.chain([began]).max_by(|one, other| left(one).total_cmp(&left(other)))?;
    Some(Spent {
        lasting: Rate { mean, margin },
        left: left(&most).max(0.0),
        margin: margin * (end.at - most.at),
        left_at: most.at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::target::TargetInfo;

    fn counters(at: f64, operations: u64) -> DiskCounters {
        DiskCounters { at, operations, bytes: 0 }
    }

    #[test]
    fn looks_of_another_clock_are_left_out() {
        let probe = |(at, operations)| {
            let (before, after) = (counters(at, operations), counters(at + 1.0, operations + 100));
            CreditProbe { work: Work::Read, before, after, bytes_written: 0 }
        };
        let since = |began: DiskCounters, probes: &[(f64, u64)]| {
            let mut run = Run::new(&Budget::QUICK, TargetInfo::default());
            run.watch_began = began;
            run.probes = probes.iter().copied().map(probe).collect();
            since_resumed(&run).iter().map(|probe| probe.before.operations).collect::<Vec<_>>()
        };
        let first = [(100.0, 1000), (200.0, 2000)];
        assert_eq!(since(counters(60.0, 500), &first), [1000, 2000]);
        // the clock of the second time is behind, or has come further by its first probe
        for at in [40.0, 275.0] {
            let probes = [first[0], first[1], (at, 9000), (at + 9.0, 9500)];
            assert_eq!(since(counters(5.0, 8000), &probes), [9000, 9500], "{at}");
            assert_eq!(since(counters(5.0, 8000), &probes[..2]), [0; 0], "{at}: no probe yet");
        }
        // the machine was started again
        assert_eq!(since(counters(5.0, 30), &[first[1], (275.0, 40)]), [40]);
    }
}
