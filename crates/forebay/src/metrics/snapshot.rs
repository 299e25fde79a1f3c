//! What a scheduler has counted, at one moment.

use forebay_core::{Blocked, ClassCounters, DiskRates, LoadStatus, QueueCounters};

use super::{DeviceTraffic, Discards, Distribution};
use crate::PageCacheCounters;
use crate::engine::{Backend, Retries};

/// Everything that a scheduler has counted so far.
///
/// The parts were read one after the other while work went on, so sums may
/// differ by what was finished meanwhile; no number ever falls.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// One per disk, in the order of the scheduler.
    pub disks: Vec<DiskSnapshot>,
    /// What reads through the page cache found: one per class, in the order in which the classes
    /// were added.
    pub page_cache: Vec<PageCacheReads>,
    /// What the [deleters](crate::Deleter) of each class deleted, and what waits for them, on all
    /// disks: one per class, in the order in which the classes were added.
    pub discards: Vec<Discards>,
    /// Files that were looked up or opened and that no entry covers.
    pub unlisted_opens: u64,
    /// Messages to the log, and [events](crate::SchedulerBuilder::on_event), of
    /// all schedulers of the process, that were not told: too many waited for a
    /// logger or a hook that is slow, or there was no thread to be had.
    pub messages_lost: u64,
    /// Impossible states that were met in this process: each is a bug in
    /// forebay, and may have lost a request. The first of each queue, and the
    /// first outside of the queues, is logged.
    pub bugs: u64,
    /// For how long the process had used forebay when this was counted, in nanoseconds: rates are
    /// by what this grew. 0 if nothing was counted.
    pub uptime_nanos: u64,
}

/// What the reads of one class [through the page cache](crate::Class::read_at) found, on all disks.
///
/// How many of them hit is the engine's affair: what its working set needs of memory. Healthy is a
/// part that stays what it was; one that falls means that memory lacks, or that another class reads
/// what drives this one's pages out. `read_ahead` well above what the misses asked for means that
/// the kernel reads what nobody wants: `FADV_RANDOM` ends that.
#[derive(Clone, Debug, Default)]
pub struct PageCacheReads {
    /// The name of the class.
    pub class: String,
    /// What they found.
    pub counters: PageCacheCounters,
}

/// One disk: all its queues together.
#[derive(Clone, Debug, Default)]
pub struct DiskSnapshot {
    /// Its mountpoint, or the name it was given.
    pub name: String,
    /// The rates it was configured with; `None` if it has none.
    pub rates: Option<DiskRates>,
    /// How much disk time may wait in the disk, in nanoseconds; `None` if
    /// there is no bound.
    pub effective_goal_nanos: Option<u64>,
    /// How much disk time may be unfinished in the disk, in nanoseconds; `None`
    /// if there is no bound.
    pub window_nanos: Option<u64>,
    /// The latency of the idle disk that the effective goal allows for, stated
    /// or learnt, in nanoseconds; `None` if it is not known.
    pub base_latency_nanos: Option<u64>,
    /// Whether the disk does what its figures say, and keeps its latency target.
    pub load: LoadStatus,
    /// Disk time of what is in the disk now, in nanoseconds.
    pub in_flight_nanos: u64,
    /// I/O queues: of shards, of I/O threads, and one of permits once any was asked for.
    pub queues: u32,
    /// By how much the latest of several queues is later than it meant to look for work, in
    /// nanoseconds. Healthy are some tenths of a second; more is a thread that is stuck.
    pub turn_overdue_nanos: u64,
    /// All classes together.
    pub totals: QueueCounters,
    /// What executes the requests of queues that have an engine.
    pub engines: Engines,
    /// Reads and writes that were tried without blocking and had to be
    /// repeated where they may block.
    pub retries: Retries,
    /// What the kernel counts of the device below, against what was admitted.
    pub traffic: DeviceTraffic,
    /// One per class, in the order in which the classes were added.
    pub classes: Vec<ClassSnapshot>,
}

impl DiskSnapshot {
    /// Nanoseconds during which queues let nothing through for this reason.
    pub fn blocked_nanos(&self, reason: Blocked) -> u64 {
        self.totals.blocked_nanos[reason.index()]
    }
}

/// How many queues of shards and I/O threads have which backend now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// [`Backend::IoUring`].
    pub io_uring: u32,
    /// [`Backend::LinuxAio`].
    pub linux_aio: u32,
    /// [`Backend::Threads`].
    pub threads: u32,
    /// [`Backend::Null`]: not an interface.
    #[doc(hidden)]
    pub null: u32,
}

impl Engines {
    pub(crate) const fn add(&mut self, backend: Backend) {
        match backend {
            Backend::IoUring => self.io_uring += 1,
            Backend::LinuxAio => self.linux_aio += 1,
            Backend::Threads => self.threads += 1,
            Backend::Null => self.null += 1,
        }
    }
}

/// One class on one disk: all queues together.
#[derive(Clone, Debug, Default)]
pub struct ClassSnapshot {
    /// Its name.
    pub name: String,
    /// Its shares.
    pub shares: u32,
    /// What the queues have counted for it.
    pub counters: ClassCounters,
    /// Permits and requests that are held now although the window waits for them no more, as they
    /// were in the disk for far longer than what it holds should take.
    pub held_long: u32,
    /// For how long some of these are held, at least, in nanoseconds; known to a second.
    pub held_long_nanos: u64,
    /// From being queued to being dispatched.
    pub in_queue: Distribution,
    /// From being dispatched to completion.
    pub in_disk: Distribution,
    /// From being queued to completion.
    pub total: Distribution,
}
