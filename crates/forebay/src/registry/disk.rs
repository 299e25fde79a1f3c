//! A disk of a scheduler: its I/O groups and I/O threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_core::{DiskRates, LoadStatus, Policy};

use super::class::ClassRecord;
use crate::dirty_limits::DirtyLimits;
use crate::disk_groups::DiskGroups;
use crate::failures::FailedFiles;
use crate::io_thread::{IoThreads, IoThreadsConfig};
use crate::metrics::{Held, QueueMetrics};
use crate::page_cache::DiskFiles;
use crate::permit::DiskGroup;
use crate::properties::Sharing;
use crate::siblings::Segment;
use crate::sys::clock::Clock;
use crate::sys::fork::Process;
use crate::sys::lock::Lock;
use crate::sys::numa;
use crate::sys::workers::Workers;

/// The most threads of a disk that write back dirty bytes. Each waits for one part.
const WORKERS_MAX: usize = 32;

/// The scheduler's state of a disk.
#[derive(Debug)]
pub(crate) struct DiskRecord {
    pub(crate) name: String,
    pub(crate) process: Process,
    /// The policy with which it was made. No reload changes it.
    pub(crate) policy: Policy,
    /// One node, or one per NUMA node, each with its part of the capacity.
    nodes: Box<[Node]>,
    /// The configured rates.
    rates: Lock<Option<DiskRates>>,
    sharing: Lock<SharingState>,
    /// The threads that write back dirty bytes, and flush.
    pub(crate) workers: Workers,
    /// The descriptors of files that are written through the page cache.
    pub(crate) held_files: DiskFiles,
    /// The limits of dirty bytes.
    pub(crate) dirty_limits: Arc<DirtyLimits>,
    /// The files with bytes that could not be written back.
    pub(crate) failed_files: Arc<FailedFiles>,
    /// The bytes of a sector, if the disk misreports them; otherwise 1.
    sector: AtomicUsize,
}

/// The present sharing of a disk.
#[derive(Debug, Default)]
struct SharingState {
    sharing: Sharing,
    /// The number of the present thread, among all that there were.
    epoch: u64,
    /// The segment, until a thread takes it.
    segment: Option<Segment>,
}

/// A disk, for the threads of one NUMA node.
#[derive(Debug)]
struct Node {
    groups: DiskGroups,
    io_threads: IoThreads,
}

impl DiskRecord {
    pub(crate) fn new(
        name: String,
        policy: Policy,
        nodes: Vec<DiskGroups>,
        io_threads: &IoThreadsConfig,
    ) -> Self {
        let count = nodes.len();
        let node = |(index, groups)| {
            let io_threads = IoThreads::new(io_threads, |node| node % count == index);
            Node { groups, io_threads }
        };
        let nodes = nodes.into_iter().enumerate().map(node).collect();
        let process = Process::current();
        let (rates, sector) = (Lock::default(), AtomicUsize::new(1));
        let sharing = Lock::default();
        let (workers, dirty_limits) = (Workers::new(WORKERS_MAX, None), Arc::default());
        let (held_files, failed_files) = (DiskFiles::default(), Arc::default());
        Self {
            name,
            process,
            policy,
            nodes,
            rates,
            sharing,
            workers,
            held_files,
            dirty_limits,
            failed_files,
            sector,
        }
    }

