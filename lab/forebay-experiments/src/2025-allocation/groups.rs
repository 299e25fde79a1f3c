//! Allocation groups of a file system in front of a disk: appends wait for their extents.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap};

use forebay_core::{DiskRates, Op, Time};
use forebay_sim::disk::{Command, Completion, SimDisk};

use crate::articles::y2025::traced_array::FILE_SPACING;

/// How a file system allocates extents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocation {
    /// Each group allocates one extent at a time; files are in the groups in turn.
    pub(super) groups: u64,
    /// For so long.
    pub(super) takes_nanos: u64,
    /// Bytes of an extent.
    pub(super) extent: u64,
}

/// A disk whose growing files wait for their extents.
pub(super) struct Allocating<D> {
    disk: D,
    allocation: Allocation,
    /// When each group has done what it was asked.
    groups: HashMap<u64, Time>,
    /// The bytes that each file was given, and when it has the last of them.
    files: HashMap<u64, (u64, Time)>,
    /// What waits for its extent, by when that is there.
    waiting: BTreeMap<(Time, u64), Command>,
}

impl<D: SimDisk> Allocating<D> {
    pub(super) fn new(disk: D, allocation: Allocation) -> Self {
        let (groups, files, waiting) = Default::default();
        Self { disk, allocation, groups, files, waiting }
    }

    /// When the file has the extents of this write.
    fn allocated(&mut self, now: Time, command: Command) -> Time {
        let Allocation { groups, takes_nanos, extent } = self.allocation;
        let (file, start) = (command.offset / FILE_SPACING, command.offset % FILE_SPACING);
        let group = self.groups.entry(file % groups).or_insert(now);
        let (bytes, ready) = self.files.entry(file).or_insert((0, now));
        while *bytes < start + command.len {
            *group = (*group).max(now).plus_nanos(takes_nanos);
            (*bytes, *ready) = (*bytes + extent, *group);
        }
        *ready
    }

    /// Sends what has its extents.
    fn advance(&mut self, now: Time) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let ((at, id), command) = first.remove_entry();
            self.disk.submit(at, id, command);
        }
    }
}

impl<D: SimDisk> SimDisk for Allocating<D> {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let at = if command.op == Op::Write { self.allocated(now, command) } else { now };
        self.waiting.insert((at.max(now), id), command);
        self.advance(now);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.disk.poll_completion(now)
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.waiting.keys().next().map(|&(at, _)| at);
        next.into_iter().chain(self.disk.next_event()).min()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}
