//! Making a scheduler.

use std::sync::Arc;
use std::time::Duration;

use forebay_core::{Control, DiskModel, Policy, SHARDS_MAX, ServiceOrder};
use forebay_driver::QUEUES_MAX;

use super::Scheduler;
use crate::engine::EngineConfig;
use crate::events::{Event, Hook};
use crate::io_thread::IoThreadsConfig;
use crate::properties::{DISKS_MAX, Properties};
use crate::registry::{
    Beginning, DEFAULT_CLASS, DEFAULT_DISK, DiskConfig, IO_GROUPS_MAX, Layout, Registry, Rules,
    SchedulerError, Shared, Unlisted, UnlistedRule, check,
};
use crate::sys::numa;

/// Shares of untagged work, unless they are changed.
const DEFAULT_CLASS_SHARES: u32 = 100;
/// Requests that a queue holds, unless another number is set.
/// Places for the I/O groups of disks: of those that there are, of the default disk, and of as many
/// that are gone and of which permits are still held.
const PLACES_MAX: usize = 2 * DISKS_MAX + 1;
const REQUESTS_MAX: u32 = 1 << 20;
/// Requests that were longer in the disk are told, unless another time is set.
const SLOW_FROM: Duration = Duration::from_secs(1);

/// What a [`Scheduler`] is made of; see [`Scheduler::builder`].
#[derive(Clone, Debug)]
pub struct SchedulerBuilder {
    disks: Vec<DiskConfig>,
    unlisted: Unlisted,
    layout: Layout,
    hook: Hook,
}

impl Scheduler {
    /// A scheduler made of values.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::new()
    }
}

impl SchedulerBuilder {
    fn new() -> Self {
        let io_threads = IoThreadsConfig::default();
        let layout =
            Layout { io_groups: 1, shards_max: 64, requests_max: REQUESTS_MAX, io_threads };
        let unlisted = Unlisted::Default;
        let hook = Hook::slow_from(Some(SLOW_FROM));
        Self { disks: Vec::new(), unlisted, layout, hook }
    }

    /// Adds a disk, with a budget of its own. The first one added is the one
    /// that classes mean unless told otherwise.
    #[must_use]
    pub fn disk(mut self, disk: DiskConfig) -> Self {
        self.disks.push(disk);
        self
    }

    /// Adds all disks of an io-properties file.
    #[must_use]
    pub fn properties(mut self, properties: &Properties) -> Self {
        self.disks.extend(properties.disks.iter().map(DiskConfig::from_properties));
        self
    }

    /// Sets what becomes of files whose disk is in no entry;
    /// [`Unlisted::Default`] unless set. The first of each device is told in
    /// the log, and all are counted in
    /// [`Snapshot::unlisted_opens`](crate::metrics::Snapshot::unlisted_opens).
    #[must_use]
    pub fn unlisted(mut self, unlisted: Unlisted) -> Self {
        self.unlisted = unlisted;
        self
    }

    /// Divides each disk into this many I/O groups (1 unless set), for machines
    /// with several NUMA nodes: threads on node `n` use group `n` modulo this
    /// number, and nothing is shared between groups. Each has an equal part
    /// of the capacity, which others do not get when it lies unused. There are
    /// never more groups than nodes that have CPUs, counted from 0: nobody
    /// would use the others' part.
    #[must_use]
    pub fn io_groups(mut self, count: usize) -> Self {
        self.layout.io_groups = count;
        self
    }

    /// Sets the most queues per I/O group: one for permits, one per I/O thread
    /// and one per thread with a queue of its own; 64 unless set, at most
    /// [`SHARDS_MAX`].
    #[must_use]
    pub fn shards_max(mut self, count: usize) -> Self {
        self.layout.shards_max = count;
        self
    }

    /// Sets the most requests that one queue holds, waiting and in the disk
    /// together; a million unless set. Their memory is taken when they come.
    #[must_use]
    pub fn requests_max(mut self, count: u32) -> Self {
        self.layout.requests_max = count;
        self
    }