    /// All I/O groups.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Arc<DiskGroup>> {
        self.nodes.iter().flat_map(|node| node.groups.iter())
    }

    /// The I/O groups of one direction of a duplex disk, or of all requests.
    pub(super) fn groups_of(&self, direction: usize) -> impl Iterator<Item = &Arc<DiskGroup>> {
        self.nodes.iter().filter_map(move |node| node.groups.iter().nth(direction))
    }

    /// Whether the disk reaches its figures, over all I/O groups.
    pub(crate) fn load(&self) -> LoadStatus {
        LoadStatus::of(self.groups().map(|group| &group.io), Clock::of_process().now())
    }

    /// The bytes of all requests and permits that have ended, by [`Op::index`].
    pub(crate) fn bytes(&self) -> [u64; 4] {
        let mut sum = [0u64; 4];
        for queue in self.groups().flat_map(|group| group.all_metrics()) {
            sum.iter_mut().zip(queue.bytes()).for_each(|(to, from)| *to = to.wrapping_add(from));
        }
        sum
    }

    /// Whether the window of an I/O group has ever given up a request.
    pub(crate) fn has_given_up(&self) -> bool {
        self.groups().any(|group| group.published_metrics().any(QueueMetrics::has_given_up))
    }

    /// The holding times of a class's requests, with the number of those that were given up.
    pub(crate) fn held(&self, class: &ClassRecord) -> Held {
        held_in(self.groups(), class)
    }

    /// [`Self::held`] for one direction: see [`DiskRecord::groups_of`].
    pub(super) fn held_of(&self, direction: usize, class: &ClassRecord) -> Held {
        held_in(self.groups_of(direction), class)
    }

    /// Whether reads and writes have separate budgets.
    pub(crate) fn is_duplex(&self) -> bool {
        self.nodes.iter().any(|node| node.groups.is_duplex())
    }

    /// Wakes all queues, so that they and their waiters notice changes.
    pub(crate) fn wake_queues(&self) {
        self.groups().for_each(|group| group.wakers.wake_all());
    }

    /// Sets the sharing of the disk, and ends the previous one.
    pub(super) fn set_sharing(&self, sharing: &Sharing, segment: Option<Segment>) {
        let mut state = self.sharing.lock();
        if state.sharing == *sharing {
            return;
        }
        let epoch = state.epoch + 1;
        *state = SharingState { sharing: sharing.clone(), epoch, segment };
        let part = if let Sharing::Part(part) = sharing { Some(*part) } else { None };
        self.set_parts([part; 2]);
    }

    /// Takes the segment that no thread has taken, with the number of its thread.
    pub(super) fn take_segment(&self) -> Option<(Segment, u64)> {
        let mut state = self.sharing.lock();
        Some((state.segment.take()?, state.epoch))
    }

    /// Whether the thread with this number is the present one.
    pub(super) fn is_shared_since(&self, epoch: u64) -> bool {
        self.sharing.lock().epoch == epoch
    }

    /// Sets the parts that the thread with this number computed. Returns whether it is still the
    /// present one.
    pub(super) fn set_parts_since(&self, epoch: u64, parts: [Option<u32>; 2]) -> bool {
        let state = self.sharing.lock();
        let is_present = state.epoch == epoch;
        if is_present {
            self.set_parts(parts);
        }
        is_present
    }

    fn set_parts(&self, parts: [Option<u32>; 2]) {
        let now = Clock::of_process().now();
        for (direction, part) in parts.into_iter().enumerate() {
            self.groups_of(direction).for_each(|group| group.io.set_part(now, part));
        }
    }

    /// Notes the configured rates.
    pub(crate) fn set_rates(&self, rates: DiskRates) {
        *self.rates.lock() = Some(rates);
    }

    /// Notes the sector size in bytes, if the disk misreports it.
    pub(crate) fn set_sector(&self, bytes: Option<u64>) {
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        self.sector.store(bytes.unwrap_or(1), Ordering::Relaxed);
    }

    /// The size that [`DiskRecord::set_sector`] has set, or 1.
    pub(crate) fn sector(&self) -> usize {
        self.sector.load(Ordering::Relaxed)
    }

    /// The configured rates, if there are any.
    pub(crate) fn rates(&self) -> Option<DiskRates> {
        *self.rates.lock()
    }

    /// The I/O groups of the calling thread, by the NUMA node on which it runs.
    pub(crate) fn here(&self) -> &DiskGroups {
        &self.node_here().groups
    }

    /// The I/O groups of the calling thread, with their I/O threads.
    pub(crate) fn io_threads_here(&self) -> (&DiskGroups, &IoThreads) {
        let Node { groups, io_threads } = self.node_here();
        (groups, io_threads)
    }

    #[inline]
    fn node_here(&self) -> &Node {
        match &self.nodes[..] {
            [node] => node,
            nodes => &nodes[numa::node_of_this_thread() % nodes.len()],
        }
    }
}

fn held_in<'a>(groups: impl Iterator<Item = &'a Arc<DiskGroup>>, class: &ClassRecord) -> Held {
    let mut held = Held::default();
    for group in groups {
        if let Some(id) = class.id(group.slot) {
            group.published_metrics().for_each(|queue| queue.add_held_to(id, &mut held));
        }
    }
    held
}
