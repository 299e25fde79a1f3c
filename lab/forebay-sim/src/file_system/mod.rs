//! A file system on a simulated disk, as far as deleting goes: XFS with `-o discard`.
//!
//! What is freed, by unlinking a file or punching a hole into it, is remembered with the log. Once
//! the log is on the disk, every `sync_period`, with any flush of a file, or early because there
//! is too much of it, all that was freed by then is discarded at one go: a discard for each
//! extent, or piece of one, as many in the disk at a time as it takes. Deletes may also write
//! metadata, with or without discards.

mod areas;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use forebay_core::{DiskModel, DiskRates, ModelError, Op, Time, saturating_nanos};

use crate::disk::{Command, Completion, Due, MembersInFlight, SimDisk, Status};
pub(crate) use areas::{Area, Areas};

/// The numbers of the file system's own commands have this bit; those of others do not.
const OWN: u64 = 1 << 63;

/// How a file system gives back to its disk what is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Whether it is mounted with `-o discard`: otherwise the disk learns nothing of deletes.
    pub discard: bool,
    /// How often the log is written if nothing else causes it, at least 1 ns: XFS has 30 s unless
    /// `fs.xfs.xfssyncd_centisecs` says otherwise.
    pub sync_period: Duration,
    /// When that happens first after the start of a run: the mount is older than the run.
    pub first_sync: Duration,
    /// The log is written early once this many extents were freed; at least 1.
    pub pending_max: u64,
    /// Discards that are in the disk at a time, at least 1.
    pub in_flight: u64,
    /// Bytes of metadata that each delete writes, together with the log.
    pub metadata: u64,
}

/// XFS writes metadata in pieces of at most [`PIECE`] bytes, [`PIECES`] at a time, unless it is
/// mounted with another `logbsize` or `logbufs`; a piece is a multiple of [`BLOCK`].
const PIECE: u64 = 32 << 10;
const PIECES: usize = 8;
const BLOCK: u64 = 4096;

impl FileSystem {
    /// The default of [`FileSystem::sync_period`].
    pub const SYNC_PERIOD: Duration = Duration::from_secs(30);
    /// The default of [`FileSystem::pending_max`].
    pub const PENDING_MAX: u64 = 1 << 16;
    /// The default of [`FileSystem::in_flight`]: the requests that Linux has for a queue of an
    /// NVMe disk.
    pub const IN_FLIGHT: u64 = 1023;

    /// With this period, and the first sync after half of it.
    pub fn with_period(sync_period: Duration) -> Self {
        Self {
            discard: true,
            sync_period,
            first_sync: sync_period / 2,
            pending_max: Self::PENDING_MAX,
            in_flight: Self::IN_FLIGHT,
            metadata: 0,
        }
    }
}

impl Default for FileSystem {
    fn default() -> Self {
        Self::with_period(Self::SYNC_PERIOD)
    }
}

/// A [`FileSystem`] on a disk. To those who use it it is a disk itself, whose discards are
/// deletes: they are done as soon as they are noted.
pub(crate) struct Mounted {
    disk: Box<dyn SimDisk>,
    options: FileSystem,
    areas: Areas,
    /// Ranges that were freed and are not discarded yet: their first bytes and those behind.
    freed: VecDeque<(u64, u64)>,
    /// How many ranges were put there, how many of these the log on the disk has, and how many
    /// were taken.
    noted: u64,
    committed: u64,
    taken: u64,
    /// Extents freed since the log was last written.
    pending: u64,
    /// When it is written next for its age; never while there is nothing in it.
    next_sync: Time,
    /// Bytes of metadata that the log does not have, and those that are yet to be sent to the disk.
    unwritten: u64,
    unsent: u64,
    /// Pieces of metadata in the disk, and flushes that wait for them.
    pieces: BTreeSet<u64>,
    waiting: Vec<u64>,
    /// Flushes, and how many ranges the log on the disk has once each is done.
    flushes: BTreeMap<u64, u64>,
    in_flight: u64,
    /// How many commands of its own it has sent.
    sent: u64,
    done: Due,
}

impl Mounted {
    pub(crate) fn new(disk: Box<dyn SimDisk>, options: FileSystem, areas: Areas) -> Self {
        Self {
            disk,
            options,
            areas,
            freed: VecDeque::new(),
            noted: 0,
            committed: 0,
            taken: 0,
            pending: 0,
            next_sync: Time::MAX,
            unwritten: 0,
            unsent: 0,
            pieces: BTreeSet::new(),
            waiting: Vec::new(),
            flushes: BTreeMap::new(),
            in_flight: 0,
            sent: 0,
            done: Due::default(),
        }
    }

