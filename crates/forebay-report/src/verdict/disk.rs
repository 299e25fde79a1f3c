//! What is to be said of a disk as a whole.

use super::{DiskFigures, Finding, FindingKind};

/// Where work waited for less than this part of the span, nothing is said of the disk's speed.
const WAITED_MIN: f64 = 0.1;
/// A disk that does less of what its figures say does not do what they say,
const SPEED_HEALTHY: f64 = 0.9;
/// and one that does more neither.
const SPEED_ABOVE: f64 = 1.15;
/// So is one that is nearly empty, while requests wait for its rate, for this part of the queues' time.
const IDLE_PART: f64 = 0.25;
/// It got slow if it does less than this part of what it did before.
const SLOWER: f64 = 0.85;
/// More than this many requests sent for each that comes back is a queue that grows.
const FLOW_ABOVE: f64 = 1.1;
/// Late turns are worth a word where they take this part of a thread's time.
const LATE_PART: f64 = 0.02;
/// Where the disk is slow they take that much anyway: what it has not done yet looks like a thread
/// that has not looked.
const LATE_PART_SLOW: f64 = 0.1;
/// A thread that is away for so long, on the average, stood still: it did not just turn late.
const STALL_SECONDS: f64 = 0.05;
/// A thread that is behind its turn by so much stands still now.
const STANDS_SECONDS: f64 = 1.0;
/// A part of what passes no class that is worth a word,
const UNSCHEDULED_PART: f64 = 0.1;
/// and bytes per second.
const UNSCHEDULED_RATE: f64 = 1e6;
/// A part of writes that are not aligned which is worth a word.
const MISALIGNED_PART: f64 = 0.05;

/// Causes before what follows from them.
pub(super) fn findings(figures: &DiskFigures) -> Vec<Finding> {
    let found = [
        lateness(figures),
        unscheduled(figures, true),
        unscheduled(figures, false),
        misaligned(figures),
        speed(figures),
        overdue(figures),
        flow(figures),
        target(figures),
    ];
    found.into_iter().flatten().collect()
}

/// Threads that were elsewhere while requests waited for them.
fn lateness(figures: &DiskFigures) -> Option<Finding> {
    let DiskFigures { late_turns, late_seconds, seconds, queues, .. } = *figures;
    let away = late_seconds / late_turns.max(1) as f64;
    let of = if queues > 1 { format!(" of {queues}") } else { String::new() };
    let remedy = "Find what blocks it (a system call, a lock, a long computation) and move that to \
                  another thread";
    if figures.turn_overdue_seconds >= STANDS_SECONDS {
        let since = time(figures.turn_overdue_seconds);
        let what = format!("A thread{of} stands still since {since}, and its requests with it");
        return Some(Finding::new(FindingKind::ShardStalled, what, remedy));
    }
    let is_slow = is_judged(figures) && figures.speed.is_some_and(|speed| speed < SPEED_HEALTHY);
    let part = if is_slow { LATE_PART_SLOW } else { LATE_PART };
    if late_turns == 0 || late_seconds < seconds * part {
        return None;
    }
    let times = if late_turns == 1 { String::from("once") } else { format!("{late_turns} times") };
    if away >= STALL_SECONDS {
        let what = format!(
            "A thread{of} stood still {times}, for {} on the average, and its requests with it",
            time(away)
        );
        return Some(Finding::new(FindingKind::ShardStalled, what, remedy));
    }
    let what = format!(
        "Threads{of} turned late {times}, by {} on the average: {:.0} % of the time",
        time(away),
        late_seconds / seconds * 100.0
    );
    let remedy = "Their requests wait for them, not for the disk: give them a processor each, or \
                  let them poll in the middle of long work";
    Some(Finding::new(FindingKind::TurnsLate, what, remedy))
}

/// Whether work waited for long enough to say something of the disk's speed.
fn is_judged(figures: &DiskFigures) -> bool {
    figures.waited_seconds >= figures.seconds * WAITED_MIN
}

/// What the disk does of what is said of it.
fn speed(figures: &DiskFigures) -> Option<Finding> {
    if let Some(found) = idle(figures) {
        return Some(found);
    }
    let speed = figures.speed?;
    if !is_judged(figures) || speed <= 0.0 {
        return None;
    }
    let percent = speed * 100.0;
    if speed > SPEED_ABOVE {
        let what = format!("The disk does {percent:.0} % of what its figures say");
        let remedy = "The figures are too low, and requests wait in vain: run `forebay tune DIR`";
        return Some(Finding::new(FindingKind::ModelTooSlow, what, remedy));
    }
    if speed >= SPEED_HEALTHY {
        return None;
    }
    let before = figures.speed_before.filter(|before| speed < before * SLOWER);
    if let Some(before) = before {
        let what = format!(
            "The disk got slow: it does {percent:.0} % of what its figures say, and did {:.0} %",
            before * 100.0
        );
        let remedy = "Garbage collection, a neighbour, used-up credits or a failing disk do that: \
                      wait, look at the device (`smartctl`), and free space on it";
        return Some(Finding::new(FindingKind::DiskGotSlow, what, remedy));
    }
    let what = format!(
        "The disk does {percent:.0} % of what its figures say: for this mix they are {:.0} % too \
         high",
        (1.0 / speed - 1.0) * 100.0
    );
    let remedy = if figures.pace < SPEED_HEALTHY && figures.target.is_some() {
        "Run `forebay tune DIR`, and `forebay explore DIR` for mixes of reads and writes, unless \
         `--latency-target off` shows that the latency target costs as much"
    } else {
        "Run `forebay tune DIR`, and `forebay explore DIR` for mixes of reads and writes"
    };
    Some(Finding::new(FindingKind::ModelTooFast, what, remedy))
}

