//! What metrics say in words: what is healthy in a span of time, what is not, and what to do.
//!
//! The rules see numbers only, of any span of time: a run, or the last seconds of a live process.

mod classes;
mod disk;
mod mix;
mod shares;
mod speed;
mod unscheduled;

use core::fmt;

pub use mix::is_alike;
pub use shares::{Contender, DiskPart, Group, is_busy, parts_by_shares};
pub use speed::SLOWER;

/// What was counted of one disk in a span of time. Times are seconds; blocked and late ones are
/// summed over queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFigures {
    /// How long the span is.
    pub seconds: f64,
    /// How many queues (shards, threads) share the disk; 0 if that is not known.
    pub queues: u32,
    /// Disk time dispatched per second, as the model counts it; `None` where there is no model.
    pub consumption: Option<f64>,
    /// What the disk did of what its figures say while work waited for it.
    pub speed: Option<f64>,
    /// The same in an earlier span, if there was one.
    pub speed_before: Option<f64>,
    /// Whether that was of [another mix](is_alike) of requests.
    pub mix_changed: bool,
    /// Whether the same load moved more without a scheduler, where that was tried.
    pub more_unscheduled: Option<bool>,
    /// For how long work waited for the disk throughout.
    pub waited_seconds: f64,
    /// When the disk stood still.
    pub stalls: StallFigures,
    /// The latency target, if there is one.
    pub target: Option<TargetFigures>,
    /// Requests dispatched per request completed; 1 is healthy, and the rule under a window.
    pub flow_ratio: f64,
    /// For how long queues let nothing through, by what held them back.
    pub blocked: BlockedSeconds,
    /// Turns that came late, and for how long there had been none before them.
    pub late_turns: u64,
    /// See [`DiskFigures::late_turns`].
    pub late_seconds: f64,
    /// By how much the latest thread is behind its turn at the end of the span.
    pub turn_overdue_seconds: f64,
    /// Requests that the window does not wait for any more: the disk, or who held them, kept them
    /// too long.
    pub overdue: u64,
    /// The longest time of a request in the disk that came back; `None` if it is not known.
    pub longest: Option<f64>,
    /// Bytes that the device wrote, and how many of them were unscheduled; zero if not known.
    pub written: u64,
    /// See [`DiskFigures::written`].
    pub written_unscheduled: u64,
    /// How many of those were written by this process; `None` if it is not known.
    pub written_unscheduled_own: Option<u64>,
    /// Bytes that the device read, and how many of them were unscheduled; zero if not known.
    pub read: u64,
    /// See [`DiskFigures::read`].
    pub read_unscheduled: u64,
    /// How many of those were read by this process; `None` if it is not known.
    pub read_unscheduled_own: Option<u64>,
    /// Writes done, and how many of them began or ended inside of a block of the device.
    pub writes: u64,
    /// See [`DiskFigures::writes`].
    pub writes_misaligned: u64,
    /// The members of a striped array; empty where the disk is none, or is not known to be one.
    pub members: Vec<MemberFigures>,
    /// The classes that did or wanted something.
    pub classes: Vec<ClassFigures>,
}

/// What was counted of one member of a striped array in a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberFigures {
    /// Its name, such as `nvme1n1`.
    pub name: String,
    /// How long requests were in flight there, summed over requests, in seconds.
    pub in_flight_seconds: f64,
}

/// The stalls of a disk in a span of time: requests were in it, and none completed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StallFigures {
    /// How many there were.
    pub count: u64,
    /// How long they were together, in seconds.
    pub seconds: f64,
    /// How long the longest was, in seconds.
    pub longest_seconds: f64,
    /// Requests that became overdue in them.
    pub overdue: u64,
}

impl fmt::Display for StallFigures {
    /// `1 stall, 6.0 s`, `18 stalls, 5.4 s, the longest 300 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, seconds, longest_seconds, .. } = *self;
        match count {
            1 => write!(f, "1 stall, {}", disk::time(seconds)),
            _ => write!(
                f,
                "{count} stalls, {}, the longest {}",
                disk::time(seconds),
                disk::time(longest_seconds)
            ),
        }
    }
}

/// What became of a latency target in a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetFigures {
    /// As it is written: `p95=1ms`.
    pub target: String,
    /// Whether it held; `None` where nothing was measured.
    pub holds: Option<bool>,
    /// Whether sending less keeps it.
    pub attainable: bool,
}

/// For how long queues let nothing through, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockedSeconds {
    /// The disk's rate is used up.
    pub pace: f64,
    /// As much is in the disk as may be.
    pub window: f64,
    /// All that waited belonged to classes at their limits.
    pub class_limit: f64,
    /// Other queues were behind, and went first.
    pub ahead: f64,
    /// The rate is used up although the disk is nearly empty.
    pub pace_disk_idle: f64,
}

impl BlockedSeconds {
    /// Those of a reason by its name in metrics and results: `pace`, `window`, `class_limit`,
    /// `ahead`, `pace_disk_idle`; others are left out.
    pub fn of<'a>(seconds: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut blocked = Self::default();
        for (reason, seconds) in seconds {
            match reason {
                "pace" => blocked.pace = seconds,
                "window" => blocked.window = seconds,
                "class_limit" => blocked.class_limit = seconds,
                "ahead" => blocked.ahead = seconds,
                "pace_disk_idle" => blocked.pace_disk_idle = seconds,
                _ => {}
            }
        }
        blocked
    }

    /// Why requests waited most of the time, in words; `None` where they did not wait.
    pub fn why(&self) -> Option<&'static str> {
        let reasons = [
            (self.pace, "the disk's rate is used up"),
            (self.window, "the window is full"),
            (self.class_limit, "the classes that wait are at their limits"),
            (self.ahead, "other threads are behind and go first"),
            (self.pace_disk_idle, "the disk's rate is used up, though the disk is nearly empty"),
        ];
        let most = reasons.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
        (most.0 > 0.0).then_some(most.1)
    }
}

