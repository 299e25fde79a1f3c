//! The handle of a scheduler's disk.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forebay_core::{LoadStatus, Op, QueueCounters};

use crate::engine::Retries;
use crate::registry::{DiskRecord, Shared};

/// A disk of a [`Scheduler`](crate::Scheduler): one budget, which all requests to the disk share.
/// Cheap to clone. Every clone is the same disk.
#[derive(Clone)]
pub struct Disk {
    pub(crate) scheduler: Arc<Shared>,
    pub(crate) record: Arc<DiskRecord>,
}

impl Disk {
    pub(crate) fn of(scheduler: &Arc<Shared>, record: &Arc<DiskRecord>) -> Self {
        Self { scheduler: Arc::clone(scheduler), record: Arc::clone(record) }
    }

    /// Its name in the configuration: the first mountpoint, unless another was
    /// given; `default` for the disk of unlisted devices.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// The disk time that may wait in the disk: the latency goal, or more if the disk needs it.
    /// `None` if nothing is known of the disk, so that nothing is limited.
    pub fn effective_goal(&self) -> Option<Duration> {
        let goal = self.record.here().of(Op::Read).io.effective_goal();
        (goal != forebay_core::DiskTime::MAX).then(|| Duration::from_nanos(goal.as_nanos_ceil()))
    }

    /// The number of I/O threads that serve this disk's [files](crate::File), per I/O group: as
    /// many as [configured](crate::SchedulerBuilder::io_queues), or fewer if each would have too
    /// small a part of the disk's window.
    pub fn io_queues(&self) -> usize {
        self.record.io_threads_here().1.count()
    }

    /// The counters of all queues and classes of this disk: the totals of a
    /// [snapshot](crate::Scheduler::snapshot), for a small part of its cost. All zero in a forked
    /// child.
    pub fn counters(&self) -> QueueCounters {
        let (mut totals, mut retries) = (QueueCounters::default(), Retries::default());
        if !self.record.process.is_here() {
            return totals;
        }
        for group in self.record.groups() {
            group.all_metrics().for_each(|queue| queue.add_totals_to(&mut totals, &mut retries));
        }
        totals
    }

    /// Whether the disk reaches its figures, and meets its latency target.
    pub fn load_status(&self) -> LoadStatus {
        self.record.load()
    }

    /// The disk time of the unfinished requests and permits.
    pub fn in_flight(&self) -> Duration {
        let groups = self.record.groups();
        groups.map(|group| Duration::from_nanos(group.io.in_flight().as_nanos_ceil())).sum()
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("name", &self.record.name).finish_non_exhaustive()
    }
}
