//! What is dirty of a file, and how much of it was handed over to be written back.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

use forebay_core::{Access, DiskTime, Op};

use super::dirty_pieces::DirtyPiece;
use super::failure::Failure;
use super::ranges::Ranges;
use super::write_back_path::WriteBackPath;
use crate::Class;
use crate::direct_file::file_number;
use crate::dirty_limits::ClassDirt;
use crate::page_cache::{HeldFile, page_size};
use crate::sys::lock::{Lock, LockGuard};
use crate::sys::waker::KeptWaker;
use crate::sys::workers::KeptWorker;
use crate::wait_list::{WaitList, WaiterId, wake_all};

/// The most that is dirty of a file unless its writer says otherwise, in bytes.
pub(super) const DIRTY_MAX: u64 = 16 << 20;
/// Bytes of a part at least, and at most.
const PART_LEN_MIN: u64 = 128 << 10;
const PART_LEN_MAX: u64 = 1 << 20;
/// Parts of a file that ask for a permit or have one, at most; the others wait for these.
const ASKED_MAX: usize = 16;
/// Ranges that do not make a part yet, at most.
const PENDING_MAX: usize = 1024;

/// A part of a file that is to be written back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartRange {
    /// In the order in which they were handed over.
    pub(super) number: u64,
    pub(super) range: Range<u64>,
    /// Its bytes that are to be written.
    pub(super) dirty: u64,
    /// Of these, those that the bounds count.
    pub(super) counted: u64,
}

/// Shared by a writer and the parts that are on their way. It stays until the last of them is on
/// the disk.
pub(super) struct DirtyFile {
    pub(super) held: Arc<HeldFile>,
    /// On the file's disk.
    pub(super) class: Class,
    pub(super) path: WriteBackPath,
    number: u64,
    limits: ClassDirt,
    dirty_max: AtomicU64,
    state: Lock<State>,
    _worker: KeptWorker,
}

#[derive(Default)]
struct State {
    /// Dirty, in whole pages, and not handed over.
    pending: Ranges,
    /// Handed over, and not asked for.
    queue: VecDeque<PartRange>,
    /// The numbers of those in the queue and of those asked for.
    unfinished: BTreeSet<u64>,
    asked: usize,
    last: u64,
    dirty: u64,
    part_len: u64,
    failure: Option<Failure>,
    waiting: WaitList,
}

impl DirtyFile {
    /// Of an open file, to be written in `class`, which is on its disk.
    pub(super) fn new(file: impl AsFd, class: Class, path: WriteBackPath) -> io::Result<Self> {
        let worker = class.disk.workers.keep_one()?;
        let limits = class.disk.dirty_limits.class(class.name());
        let state = State { part_len: part_len(&class), ..State::default() };
        Ok(Self {
            held: Arc::new(HeldFile::new(file.as_fd(), class.disk.held_files())),
            number: file_number(file.as_fd())?,
            class,
            path,
            limits,
            dirty_max: AtomicU64::new(DIRTY_MAX),
            state: Lock::new(state),
            _worker: worker,
        })
    }

    /// How many of `len` bytes are written at a time: up to the end of a part. The kernel keeps
    /// what is written at once in one piece, and says of that as a whole whether it is dirty.
    pub(super) fn len_at_once(&self, offset: u64, len: usize) -> usize {
        let part_len = self.part_len();
        usize::try_from(part_len - offset % part_len).map_or(len, |most| len.min(most))
    }

    /// What of the disk a part of the file is.
    pub(super) fn access(&self, offset: u64) -> Access {
        Op::Write.at(offset).of(self.number)
    }

    pub(super) fn dirty_max(&self) -> u64 {
        self.dirty_max.load(Ordering::Relaxed)
    }