/// A disk that is nearly empty while requests wait for its rate.
fn idle(figures: &DiskFigures) -> Option<Finding> {
    let all = figures.seconds * f64::from(figures.queues.max(1));
    let part = figures.blocked.pace_disk_idle / all.max(f64::MIN_POSITIVE);
    (part > IDLE_PART).then(|| {
        let what = format!(
            "Requests waited for the disk's rate for {:.0} % of the time while the disk was nearly \
             empty",
            part * 100.0
        );
        let remedy = "Its figures may be too low: run `forebay tune DIR`";
        Finding::new(FindingKind::ModelTooSlow, what, remedy)
    })
}

fn overdue(figures: &DiskFigures) -> Option<Finding> {
    let count = figures.overdue;
    (count > 0).then(|| {
        let what = format!("{count} requests were kept for so long that the window gave them up");
        let remedy = "The disk hangs in places, or permits are held over other work: see \
                      `held_long`, and the system's log for errors of the device";
        Finding::new(FindingKind::Overdue, what, remedy)
    })
}

fn flow(figures: &DiskFigures) -> Option<Finding> {
    let ratio = figures.flow_ratio;
    (ratio > FLOW_ABOVE).then(|| {
        let what = format!("Requests pile up in the disk: {ratio:.2} go for each that comes back");
        let remedy = "Use the policy `pace+window`, whose window bounds that, and measure the disk \
                      anew: `forebay tune DIR`";
        Finding::new(FindingKind::PilesUp, what, remedy)
    })
}

fn target(figures: &DiskFigures) -> Option<Finding> {
    let target = figures.target.as_ref()?;
    if target.holds != Some(false) {
        return None;
    }
    let text = &target.target;
    Some(if target.attainable {
        let what = format!("The latency target {text} does not hold");
        let remedy = "Where the disk is slow or its figures are wrong, mend that first; else ask \
                      for a longer one";
        Finding::new(FindingKind::TargetMissed, what, remedy)
    } else {
        let what = format!("The latency target {text} cannot be kept: sending less does not help");
        let remedy = "Ask for one that the disk keeps when little is asked of it";
        Finding::new(FindingKind::TargetUnattainable, what, remedy)
    })
}

/// What reaches the disk and passes no class.
fn unscheduled(figures: &DiskFigures, writes: bool) -> Option<Finding> {
    let (all, past, kind, verb) = if writes {
        let DiskFigures { written, written_unscheduled, .. } = *figures;
        (written, written_unscheduled, FindingKind::UnscheduledWrites, "written")
    } else {
        let DiskFigures { read, read_unscheduled, .. } = *figures;
        (read, read_unscheduled, FindingKind::UnscheduledReads, "read")
    };
    let (all, past) = (all as f64, past as f64);
    let is_much = past > all * UNSCHEDULED_PART && past > UNSCHEDULED_RATE * figures.seconds;
    is_much.then(|| {
        let percent = past / all.max(1.0) * 100.0;
        let rate = past / 1e6 / figures.seconds;
        let what = format!(
            "{percent:.0} % of what was {verb} passed no class, {rate:.0} MB/s: nothing orders it"
        );
        let remedy = if writes {
            "Writeback of buffered writes does that: write with direct I/O, or through \
             `class.buffered_writer`, or flush with `class.sync_data`"
        } else {
            "Read-ahead, mapped files and other processes do that: read with direct I/O, or \
             through `class.read_at`"
        };
        Finding::new(kind, what, remedy)
    })
}

fn misaligned(figures: &DiskFigures) -> Option<Finding> {
    let DiskFigures { writes, writes_misaligned, .. } = *figures;
    let part = writes_misaligned as f64 / writes.max(1) as f64;
    (part > MISALIGNED_PART).then(|| {
        let what = format!(
            "{:.0} % of the writes begin or end inside of a block of the device, which reads the \
             rest of it first",
            part * 100.0
        );
        let remedy = "Align writes to the device's physical block, and make the file system with \
                      blocks of that size";
        Finding::new(FindingKind::MisalignedWrites, what, remedy)
    })
}

/// A duration with its unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 0.001 => format!("{:.3} ms", s * 1e3).replace(".000", ""),
        s => format!("{:.0} us", s * 1e6),
    }
}
