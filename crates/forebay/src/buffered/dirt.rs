//! What is dirty of a file, what of that was handed over to be written back, and who waits.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

use super::dirty_pieces::DirtyPiece;
use super::failure::Failure;
use crate::dirty_limits::{ClassDirt, HandOver, RoomQueue};
use crate::failures::Ranges;
use crate::page_cache::{page_size, whole_pages};
use crate::sys::fork::Process;
use crate::sys::lock::{Lock, LockGuard};
use crate::sys::waker::{KeptWaker, wake_all};
use crate::wait_list::{WaitList, WaiterId};

/// The most that is dirty of a file unless its writer says otherwise, in bytes.
const DIRTY_MAX: u64 = 16 << 20;
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

/// The dirty ranges of a file. A write reserves room for its bytes, and marks what it has made dirty.
/// That is pending until it is handed over: in whole parts at once, and the rest when it is much,
/// when somebody waits for room, and before a flush. Each part asks for a permit, and ends.
pub(super) struct Dirt {
    process: Process,
    limits: ClassDirt,
    dirty_max: AtomicU64,
    /// Bytes that stay pending until a flush, though they make whole parts.
    write_back_after: AtomicU64,
    state: Lock<State>,
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
    /// The last for which a thread waits that holds a permit.
    holder_last: u64,
    dirty: u64,
    part_len: u64,
    failure: Option<Failure>,
    /// Those that wait until parts have ended.
    waiting: WaitList,
    /// Writes that wait until less of the file is dirty.
    room: RoomQueue,
    /// Whether it is listed as a file with pending dirt.
    is_listed: bool,
}

impl Dirt {
    /// Of a file whose parts have `part_len` bytes: a power of two of at least a page.
    pub(super) fn new(limits: ClassDirt, part_len: u64) -> Self {
        let state = State { part_len, ..State::default() };
        Self {
            process: Process::current(),
            limits,
            dirty_max: AtomicU64::new(DIRTY_MAX),
            write_back_after: AtomicU64::new(0),
            state: Lock::new(state),
        }
    }

    /// How many of `len` bytes are written at a time: up to the end of a part, which is never more
    /// than half of what may be dirty. The kernel keeps what is written at once in one piece, and
    /// says of that as a whole whether it is dirty.
    pub(super) fn len_at_once(&self, offset: u64, len: usize) -> usize {
        let part_len = self.part_len();
        usize::try_from(part_len - offset % part_len).map_or(len, |most| len.min(most))
    }

    pub(super) fn dirty_max(&self) -> u64 {
        self.dirty_max.load(Ordering::Relaxed)
    }

    pub(super) fn set_dirty_max(&self, bytes: u64) {
        self.dirty_max.store(bytes, Ordering::Relaxed);
        let mut state = self.lock();
        state.part_len = self.at_most_half(state.part_len);
    }

    /// Half of what may be dirty at most.
    pub(super) fn write_back_after(&self) -> u64 {
        self.write_back_after.load(Ordering::Relaxed).min(self.dirty_max() / 2)
    }

