//! Snapshots of a scheduler's counters.

use forebay_core::{Blocked, ClassCounters, DiskRates, LoadStatus, QueueCounters};

use super::{DeviceTraffic, Discards, Distribution};
use crate::PageCacheCounters;
use crate::engine::{Backend, Retries};

/// All counters of a scheduler.
///
/// They are read one after the other while work continues, so sums may differ slightly. Counters
/// never fall.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// One entry per disk, in the order of the scheduler.
    pub disks: Vec<DiskSnapshot>,
    /// The counters of reads through the page cache: one per class, in the order in which the
    /// classes were added.
    pub page_cache: Vec<PageCacheReads>,
    /// The counters and backlogs of the [deleters](crate::Deleter) of each class, on all disks: one
    /// per class, in the order in which the classes were added.
    pub discards: Vec<Discards>,
    /// The number of files that were looked up or opened and that no entry covers.
    pub unlisted_opens: u64,
    /// The number of lost log messages and [events](crate::SchedulerBuilder::on_event) of all
    /// schedulers of the process: too many waited for a slow logger or hook, or no thread could be
    /// started.
    pub messages_lost: u64,
    /// The number of broken invariants found in this process. Each is a bug in forebay, and may
    /// have lost a request. The first of each queue, and the first outside of the queues, is
    /// logged.
    pub bugs: u64,
    /// The time since the process first used forebay, in nanoseconds. Divide the growth of other
    /// counters by its growth to get rates. 0 if nothing was counted.
    pub uptime_nanos: u64,
}

/// The counters of one class's reads [through the page cache](crate::Class::read_at), on all disks.
///
/// The hit rate depends on the engine's working set and the memory. A steady hit rate is healthy.
/// If it falls, memory is short, or another class evicts this one's pages. If `read_ahead` is well
/// above the bytes of the misses, the kernel reads unneeded pages: `FADV_RANDOM` prevents that.
#[derive(Clone, Debug, Default)]
pub struct PageCacheReads {
    /// The name of the class.
    pub class: String,
    /// The counters.
    pub counters: PageCacheCounters,
}

/// One disk: all its queues together.
#[derive(Clone, Debug, Default)]
pub struct DiskSnapshot {
    /// Its mountpoint, or the name it was given.
    pub name: String,
    /// Its configured rates; `None` if it has none.
    pub rates: Option<DiskRates>,
    /// The disk time that may wait in the disk, in nanoseconds; `None` if there is no bound.
    pub effective_goal_nanos: Option<u64>,
    /// The disk time that may be in flight, in nanoseconds; `None` if there is no bound.
    pub window_nanos: Option<u64>,
    /// The latency of the idle disk for which the effective goal allows, stated or learnt, in
    /// nanoseconds; `None` if it is unknown.
    pub base_latency_nanos: Option<u64>,
    /// Whether the disk reaches its figures, and meets its latency target.
    pub load: LoadStatus,
    /// The disk time of the requests in the disk now, in nanoseconds.
    pub in_flight_nanos: u64,
    /// The number of I/O queues: of shards, of I/O threads, and one for permits after the first was
    /// requested.
    pub queues: u32,
    /// By how much the latest of several queues has missed its planned poll, in nanoseconds. Some
    /// tenths of a second are healthy; if it is more, a thread is stuck.
    pub turn_overdue_nanos: u64,
    /// The counters of all classes together.
    pub totals: QueueCounters,
    /// The backends of queues that have an engine.
    pub engines: Engines,
    /// Reads and writes that were tried without blocking and had to be repeated with blocking.
    pub retries: Retries,
    /// The traffic of the device below by the kernel's count, compared with the admitted bytes.
    pub traffic: DeviceTraffic,
    /// One entry per class, in the order in which the classes were added.
    pub classes: Vec<ClassSnapshot>,
}

impl DiskSnapshot {
    /// The time in nanoseconds in which queues dispatched nothing for this reason.
    pub fn blocked_nanos(&self, reason: Blocked) -> u64 {
        self.totals.blocked_nanos[reason.index()]
    }
}

/// The number of queues of shards and I/O threads by backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// Queues with [`Backend::IoUring`].
    pub io_uring: u32,
    /// Queues with [`Backend::LinuxAio`].
    pub linux_aio: u32,
    /// Queues with [`Backend::Threads`].
    pub threads: u32,
    /// Queues with [`Backend::Null`], which is not a stable interface.
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
    /// Its counters in all queues.
    pub counters: ClassCounters,
    /// The number of permits and requests that are in the disk for far longer than they should be,
    /// and no longer count in the window.
    pub stuck_requests: u32,
    /// The least time for which some of these have been held, in nanoseconds, with a resolution of
    /// a second.
    pub stuck_nanos: u64,
    /// The times from being queued to being dispatched.
    pub in_queue: Distribution,
    /// The times from dispatch to completion.
    pub in_disk: Distribution,
    /// The times from being queued to completion.
    pub total: Distribution,
}