    pub(super) fn set_dirty_max(&self, bytes: u64) {
        self.dirty_max.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that are dirty, as far as is known; zero in a forked child.
    pub(super) fn dirty(&self) -> u64 {
        if self.is_here() { self.lock().dirty } else { 0 }
    }

    /// Counts `bytes` that are about to be dirty, if there may be so many more.
    pub(super) fn try_reserve(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        let fits = state.fits(bytes, self.dirty_max()) && self.limits.try_add(bytes);
        state.dirty += if fits { bytes } else { 0 };
        fits
    }

    /// Its writer is being dropped: the file is closed soon, whatever of it waits.
    pub(super) fn leave_writer(&self) {
        self.held.leave_writer();
        let disk = &self.class.disk;
        if self.dirty() > 0
            && let Ok(files) = disk.held_files()
            && files.close_later(&self.held)
        {
            disk.workers.run(move || files.close_leaving());
        }
    }

    /// For a [`Waiter`](super::waiter::Waiter).
    pub(super) fn wake_at_end(&self, id: WaiterId, waker: &Waker) {
        let waker = KeptWaker::of(waker);
        let before = self.lock().waiting.add(id, waker);
        drop(before);
    }

    /// For a [`Waiter`](super::waiter::Waiter).
    pub(super) fn poll_reserve(&self, bytes: u64, id: WaiterId, waker: &Waker) -> Poll<()> {
        if !self.limits.add_or_wait(bytes, id, waker) {
            return Poll::Pending;
        }
        let mut state = self.lock();
        if state.fits(bytes, self.dirty_max()) {
            state.dirty += bytes;
            return Poll::Ready(());
        }
        drop(state);
        wake_all([self.limits.remove(bytes)]);
        Poll::Pending
    }

    /// It waits no more, neither for this file nor for others.
    pub(super) fn leave(&self, id: WaiterId) {
        if self.is_here() {
            let waker = self.lock().waiting.remove(id);
            drop(waker);
            self.limits.leave(id);
        }
    }

    /// So much of what was reserved did not become dirty.
    pub(super) fn release(&self, bytes: u64) {
        if bytes > 0 {
            let mut state = self.lock();
            state.dirty -= bytes;
            let waiting = state.waiting.take();
            drop(state);
            wake_all([waiting, self.limits.remove(bytes)]);
        }
    }

    /// A range, for which `reserved` bytes were counted, is dirty now. Whether there are parts to
    /// be asked for.
    pub(super) fn mark(&self, range: &Range<u64>, reserved: u64) -> bool {
        let range = whole_pages(range);
        let mut state = self.lock();
        let (whole, added) = state.pending.insert(range);
        state.cut(&whole);
        let pending_max = self.dirty_max() / 2;
        if state.pending.total() > pending_max || state.pending.count() > PENDING_MAX {
            state.hand_over_all();
        }
        let any = state.has_work();
        drop(state);
        self.release(reserved.saturating_sub(added));
        any
    }

    /// Hands over all that is pending; returns the number of the last part that there is.
    pub(super) fn hand_over_all(&self) -> u64 {
        let mut state = self.lock();
        state.part_len = part_len(&self.class);
        state.hand_over_all();
        state.last
    }

    /// Hands over pieces that others have made dirty; the bounds do not count them. Returns the
    /// number of the last part that there is.
    pub(super) fn hand_over_others(&self, pieces: Vec<DirtyPiece>) -> u64 {
        let mut state = self.lock();
        for DirtyPiece { range, dirty } in pieces {
            state.push(range, dirty, 0);
        }
        state.last
    }

    /// The bytes of a part.
    pub(super) fn part_len(&self) -> u64 {
        self.lock().part_len
    }

    /// The next part to ask a permit for.
    pub(super) fn next_part(&self) -> Option<PartRange> {
        let mut state = self.lock();
        if !state.has_work() {
            return None;
        }
        state.asked += 1;
        state.queue.pop_front()
    }

    /// A part is on the disk, or failed there.
    pub(super) fn end_part(&self, part: &PartRange, failure: Option<Failure>) {
        let mut state = self.lock();
        state.asked -= 1;
        state.unfinished.remove(&part.number);
        // The newest: a write is told of each.
        state.failure = failure.or_else(|| state.failure.take());
        state.dirty -= part.counted;
        let waiting = state.waiting.take();
        drop(state);
        wake_all([waiting, self.limits.remove(part.counted)]);
    }

    /// A part got no permit: it is as dirty as before.
    pub(super) fn give_back(&self, part: &PartRange, failure: Failure) {
        let mut state = self.lock();
        let added = if part.counted > 0 { state.pending.insert(part.range.clone()).1 } else { 0 };
        drop(state);
        let counted = part.counted.saturating_sub(added);
        self.end_part(&PartRange { counted, ..part.clone() }, Some(failure));
    }

    /// For a [`Waiter`](super::waiter::Waiter).
    pub(super) fn poll_ended(&self, number: u64, id: WaiterId, waker: &Waker) -> Poll<()> {
        let waker = KeptWaker::of(waker);
        let mut state = self.lock();
        if state.unfinished.first().is_none_or(|first| *first > number) {
            return Poll::Ready(());
        }
        let before = state.waiting.add(id, waker);
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// Keeps what went wrong with a flush for who is told next.
    pub(super) fn keep_failure(&self, failure: Failure) {
        self.lock().failure = Some(failure);
    }

    /// What went wrong since the last flush, if a write is yet to say so.
    pub(super) fn failure_for_write(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.failure.as_mut().and_then(Failure::for_write).map_or(Ok(()), Err)
    }

    /// What went wrong since the last flush, which says so.
    pub(super) fn take_failure(&self) -> io::Result<()> {
        self.lock().failure.take().map_or(Ok(()), |failure| Err(failure.for_flush()))
    }

    /// Whether this is the process that opened it, and no child of it.
    fn is_here(&self) -> bool {
        self.class.disk.process.is_here()
    }

    fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for DirtyFile {
    fn drop(&mut self) {
        // What is pending still is the kernel's to write back, and not ours to count. A child counts
        // nothing, and may find locked for ever what its parent had locked.
        if self.is_here() {
            let dirty = self.lock().dirty;
            wake_all([self.limits.remove(dirty)]);
        }
    }
}

impl State {
    /// Nothing is too large for ever.
    const fn fits(&self, bytes: u64, dirty_max: u64) -> bool {
        self.dirty == 0 || self.dirty.saturating_add(bytes) <= dirty_max
    }

    fn has_work(&self) -> bool {
        self.asked < ASKED_MAX && !self.queue.is_empty()
    }

    /// Hands over the parts that a pending range has, but for its last page: that may be written
    /// on.
    fn cut(&mut self, whole: &Range<u64>) {
        let mut start = whole.start;
        let end_of_part = |start: u64, len: u64| (start - start % len).saturating_add(len);
        while whole.end >= end_of_part(start, self.part_len).saturating_add(page_size()) {
            let Some(part) = self.pending.take(start, self.part_len) else { return };
            start = part.end;
            let len = part.end - part.start;
            self.push(part, len, len);
        }
    }

    fn hand_over_all(&mut self) {
        while let Some(part) = self.pending.take_first(self.part_len) {
            let len = part.end - part.start;
            self.push(part, len, len);
        }
    }

    fn push(&mut self, range: Range<u64>, dirty: u64, counted: u64) {
        self.last += 1;
        self.unfinished.insert(self.last);
        self.queue.push_back(PartRange { number: self.last, range, dirty, counted });
    }
}

/// How many bytes are written back with a permit: as many as cost a quarter of the effective goal,
/// so that a window has several, and between the bounds.
pub(super) fn part_len(class: &Class) -> u64 {
    let group = class.disk.here().of(Op::Write);
    let goal = group.io.effective_goal();
    let most = DiskTime::from_units(goal.units() / 4);
    let mut len = PART_LEN_MAX;
    while len > PART_LEN_MIN && group.cost(Op::Write, len) > most {
        len /= 2;
    }
    len
}

/// The pages that a range of bytes is in.
pub(super) fn whole_pages(range: &Range<u64>) -> Range<u64> {
    let page = page_size();
    range.start - range.start % page..range.end.checked_next_multiple_of(page).unwrap_or(u64::MAX)
}