    pub(super) fn set_write_back_after(&self, bytes: u64) {
        self.write_back_after.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that are not handed over.
    pub(super) fn pending(&self) -> u64 {
        self.lock().pending.total()
    }

    /// The length of parts where they would have `part_len` bytes: half of what may be dirty at
    /// most, so that one can be written while another is on its way.
    fn at_most_half(&self, part_len: u64) -> u64 {
        let half = (self.dirty_max() / 2).max(page_size());
        part_len.min(1 << half.ilog2())
    }

    /// Bytes that are dirty, as far as is known; zero in a forked child.
    pub(super) fn dirty(&self) -> u64 {
        if self.process.is_here() { self.lock().dirty } else { 0 }
    }

    /// Counts `bytes` that are about to be dirty, if they fit within the bounds and no write waits
    /// for room.
    pub(super) fn try_reserve(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        let fits = state.room.is_empty()
            && state.fits(bytes, self.dirty_max())
            && self.limits.try_add(bytes);
        state.dirty += if fits { bytes } else { 0 };
        drop(state);
        if !fits {
            // Bytes that were counted for a moment may have hidden room from a waiting write.
            wake_all(self.limits.take_fitting());
        }
        fits
    }

    /// Counts `bytes` that are about to be dirty beyond the bounds, for a thread that holds a permit.
    /// Parts that could make room may wait for that permit.
    pub(super) fn reserve_for_holder(&self, bytes: u64) {
        self.limits.add(bytes);
        self.lock().dirty += bytes;
    }

    /// For a [`Waiter`](super::waiter::Waiter). Where it is pending the caller hands over all dirt.
    pub(super) fn poll_reserve(&self, bytes: u64, id: WaiterId, waker: &Waker) -> Poll<()> {
        let kept = KeptWaker::of(waker);
        let mut state = self.lock();
        let fits = state.room.is_turn_of(id) && state.fits(bytes, self.dirty_max());
        if !fits {
            let before = state.room.add(id, bytes, kept);
            drop(state);
            drop(before);
            wake_all(self.limits.leave(id));
            return Poll::Pending;
        }
        state.dirty += bytes;
        let before = state.room.remove(id);
        drop(state);
        drop(before);
        if self.limits.add_or_wait(bytes, id, kept) {
            return Poll::Ready(());
        }
        self.end_dirty(bytes, Vec::new());
        Poll::Pending
    }

    /// Removes a waiter, which may wait for this file or for room in its class.
    pub(super) fn leave(&self, id: WaiterId) {
        if self.process.is_here() {
            let mut state = self.lock();
            let wakers = (state.waiting.remove(id), state.room.remove(id));
            let woken = state.take_fitting(self.dirty_max());
            drop(state);
            drop(wakers);
            wake_all(woken.into_iter().chain(self.limits.leave(id)));
        }
    }

    /// Gives back reserved bytes that did not become dirty.
    pub(super) fn release(&self, bytes: u64) {
        if bytes > 0 {
            self.end_dirty(bytes, self.limits.remove(bytes));
        }
    }

    /// Takes bytes off what is dirty of the file, and wakes writes that have room now, and `others`.
    fn end_dirty(&self, bytes: u64, others: Vec<KeptWaker>) {
        let mut state = self.lock();
        state.dirty -= bytes;
        let woken = state.take_fitting(self.dirty_max());
        drop(state);
        wake_all(woken.into_iter().chain(others));
    }

    /// Marks a range of `file` dirty, for which `reserved` bytes were counted. Returns whether there
    /// are parts to ask permits for. While a write waits for room, nothing stays pending.
    pub(super) fn mark(
        &self,
        range: &Range<u64>,
        reserved: u64,
        file: impl FnOnce() -> Weak<dyn HandOver>,
    ) -> bool {
        let (range, write_back_after) = (whole_pages(range), self.write_back_after());
        let mut state = self.lock();
        let (whole, added) = state.pending.insert(range);
        if write_back_after == 0 {
            state.cut(&whole);
        } else {
            state.hand_over_but(write_back_after);
        }
        let is_much =
            state.pending.total() > self.dirty_max() / 2 || state.pending.count() > PENDING_MAX;
        if is_much || !state.room.is_empty() || self.limits.anybody_waits() {
            state.hand_over_all();
        }
        let is_unlisted = !state.is_listed && state.pending.count() > 0;
        state.is_listed |= is_unlisted;
        let mut any = state.has_work();
        drop(state);
        if is_unlisted {
            any |= self.list(file());
        }
        self.release(reserved.saturating_sub(added));
        any
    }

    /// Lists the file as one with pending dirt, or hands the dirt over if a write waits for room.
    /// Returns whether there are parts to ask permits for.
    #[cold]
    fn list(&self, file: Weak<dyn HandOver>) -> bool {
        if self.limits.list(file) {
            return false;
        }
        self.hand_over_listed(self.part_len());
        self.lock().has_work()
    }

    /// Hands over all that is pending, because somebody waits for room: the file is listed no more.
    pub(super) fn hand_over_listed(&self, part_len: u64) {
        self.lock().is_listed = false;
        self.hand_over_all(part_len);
    }

    /// Hands over all that is pending in parts of `part_len` bytes; returns the number of the last
    /// part that there is.
    pub(super) fn hand_over_all(&self, part_len: u64) -> u64 {
        let part_len = self.at_most_half(part_len);
        let mut state = self.lock();
        state.part_len = part_len;
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

    /// A thread that holds a permit waits for what is handed over now.
    pub(super) fn hurry_for_holder(&self) {
        let mut state = self.lock();
        state.holder_last = state.last;
    }

    /// The next part to ask a permit for, and whether a thread that holds one waits for it.
    pub(super) fn next_part(&self) -> Option<(PartRange, bool)> {
        let mut state = self.lock();
        if !state.has_work() {
            return None;
        }
        state.asked += 1;
        let part = state.queue.pop_front()?;
        let for_holder = part.number <= state.holder_last;
        Some((part, for_holder))
    }

    /// Whether a part has not ended.
    pub(super) fn has_unfinished(&self) -> bool {
        !self.lock().unfinished.is_empty()
    }

    /// Ends the parts that were not asked for; returns how many of their bytes are dirty.
    pub(super) fn cancel_queue(&self) -> u64 {
        let mut state = self.lock();
        let queue = std::mem::take(&mut state.queue);
        queue.iter().for_each(|part| _ = state.unfinished.remove(&part.number));
        let waiting = state.waiting.take();
        drop(state);
        wake_all(waiting);
        self.release(queue.iter().map(|part| part.counted).sum());
        queue.iter().map(|part| part.dirty).sum()
    }

    /// A part is on the disk, or failed there, or got no permit.
    pub(super) fn end_part(&self, part: &PartRange, failure: Option<Failure>) {
        let mut state = self.lock();
        state.asked -= 1;
        state.unfinished.remove(&part.number);
        state.failure = failure.or_else(|| state.failure.take());
        state.dirty -= part.counted;
        let waiting = state.waiting.take();
        let writes = state.take_fitting(self.dirty_max());
        drop(state);
        let others = self.limits.remove(part.counted);
        wake_all(waiting.into_iter().chain(writes).chain(others));
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

    /// Fails if parts got no permit since the last flush and no write has reported that.
    pub(super) fn failure_for_write(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.failure.as_mut().and_then(Failure::for_write).map_or(Ok(()), Err)
    }

    /// Fails if parts got no permit since the last flush, for the flush that reports it.
    pub(super) fn take_failure(&self) -> io::Result<()> {
        self.lock().failure.take().map_or(Ok(()), |failure| Err(failure.for_flush()))
    }

    fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Dirt {
    fn drop(&mut self) {
        // What is pending still is the kernel's to write back. A child counts nothing, and may find
        // locked for ever what its parent had locked.
        if self.process.is_here() {
            let dirty = self.lock().dirty;
            wake_all(self.limits.remove(dirty));
        }
    }
}

impl State {
    /// Nothing is too large for ever.
    const fn fits(&self, bytes: u64, dirty_max: u64) -> bool {
        self.dirty == 0 || self.dirty.saturating_add(bytes) <= dirty_max
    }

    /// Whom to wake of those that wait for room, without a lock.
    fn take_fitting(&mut self, dirty_max: u64) -> Vec<KeptWaker> {
        let room = dirty_max.saturating_sub(self.dirty);
        self.room.take_fitting((self.dirty > 0).then_some(room))
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
        self.hand_over_but(0);
    }

    /// Hands over parts from the beginning of the file on until at most `left` bytes are pending.
    fn hand_over_but(&mut self, left: u64) {
        while self.pending.total() > left
            && let Some(part) = self.pending.take_first(self.part_len)
        {
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