    /// Sets how many I/O threads each I/O group has for [files](crate::File);
    /// 1 unless set. Requests of one thread always go to the same of them.
    /// They are divided among the group's NUMA nodes, and each is pinned to
    /// the CPUs of its nodes that the process may use. Requests of a thread
    /// go to one of the node that it ran on at its first request.
    ///
    /// One thread serves some hundred thousand requests per second, and knows
    /// of all requests: more are for disks that take more. Each has its own
    /// queue, and with more of them each keeps fewer requests in the disk: a
    /// disk gets no more than leave each a depth of
    /// [`LOCAL_DEPTH_MIN`](crate::LOCAL_DEPTH_MIN), see [`Disk::io_queues`].
    ///
    /// [`Disk::io_queues`]: crate::Disk::io_queues
    #[must_use]
    pub fn io_queues(mut self, count: usize) -> Self {
        self.layout.io_threads.io_queues = count;
        self
    }

    /// Sets how I/O threads reach the kernel: io_uring, or where that is
    /// forbidden linux-aio, or threads, with room for 1024 requests in the disk, unless set.
    #[must_use]
    pub fn engine(mut self, engine: EngineConfig) -> Self {
        self.layout.io_threads.engine = engine;
        self
    }

    /// Has `hook` called for each [`Event`], which the log is told of too: for
    /// programs that act on it. Replaces one that was set before.
    ///
    /// It is called by a thread of its own, with no lock held, for one event
    /// after the other; it may block, ask the scheduler, and panic, which ends
    /// nothing. What happens while it blocks is told later, or not at all where
    /// it is more than 64 messages.
    ///
    /// ```
    /// use forebay::{Event, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().on_event(|event| {
    ///     if let Event::Fallback { reason, .. } = event {
    ///         eprintln!("this will be slower than it could be: {reason}");
    ///     }
    /// });
    /// # scheduler.build()?;
    /// # Ok::<(), forebay::SchedulerError>(())
    /// ```
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.hook.set(hook);
        self
    }

    /// Sets from what time in the disk on a request is slow: 1 s unless set; `None` for never.
    ///
    /// The log is told of it when it ends, and who asked for [events](Event::Slow): its class, size
    /// and operation, its time in the queue and in the disk, and what was in the disk alongside it.
    /// So are requests of files and shards, and permits, which are in the disk while they are held.
    /// How long one waits in the queue makes none slow: that follows from shares, limits and load.
    ///
    /// With each that is told the time doubles, and falls back by an eighth of what it is above
    /// `from` in a second; and no more than one a second is told. So a disk that is slow all the
    /// time is told of every few seconds, with how many were slow meanwhile. Each I/O group counts
    /// for itself. A request that is not slow costs one comparison.
    #[must_use]
    pub fn slow_requests(mut self, from: Option<Duration>) -> Self {
        self.hook.slow_from = from;
        self
    }

    /// Makes the scheduler. Starts no thread and opens no file, except for disks that are
    /// [shared](DiskConfig::shared). With the first permit, file or
    /// shard a thread begins, one for the process, that looks once a second at what the disks did.
    ///
    /// # Errors
    /// [`SchedulerError`]: which value is wrong, and what is allowed.
    pub fn build(&self) -> Result<Scheduler, SchedulerError> {
        let Layout { io_groups, shards_max, requests_max, io_threads } = self.layout;
        if !(1..=IO_GROUPS_MAX).contains(&io_groups) {
            return Err(SchedulerError::IoGroups { count: io_groups });
        }
        let io_groups = io_groups.min(numa::count());
        let layout = Layout { io_groups, ..self.layout };
        if !(1..=SHARDS_MAX).contains(&shards_max) {
            return Err(SchedulerError::Shards { count: shards_max });
        }
        if requests_max == 0 {
            return Err(SchedulerError::Requests);
        }
        let io_queues = io_threads.io_queues;
        if !(1..=shards_max).contains(&io_queues) {
            return Err(SchedulerError::IoQueues { count: io_queues, shards_max });
        }
        let mut registry =
            Registry::new(PLACES_MAX * io_groups * QUEUES_MAX, io_groups as u64, &self.hook);
        let (applied, _) = registry.apply(check(&self.disks, io_groups as u64)?, layout)?;
        let unmeasured = DiskModel::unmeasured();
        let rules = Rules {
            policy: Policy::Unlimited,
            order: ServiceOrder::StartTime,
            duplex: false,
            latency_target: None,
            control: Control::default(),
        };
        let default_disk = registry.add_disk(DEFAULT_DISK, &unmeasured, &rules, layout)?;
        let untagged = registry.add_class(DEFAULT_CLASS, None, DEFAULT_CLASS_SHARES)?;
        let first = registry.disks.first().unwrap_or(&default_disk);
        let unlisted = match &self.unlisted {
            Unlisted::Default => Some(Arc::clone(&default_disk)),
            Unlisted::Error => None,
            Unlisted::Disk(name) => {
                let unknown = || SchedulerError::UnlistedDisk { name: name.clone() };
                Some(Arc::clone(registry.disk(name).ok_or_else(unknown)?))
            }
        };
        let first = Arc::clone(first);
        let unlisted = UnlistedRule::new(unlisted);
        let beginning = Beginning { first, default_disk, untagged, unlisted, layout };
        Ok(Scheduler::new(Shared::new(beginning, registry, &applied), &applied))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_core::PRICE_ONE;

    use super::*;
    use crate::properties::{DiskProperties, MixRegion, RADIUS_ONE, REGION_RADII};

    #[test]
    fn groups_beyond_the_numa_nodes_there_are_do_not_strand_capacity() {
        for wanted in [1, 2, IO_GROUPS_MAX] {
            let scheduler = SchedulerBuilder::new().io_groups(wanted).build().unwrap();
            let groups = scheduler.shared.default_disk.groups().count();
            assert_eq!(groups, wanted.min(numa::count()), "{wanted}");
        }
    }

    #[test]
    fn each_group_has_its_part_of_the_capacity() {
        let rates = forebay_core::DiskRates {
            read_iops: 100_000,
            write_iops: 100_000,
            read_bandwidth: 1_000_000_000,
            write_bandwidth: 1_000_000_000,
        };
        let cost = |parts| {
            let model = DiskConfig::new("disk", rates).model(parts).unwrap();
            model.cost(forebay_core::Op::Read, 4096).as_nanos_ceil()
        };
        assert_eq!([1, 2, 4].map(cost), [10_000, 20_000, 40_000]);
    }

    #[test]
    fn regions_of_a_reloaded_file_price_mixes_for_the_goal_that_the_disk_was_made_with() {
        let dir = tempfile::tempdir().unwrap();
        let rates = forebay_core::DiskRates {
            read_iops: 100_000,
            write_iops: 100_000,
            read_bandwidth: 1_000_000_000,
            write_bandwidth: 1_000_000_000,
        };
        let mut disk = DiskProperties::from_rates(&rates, vec![dir.path().to_owned()]);
        let region = |millis, radius| MixRegion {
            read_percentile: 95.0,
            latency: Duration::from_millis(millis),
            write_bandwidth: rates.write_bandwidth,
            read_iops: rates.read_iops,
            radii: vec![radius; REGION_RADII],
        };
        let policy =
            Policy::PaceWindow { latency_goal: Duration::from_millis(5), base_latency: None };
        let config = DiskConfig::from_properties(&disk).policy(policy);
        let scheduler = SchedulerBuilder::new().disk(config).build().unwrap();
        let record = Arc::clone(&scheduler.shared.registry().unwrap().disks[0]);
        let price_of_half = || {
            let group = record.groups().next().unwrap();
            group
                .newer_model(&mut { u64::MAX })
                .unwrap()
                .mix_prices()
                .map(|prices| prices.at(PRICE_ONE / 2))
        };
        assert_eq!(price_of_half(), None);
        disk.measured.regions = vec![region(1, RADIUS_ONE / 4), region(10, RADIUS_ONE / 2)];
        scheduler.reload(&Properties { disks: vec![disk.clone()] }).unwrap();
        let price = price_of_half().unwrap();
        assert!(price.abs_diff(2 * PRICE_ONE) < PRICE_ONE / 1000, "{price}");
        disk.measured.regions.clear();
        scheduler.reload(&Properties { disks: vec![disk] }).unwrap();
        assert_eq!(price_of_half(), None);
    }
}
