//! The builder of a scheduler.

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

/// The default shares of untagged work.
const DEFAULT_CLASS_SHARES: u32 = 100;
/// The default maximum of requests in a queue.
const REQUESTS_MAX: u32 = 1 << 20;
/// The places for I/O groups: those of all disks, of the default disk, and of as many removed disks
/// whose permits are still held.
const PLACES_MAX: usize = 2 * DISKS_MAX + 1;
/// The default time in the disk from which requests are reported as slow.
const SLOW_FROM: Duration = Duration::from_secs(1);

/// The configuration of a [`Scheduler`]; see [`Scheduler::builder`].
#[derive(Clone, Debug)]
pub struct SchedulerBuilder {
    disks: Vec<DiskConfig>,
    unlisted: Unlisted,
    layout: Layout,
    hook: Hook,
}

impl Scheduler {
    /// A builder, for a scheduler without a properties file.
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

    /// Adds a disk with its own budget. Classes use the first disk unless [another
    /// one](crate::Class::on) is chosen.
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

    /// Sets the treatment of files on disks without an entry; [`Unlisted::Default`] unless set. The
    /// first file of each device is logged. All such files are counted in
    /// [`Snapshot::unlisted_opens`](crate::metrics::Snapshot::unlisted_opens).
    #[must_use]
    pub fn unlisted(mut self, unlisted: Unlisted) -> Self {
        self.unlisted = unlisted;
        self
    }

    /// Divides each disk into this many I/O groups (1 unless set), for machines with several NUMA
    /// nodes: threads on node `n` use group `n` modulo this number, and nothing is shared between
    /// groups. Each has an equal part of the capacity, which others do not get if it is unused.
    /// There are never more groups than NUMA nodes with CPUs, because the parts of the others would
    /// be unused.
    #[must_use]
    pub fn io_groups(mut self, count: usize) -> Self {
        self.layout.io_groups = count;
        self
    }

    /// Sets the most queues per I/O group: one for permits, one per I/O thread, and one per thread
    /// with a queue of its own. 64 unless set, at most [`SHARDS_MAX`].
    #[must_use]
    pub fn shards_max(mut self, count: usize) -> Self {
        self.layout.shards_max = count;
        self
    }

    /// Sets the most requests in one queue, waiting and in the disk together; 1,048,576 unless set.
    /// Memory is allocated when it is needed.
    #[must_use]
    pub fn requests_max(mut self, count: u32) -> Self {
        self.layout.requests_max = count;
        self
    }

    /// Sets how many I/O threads each I/O group has for [files](crate::File); 1 unless set. The
    /// requests of a thread always go to the same I/O thread, on the NUMA node of its first
    /// request. I/O threads are divided among the group's nodes, and each is pinned to the CPUs of
    /// its nodes that the process may use.
    ///
    /// One thread serves some hundred thousand requests per second, and its order is exact. Use
    /// more for faster disks. Each has its own queue, with a part of the disk's window. Their
    /// number is limited so that each has a depth of [`LOCAL_DEPTH_MIN`](crate::LOCAL_DEPTH_MIN),
    /// see [`Disk::io_queues`].
    ///
    /// [`Disk::io_queues`]: crate::Disk::io_queues
    #[must_use]
    pub fn io_queues(mut self, count: usize) -> Self {
        self.layout.io_threads.io_queues = count;
        self
    }

    /// Sets the engine of I/O threads. Unless set it is io_uring, or if that is forbidden linux-aio
    /// or threads, for up to 1024 requests in the disk.
    #[must_use]
    pub fn engine(mut self, engine: EngineConfig) -> Self {
        self.layout.io_threads.engine = engine;
        self
    }

    /// Sets a hook that is called for each [`Event`], which is logged too. It replaces an earlier
    /// hook.
    ///
    /// A separate thread calls it without holding a lock, for one event after the other. It may
    /// block, call the scheduler, and panic. Events during a blocked call are delivered later. If
    /// there are more than 64, some are lost.
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

    /// Sets the time in the disk from which a request is slow: 1 s unless set; `None` for never.
    ///
    /// A slow request is logged when it ends, and reported as an [event](Event::Slow), with its
    /// class, size and operation, its times in the queue and in the disk, and the other requests in
    /// the disk. This applies to requests of files and shards, and to permits, which are in the
    /// disk while they are held. The time in the queue does not matter, because it depends on
    /// shares, limits and load.
    ///
    /// The threshold doubles with each report, and falls by an eighth of its excess over `from`
    /// each second. At most one request per second is reported. So a disk that is always slow is
    /// reported every few seconds, with the number of slow requests in between. Each I/O group
    /// counts separately. For other requests the cost is one comparison.
    #[must_use]
    pub fn slow_requests(mut self, from: Option<Duration>) -> Self {
        self.hook.slow_from = from;
        self
    }

    /// Makes the scheduler. It starts no thread and opens no file, except for
    /// [shared](DiskConfig::shared) disks. The first permit, file or shard starts one thread for
    /// the process, which checks the traffic of the disks once a second.
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
