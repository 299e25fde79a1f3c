//! What keeps a queue from sending more.

/// Why a queue dispatched nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing is queued.
    Empty,
    /// The disk's rate is used up.
    Pace,
    /// The disk has as much unfinished work as it may have.
    Window,
    /// All queued requests belong to classes at their upper limit.
    ClassLimit,
    /// Other shards are behind and go first.
    FairnessLead,
    /// The disk's rate is used up, and at most an eighth of the window is in the disk: if that is
    /// so most of the time, the disk may be faster than its model. A disk of long latency is never
    /// so empty.
    PaceDiskIdle,
}

impl Blocked {
    /// Every reason, in the order of [`QueueCounters::blocked_nanos`](crate::QueueCounters::blocked_nanos).
    pub const ALL: [Self; 6] = [
        Self::Empty,
        Self::Pace,
        Self::Window,
        Self::ClassLimit,
        Self::FairnessLead,
        Self::PaceDiskIdle,
    ];

    /// The name used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Pace => "pace",
            Self::Window => "window",
            Self::ClassLimit => "class_limit",
            Self::FairnessLead => "ahead",
            Self::PaceDiskIdle => "pace_disk_idle",
        }
    }

    /// Position of this reason in [`Blocked::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}
