//! What is to be said of a disk as a whole.

use super::speed::{is_too_slow, speed};
use super::unscheduled::{reads, writes};
use super::{DiskFigures, Finding, FindingKind, MemberFigures};

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
/// Nothing that came back within this many seconds was given up,
const OVERDUE_MIN: f64 = 0.05;
/// and a disk that keeps a request for this many seconds does not merely seek.
const HANGS_SECONDS: f64 = 1.0;
/// A part of writes that are not aligned which is worth a word.
const MISALIGNED_PART: f64 = 0.05;

/// Causes before what follows from them.
pub(super) fn findings(figures: &DiskFigures) -> Vec<Finding> {
    let found = [
        lateness(figures),
        writes(figures),
        reads(figures),
        misaligned(figures),
        uneven(figures),
        stalled(figures),
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
    let remedy = "Find the blocking code (a system call, a lock, a long computation) and move it \
                  to another thread";
    if figures.turn_overdue_seconds >= STANDS_SECONDS {
        let since = time(figures.turn_overdue_seconds);
        let what = format!("A thread{of} has been stalled for {since}; its requests are stuck");
        return Some(Finding::new(FindingKind::ShardStalled, what, remedy));
    }
    let part = if is_too_slow(figures) { LATE_PART_SLOW } else { LATE_PART };
    if late_turns == 0 || late_seconds < seconds * part {
        return None;
    }
    let times = if late_turns == 1 { String::from("once") } else { format!("{late_turns} times") };
    if away >= STALL_SECONDS {
        let what = format!(
            "A thread{of} stalled {times}, for {} on average, and its requests with it",
            time(away)
        );
        return Some(Finding::new(FindingKind::ShardStalled, what, remedy));
    }
    let what = format!(
        "Threads{of} polled late {times}, by {} on average: {:.0} % of the time",
        time(away),
        late_seconds / seconds * 100.0
    );
    let remedy = "Their requests wait for them, not for the disk: give each a processor, or poll \
                  during long work";
    Some(Finding::new(FindingKind::LateShard, what, remedy))
}

/// A disk that stood still.
fn stalled(figures: &DiskFigures) -> Option<Finding> {
    let stalls = figures.stalls;
    if stalls.count == 0 {
        return None;
    }
    let requests = if stalls.overdue == 1 { "request was" } else { "requests were" };
    let what = format!("The disk stalled: {stalls}; {} {requests} overdue", stalls.overdue);
    let remedy = "Look for errors of the device in the system's log, and at the device itself \
                  (`smartctl`)";
    Some(Finding::new(FindingKind::DiskStalled, what, remedy))
}

/// Requests that were given up, unless stalls explain them or those of [`super::classes`] that still
/// are held say more.
fn overdue(figures: &DiskFigures) -> Option<Finding> {
    let count = figures.overdue.saturating_sub(figures.stalls.overdue);
    if count == 0 || figures.classes.iter().any(|class| class.held > 0) {
        return None;
    }
    let what = format!("{count} requests took so long that the window no longer counts them");
    let hangs = "parts of the disk hang, or permits are held during other work: see `stuck_requests`, \
                 and the system's log for errors of the device";
    let came_back =
        figures.longest.filter(|longest| (OVERDUE_MIN..HANGS_SECONDS).contains(longest));
    let (what, remedy) = match came_back {
        Some(longest) => (
            format!("{what}; the longest that completed took {}", time(longest)),
            format!("A seeking hard disk may delay some for so long; otherwise {hangs}"),
        ),
        None => (what, format!("P{}", &hangs[1..])),
    };
    Some(Finding::new(FindingKind::Overdue, what, &remedy))
}

fn flow(figures: &DiskFigures) -> Option<Finding> {
    let ratio = figures.flow_ratio;
    (ratio > FLOW_ABOVE).then(|| {
        let what = format!(
            "Requests pile up in the disk: {ratio:.2} are dispatched for each that completes"
        );
        let remedy = "Use the policy `pace+window`, whose window limits them, and measure the \
                      disk again: `forebay tune DIR`";
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
        let remedy = "If the disk is slow or its figures are wrong, fix that first; otherwise set \
                      a longer one";
        Finding::new(FindingKind::TargetMissed, what, remedy)
    } else {
        let what = format!(
            "The latency target {text} cannot be kept: a smaller window does not \
                            help"
        );
        let remedy = "Choose a target that the idle disk can meet";
        Finding::new(FindingKind::TargetUnattainable, what, remedy)
    })
}

fn misaligned(figures: &DiskFigures) -> Option<Finding> {
    let DiskFigures { writes, writes_misaligned, .. } = *figures;
    let part = writes_misaligned as f64 / writes.max(1) as f64;
    (part > MISALIGNED_PART).then(|| {
        let what = format!(
            "{:.0} % of the writes are not aligned to the blocks of the device, which reads the \
             rest of a block first",
            part * 100.0
        );
        let remedy = "Align writes to the device's physical blocks, and make the file system with \
                      blocks of that size";
        Finding::new(FindingKind::MisalignedWrites, what, remedy)
    })
}

/// A duration with its unit.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 0.001 => format!("{:.3} ms", s * 1e3).replace(".000", ""),
        s => format!("{:.0} us", s * 1e6),
    }
}

/// A member is reported if it has more than this multiple of an even part of the requests in
/// flight.
const UNEVEN: f64 = 1.5;
/// Below this many requests in flight for each member, in the mean, no member holds up the others.
const IN_FLIGHT_MIN: f64 = 1.0;

/// Members that have much more in flight than the others.
fn uneven(figures: &DiskFigures) -> Option<Finding> {
    let members = figures.members.len();
    let all: f64 = figures.members.iter().map(|member| member.in_flight_seconds).sum();
    if all < figures.seconds * members as f64 * IN_FLIGHT_MIN {
        return None;
    }
    let even = all / members.max(1) as f64;
    let is_uneven = |member: &&MemberFigures| member.in_flight_seconds > even * UNEVEN;
    let percent = |seconds: f64| format!("{:.0} %", seconds / all * 100.0);
    let text = |member: &MemberFigures| {
        format!("{} has {}", member.name, percent(member.in_flight_seconds))
    };
    let named: Vec<String> = figures.members.iter().filter(is_uneven).map(text).collect();
    (!named.is_empty()).then(|| {
        let what = format!(
            "Of {members} members of the array, {} of the requests in flight ({} would be even)",
            named.join(" and "),
            percent(even)
        );
        let remedy = "Place files on other chunks: `forebay trace requests` shows the members of \
                      requests. If these are even, this member is slower than the others";
        Finding::new(FindingKind::UnevenMembers, what, remedy)
    })
}