/// What was counted of one class in a span of time. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassFigures {
    /// Its name.
    pub name: String,
    /// Its shares.
    pub shares: u32,
    /// Disk time dispatched per second.
    pub consumption: f64,
    /// Requests that waited at the end of the span, or on the average.
    pub waiting: f64,
    /// What it had of the disk while it waited throughout; `None` where that is not known.
    pub while_waiting: Option<DiskPart>,
    /// Requests in the disk, and permits, that are held for far longer than they should be,
    pub held: u64,
    /// and for how long some are, at least.
    pub held_seconds: f64,
    /// The 99th percentile of the time in the queue; 0 if there were none.
    pub queue_p99: f64,
    /// The 99th percentile of the time in the disk; 0 if there were none.
    pub disk_p99: f64,
    /// For how long requests waited while none of the class was in the disk, summed over queues.
    pub starved_seconds: f64,
    /// For how long its limit held requests back, summed over queues.
    pub limited_seconds: f64,
    /// Requests that failed.
    pub errors: u64,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// The disk stood still while requests were in it.
    DiskStalled,
    /// The disk does less than its figures say, and always did.
    ModelTooFast,
    /// The disk does less than it did before.
    DiskGotSlow,
    /// The disk does more than its figures say.
    ModelTooSlow,
    /// More requests go to the disk than come back.
    PilesUp,
    /// The latency target does not hold.
    TargetMissed,
    /// Nothing that the scheduler does keeps the latency target.
    TargetUnattainable,
    /// A thread stood still while its requests waited.
    ShardStalled,
    /// A thread turns late, again and again.
    LateShard,
    /// The limit of a class keeps it from what its shares are.
    StarvedByLimit,
    /// A class waits and has less than its shares.
    BelowShare,
    /// Requests were kept for so long that the window did not wait for them.
    Overdue,
    /// Requests are kept for so long now.
    StuckRequests,
    /// Writes reach the disk that pass no class.
    UnscheduledWrites,
    /// Reads reach the disk that pass no class.
    UnscheduledReads,
    /// Writes begin or end inside of blocks of the device.
    MisalignedWrites,
    /// Some members of an array have most of the requests.
    UnevenMembers,
    /// Requests failed.
    Errors,
    /// Nothing is wrong.
    Healthy,
}

impl FindingKind {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DiskStalled => "disk-stopped",
            Self::ModelTooFast => "model-too-fast",
            Self::DiskGotSlow => "disk-got-slow",
            Self::ModelTooSlow => "model-too-slow",
            Self::PilesUp => "piles-up",
            Self::TargetMissed => "target-missed",
            Self::TargetUnattainable => "target-unattainable",
            Self::ShardStalled => "shard-stalled",
            Self::LateShard => "turns-late",
            Self::StarvedByLimit => "starved-by-limit",
            Self::BelowShare => "below-share",
            Self::Overdue => "overdue",
            Self::StuckRequests => "held-long",
            Self::UnscheduledWrites => "unscheduled-writes",
            Self::UnscheduledReads => "unscheduled-reads",
            Self::MisalignedWrites => "misaligned-writes",
            Self::UnevenMembers => "uneven-members",
            Self::Errors => "errors",
            Self::Healthy => "healthy",
        }
    }

    /// Whether there is something to do.
    pub const fn warns(self) -> bool {
        !matches!(self, Self::Healthy)
    }
}

/// Something that metrics say. Displays as two sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// The class that it is about, if it is about one.
    pub class: Option<String>,
    /// What is the matter, with the figures that show it.
    pub what: String,
    /// What to do; empty where nothing is to be done.
    pub remedy: String,
}

impl Finding {
    fn new(kind: FindingKind, what: String, remedy: &str) -> Self {
        Self { kind, class: None, what, remedy: remedy.to_owned() }
    }

    fn of_class(self, class: &ClassFigures) -> Self {
        Self { class: Some(class.name.clone()), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, remedy, .. } = self;
        if remedy.is_empty() { write!(f, "{what}.") } else { write!(f, "{what}. {remedy}.") }
    }
}

/// What these figures say: what is wrong, the likely cause first, or that nothing is.
pub fn findings(figures: &DiskFigures) -> Vec<Finding> {
    let mut found = disk::findings(figures);
    found.extend(classes::findings(figures));
    if found.is_empty() {
        found.push(healthy(figures));
    }
    found
}

/// A disk without anything wrong.
fn healthy(figures: &DiskFigures) -> Finding {
    const FULL: f64 = 0.9;
    let used = figures.consumption.map_or(0.0, |used| used * 100.0);
    let what = match figures.consumption {
        None => String::from("No problem was found, but the disk has no figures to compare with"),
        Some(part) if part >= FULL => {
            format!(
                "The disk is busy for {used:.0} % of its time, and all waiting classes get \
                     their shares"
            )
        }
        Some(_) => format!(
            "The disk is busy for {used:.0} % of its time, and no problem was \
                            found"
        ),
    };
    let target = figures.target.as_ref().filter(|target| target.holds == Some(true));
    let what = match target {
        Some(TargetFigures { target, .. }) => format!("{what}; the latency target {target} holds"),
        None => what,
    };
    Finding::new(FindingKind::Healthy, what, "")
}

#[cfg(test)]
mod tests;
