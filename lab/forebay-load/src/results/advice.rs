//! What follows from the results of a load.

use super::model::{Comparison, PropertiesSource, RunResult};
use super::table::total_bandwidth;
use super::verdict::{Verdict, VerdictKind, fold};

/// A disk whose speed is so far from what its figures say is not the one that they describe.
const SPEED_OFF: f64 = 0.2;

/// A change of bandwidth below this is no price.
const PRICE_MIN: f64 = 0.01;

/// Where threads wait for a processor for a larger part of the time, it is not the disk alone that
/// was measured.
pub const PROCESSOR_WAIT_MAX: f64 = 0.2;

/// What scheduling bought, what it cost, and which option trades the one for the other.
pub(super) fn answer(comparison: &Comparison, verdict: &Verdict) -> String {
    let [before, after] = &comparison.runs;
    let [then, now] = [before, after].map(|run| total_bandwidth(run) as f64);
    let lost = if then > 0.0 { 1.0 - now / then } else { 0.0 };
    let trade = trade(verdict, after, lost);
    let (VerdictKind::Gain(_), Some(gain)) = (&verdict.kind, verdict.sentences.first()) else {
        return format!("{verdict}{trade}");
    };
    let paid = if lost >= PRICE_MIN {
        format!("{:.0} % of all bandwidth", lost * 100.0)
    } else {
        String::from("no bandwidth")
    };
    let more: String = verdict.sentences.iter().skip(1).map(|line| fold(line)).collect();
    let gain = fold(&format!("Gain: {gain}"));
    format!("{gain}Cost: {paid}.\n{more}{trade}")
}

/// Which option trades what scheduling bought for what it cost.
fn trade(verdict: &Verdict, scheduled: &RunResult, lost: f64) -> &'static str {
    match verdict.kind {
        VerdictKind::NoContention => {
            "This disk needs no scheduler under this load: it is no slower without one.\n"
        }
        VerdictKind::TooShort => "",
        VerdictKind::Failures => "Remove the cause of the failures, and run the load again.\n",
        VerdictKind::Overload => {
            "Try more shares for that job, `--latency-target p95=TIME`, or a lower rate.\n"
        }
        _ if scheduled.policy != "pace+window" => "",
        VerdictKind::Gain(_) if lost < PRICE_MIN => {
            "Change `shares` to divide the disk differently.\n"
        }
        VerdictKind::Gain(_) if has_target(scheduled) => {
            "For more bandwidth and longer latencies, set a longer --latency-target, or \
             off.\nChange `shares` to divide the disk differently.\n"
        }
        VerdictKind::Gain(_) => {
            "For more bandwidth and longer latencies, set a longer --latency-goal.\nChange \
             `shares` to divide the disk differently.\n"
        }
        VerdictKind::Redistribution => "`shares` in the job file divides the disk between jobs.\n",
        VerdictKind::Loss => {
            "To avoid this cost: a longer --latency-goal, --latency-target off, or no\nscheduling \
             for this load.\n"
        }
    }
}

/// Whether a latency target may have held the run back.
fn has_target(run: &RunResult) -> bool {
    run.disk.as_ref().is_some_and(|disk| disk.latency_target.is_some())
}

/// How sure the figures of a disk are that was probed for some seconds; nothing of others.
pub(super) fn surety(run: &RunResult) -> String {
    if run.properties.source != PropertiesSource::Probe || run.disk.is_none() {
        return String::new();
    }
    let disk = run.disk.as_ref();
    let is_held_back = has_target(run);
    let said = match disk.and_then(|disk| disk.speed) {
        Some(speed) if is_held_back && speed < 1.0 - SPEED_OFF => String::from(
            "Whether they are right is unknown, as the latency target may have limited the \
             run:\nrun it with `--latency-target off`, or `forebay tune DIR --budget quick`.\n",
        ),
        None => String::from(
            "Whether they are right is unknown: too little work waited for the disk.\n",
        ),
        Some(speed) if (speed - 1.0).abs() <= SPEED_OFF => {
            String::from("The run agrees with them within 20 %.\n")
        }
        Some(speed) => format!(
            "They are wrong for this load: the disk did {:.0} % of them.\nMeasure it with \
             `forebay tune DIR --budget quick`, which takes about a minute, and\nrun this again \
             with `--properties forebay.yaml`; if mixes are still slow,\nrun `forebay explore \
             DIR`.\n",
            speed * 100.0
        ),
    };
    format!(
        "The disk's figures are from a probe of four seconds: a cache may have answered it,\nand \
         a burst may have ended since.\n{said}"
    )
}

/// That the machine had no processor to spare, with what to do; nothing where it had.
pub(super) fn busy_machine(runs: &[RunResult]) -> String {
    let part = runs.iter().filter_map(|run| run.processor_wait).fold(0.0, f64::max);
    if part < PROCESSOR_WAIT_MAX {
        return String::new();
    }
    let or_without = match runs.last().is_some_and(has_target) {
        true => ", with fewer --shards, or at least with --latency-target off.",
        false => ", or with fewer --shards.",
    };
    format!(
        "The machine was busy: {:.0} % of the time the load's threads waited for a\nprocessor. \
         All latencies include that, no order of requests shortens it, and a\nlatency target may \
         be missed because of it. Run this on a less busy\nmachine{or_without}\n",
        part * 100.0
    )
}

/// Whom the topology of a run fits.
pub(super) fn topology(run: &RunResult) -> &'static str {
    match run.topology.as_str() {
        "per-thread" => {
            "It suits long-lived threads that do their own I/O, such as one per core: no \
             lock\nand no other thread is between them and the disk.\n"
        }
        "shared" => {
            "It suits short-lived threads, and I/O by other means (permits): all wait at \
             one\nqueue.\n"
        }
        "coordinators" => {
            "It suits many threads on a disk whose window is too small for a queue \
             each:\nrequests cross to an I/O thread and back, which costs latency.\n"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_a_terminal() {
        let kinds = [
            VerdictKind::Gain(String::new()),
            VerdictKind::NoContention,
            VerdictKind::Redistribution,
            VerdictKind::Loss,
            VerdictKind::Failures,
        ];
        let lines = |text: &str| text.lines().map(|line| line.chars().count()).max();
        for kind in kinds {
            let verdict = Verdict { kind, sentences: Vec::new() };
            let run: RunResult =
                serde_json::from_str(include_str!("../../tests/golden/run.json")).unwrap();
            let scheduled = RunResult { policy: String::from("pace+window"), ..run };
            let text = trade(&verdict, &scheduled, 0.1);
            assert!(!text.is_empty() && lines(text) <= Some(80), "{text}");
        }
    }

    #[test]
    fn more_bandwidth_is_offered_only_where_some_was_lost() {
        let verdict = Verdict { kind: VerdictKind::Gain(String::new()), sentences: Vec::new() };
        let run: RunResult =
            serde_json::from_str(include_str!("../../tests/golden/run.json")).unwrap();
        let scheduled = RunResult { policy: String::from("pace+window"), ..run };
        assert!(trade(&verdict, &scheduled, 0.1).contains("--latency-goal"));
        assert!(!trade(&verdict, &scheduled, 0.0).contains("--latency-goal"));
    }
}