    /// Notes that a range is free.
    fn free(&mut self, now: Time, start: u64, len: u64) {
        let FileSystem { discard, metadata, .. } = self.options;
        if len == 0 || !discard && metadata == 0 {
            return;
        }
        let end = start.saturating_add(len);
        if self.pending == 0 {
            self.next_sync = self.sync_after(now);
        }
        if discard {
            self.freed.push_back((start, end));
            self.noted += 1;
        }
        self.unwritten = self.unwritten.saturating_add(metadata);
        self.pending = self.pending.saturating_add(self.areas.extents(start, end));
        if self.pending >= self.options.pending_max {
            self.sync(now);
        }
    }

    /// When the log is written for its age if something is put into it now.
    fn sync_after(&self, now: Time) -> Time {
        let first = Time::from_nanos(saturating_nanos(self.options.first_sync));
        if now < first {
            return first;
        }
        let period = saturating_nanos(self.options.sync_period).max(1);
        let passed = now.nanos_since(first) / period;
        first.plus_nanos((passed + 1).saturating_mul(period))
    }

    /// Writes the log.
    fn sync(&mut self, now: Time) {
        let id = self.own_number();
        self.flush(now, id);
    }

    /// Writes the metadata and then flushes: what was freed until now may be discarded after it.
    fn flush(&mut self, now: Time, id: u64) {
        (self.pending, self.next_sync) = (0, Time::MAX);
        self.flushes.insert(id, self.noted);
        self.unsent = self.unsent.saturating_add(core::mem::take(&mut self.unwritten));
        self.waiting.push(id);
        self.write_metadata(now);
    }

    /// Sends metadata, as many pieces as may be in the disk, and behind the last one the flushes.
    fn write_metadata(&mut self, now: Time) {
        while self.unsent > 0 && self.pieces.len() < PIECES {
            let len = self.unsent.next_multiple_of(BLOCK).min(PIECE);
            self.unsent = self.unsent.saturating_sub(len);
            let id = self.own_number();
            self.pieces.insert(id);
            self.disk.submit(now, id, Command { op: Op::Write, offset: 0, len });
        }
        if self.pieces.is_empty() {
            for id in self.waiting.drain(..) {
                self.disk.submit(now, id, Command { op: Op::Flush, offset: 0, len: 0 });
            }
        }
    }

    fn own_number(&mut self) -> u64 {
        self.sent += 1;
        OWN | self.sent
    }

    /// Does all that happens until `now`, in order.
    fn advance(&mut self, now: Time) {
        loop {
            let disk = self.disk.next_event().unwrap_or(Time::MAX);
            let next = disk.min(self.next_sync);
            if next > now || next == Time::MAX {
                return;
            }
            if self.next_sync == next {
                self.sync(next);
            }
            while let Some(completion) = self.disk.poll_completion(next) {
                self.completed(completion);
            }
            self.write_metadata(next);
            self.send(next);
        }
    }

    /// The disk is done with a command.
    fn completed(&mut self, completion: Completion) {
        if let Some(noted) = self.flushes.remove(&completion.id) {
            self.committed = self.committed.max(noted);
        } else if self.pieces.remove(&completion.id) {
            return;
        } else if completion.id & OWN != 0 {
            self.in_flight -= 1;
        }
        if completion.id & OWN == 0 {
            self.done.push(completion);
        }
    }

    /// Sends discards, as many as may be in the disk.
    fn send(&mut self, now: Time) {
        while self.in_flight < self.options.in_flight && self.taken < self.committed {
            let Some((start, end)) = self.freed.front_mut() else { return };
            let piece = self.areas.end_of_extent(*start).min(*end);
            let command = Command { op: Op::Discard, offset: *start, len: piece - *start };
            *start = piece;
            if piece == *end {
                self.freed.pop_front();
                self.taken += 1;
            }
            self.in_flight += 1;
            let id = self.own_number();
            self.disk.submit(now, id, command);
        }
    }
}

impl SimDisk for Mounted {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.advance(now);
        match command.op {
            Op::Discard => {
                self.free(now, command.offset, command.len);
                self.done.push(Completion { id, at: now, status: Status::Done });
            }
            Op::Flush => self.flush(now, id),
            Op::Read | Op::Write => self.disk.submit(now, id, command),
        }
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.done.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        let next = self.next_sync.min(self.disk.next_event().unwrap_or(Time::MAX));
        let next = next.min(self.done.next().unwrap_or(Time::MAX));
        (next < Time::MAX).then_some(next)
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn seeks(&self) -> bool {
        self.disk.seeks()
    }

    fn model(&self) -> Result<DiskModel, ModelError> {
        self.disk.model()
    }

    fn members(&self, now: Time) -> MembersInFlight {
        self.disk.members(now)
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}

#[cfg(test)]
mod tests;
