//! The dirty ranges of a file, the parts queued for write-back, and the writes that wait for them.

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

/// The default limit of dirty bytes per file.
const DIRTY_MAX: u64 = 16 << 20;
/// The most parts of a file that ask for a permit or hold one. The others wait in the queue.
const ACTIVE_PARTS_MAX: usize = 16;
/// The most pending ranges that do not make a part yet.
const PENDING_MAX: usize = 1024;

/// A part of a file that is to be written back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartRange {
    /// The sequence number of the part in its file.
    pub(super) number: u64,
    pub(super) range: Range<u64>,
    /// The number of its dirty bytes.
    pub(super) dirty: u64,
    /// The number of its dirty bytes that count for the bounds.
    pub(super) counted: u64,
}

/// The dirty ranges of a file. A write reserves room for its bytes, and then marks its range dirty.
/// The range is pending until it is handed over for write-back: whole parts at once, and the rest
/// when it has become large, when a write waits for room, and before a flush. Each part asks for a
/// permit, is written back, and ends.
pub(super) struct Dirt {
    process: Process,
    limits: ClassDirt,
    dirty_max: AtomicU64,
    /// The number of bytes that stay pending until a flush, even if they make whole parts.
    write_back_after: AtomicU64,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// Dirty ranges of whole pages that are not handed over.
    pending: Ranges,
    /// Parts that are handed over and do not ask for a permit yet.
    queue: VecDeque<PartRange>,
    /// The numbers of the parts that are queued, ask for a permit, or are written back.
    unfinished: BTreeSet<u64>,
    active: usize,
    last: u64,
    /// The number of the last part for which a thread with a permit waits.
    holder_last: u64,
    dirty: u64,
    part_len: u64,
    failure: Option<Failure>,
    /// The waiters for the end of parts.
    waiting: WaitList,
    /// The writes that wait for room.
    room: RoomQueue,
    /// Whether the file is listed among those with pending dirty bytes.
    is_registered: bool,
}

impl Dirt {
    /// The dirt of a file whose parts have `part_len` bytes, which is a power of two of at least a
    /// page.
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

    /// How many of `len` bytes one write takes: up to the end of a part, which is never longer than
    /// half of the dirty limit. The kernel may keep the bytes of one write in one large page, which
    /// it reports as dirty as a whole.
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

    /// The number of dirty bytes up to which nothing is written back before a flush: the set value,
    /// but at most half of the file's dirty limit.
    pub(super) fn write_back_after(&self) -> u64 {
        self.write_back_after.load(Ordering::Relaxed).min(self.dirty_max() / 2)
    }

    pub(super) fn set_write_back_after(&self, bytes: u64) {
        self.write_back_after.store(bytes, Ordering::Relaxed);
    }

    /// The number of dirty bytes that are not handed over.
    pub(super) fn pending(&self) -> u64 {
        self.lock().pending.total()
    }

    /// The length of parts in bytes: `part_len`, but at most half of the dirty limit. So one part
    /// can be filled while another is written back.
    fn at_most_half(&self, part_len: u64) -> u64 {
        let half = (self.dirty_max() / 2).max(page_size());
        part_len.min(1 << half.ilog2())
    }

    /// The number of dirty bytes, as far as it is known. 0 in a forked child.
    pub(super) fn dirty(&self) -> u64 {
        if self.process.is_here() { self.lock().dirty } else { 0 }
    }

    /// Reserves `bytes` that are about to become dirty, if they fit within the bounds and no write
    /// waits for room.
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

    /// Reserves `bytes` beyond the bounds, for a thread that holds a permit. Parts that could make
    /// room may wait for that permit.
    pub(super) fn reserve_for_holder(&self, bytes: u64) {
        self.limits.add(bytes);
        self.lock().dirty += bytes;
    }

    /// Reserves `bytes` for a [`Waiter`](super::waiter::Waiter) when its turn has come. While the
    /// result is pending, the caller hands over all dirty ranges.
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

    /// Subtracts bytes that are no longer dirty, and wakes the writes that have room now, and
    /// `others`.
    fn end_dirty(&self, bytes: u64, others: Vec<KeptWaker>) {
        let mut state = self.lock();
        state.dirty -= bytes;
        let woken = state.take_fitting(self.dirty_max());
        drop(state);
        wake_all(woken.into_iter().chain(others));
    }

    /// Marks a range of `file` dirty, for which `reserved` bytes were reserved. Returns whether
    /// there are parts that need permits. While a write waits for room, nothing stays pending.
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
        let is_new = !state.is_registered && state.pending.count() > 0;
        state.is_registered |= is_new;
        let mut any = state.has_work();
        drop(state);
        if is_new {
            any |= self.list(file());
        }
        self.release(reserved.saturating_sub(added));
        any
    }

    /// Lists the file among those with pending dirty bytes, or hands them over if a write waits for
    /// room. Returns whether there are parts that need permits.
    #[cold]
    fn list(&self, file: Weak<dyn HandOver>) -> bool {
        if self.limits.list(file) {
            return false;
        }
        self.hand_over_for_room(self.part_len());
        self.lock().has_work()
    }

    /// Hands over all pending ranges, because a write waits for room. The file is no longer listed.
    pub(super) fn hand_over_for_room(&self, part_len: u64) {
        self.lock().is_registered = false;
        self.hand_over_all(part_len);
    }

    /// Hands over all pending ranges in parts of `part_len` bytes. Returns the number of the last
    /// part.
    pub(super) fn hand_over_all(&self, part_len: u64) -> u64 {
        let part_len = self.at_most_half(part_len);
        let mut state = self.lock();
        state.part_len = part_len;
        state.hand_over_all();
        state.last
    }

    /// Hands over pieces that other writers have made dirty, which the bounds do not count. Returns
    /// the number of the last part.
    pub(super) fn hand_over_others(&self, pieces: Vec<DirtyPiece>) -> u64 {
        let mut state = self.lock();
        for DirtyPiece { range, dirty } in pieces {
            state.push(range, dirty, 0);
        }
        state.last
    }

    /// The length of a part in bytes.
    pub(super) fn part_len(&self) -> u64 {
        self.lock().part_len
    }

    /// Notes that a thread with a permit waits for all parts so far.
    pub(super) fn hurry_for_holder(&self) {
        let mut state = self.lock();
        state.holder_last = state.last;
    }

    /// The next part that needs a permit, and whether a thread with a permit waits for it.
    pub(super) fn next_part(&self) -> Option<(PartRange, bool)> {
        let mut state = self.lock();
        if !state.has_work() {
            return None;
        }
        state.active += 1;
        let part = state.queue.pop_front()?;
        let for_holder = part.number <= state.holder_last;
        Some((part, for_holder))
    }

    /// Whether any part has not ended.
    pub(super) fn has_unfinished(&self) -> bool {
        !self.lock().unfinished.is_empty()
    }

    /// Ends the queued parts. Returns the number of their dirty bytes.
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

    /// Ends a part: it is on the disk, failed there, or got no permit.
    pub(super) fn end_part(&self, part: &PartRange, failure: Option<Failure>) {
        let mut state = self.lock();
        state.active -= 1;
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

    /// Fails if parts got no permit since the last flush, and no write has reported that yet.
    pub(super) fn failure_for_write(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.failure.as_mut().and_then(Failure::for_write).map_or(Ok(()), Err)
    }

    /// Fails if parts got no permit since the last flush. The calling flush reports it, once.
    pub(super) fn take_failure(&self) -> io::Result<()> {
        self.lock().failure.take().map_or(Ok(()), |failure| Err(failure.for_flush()))
    }

    fn lock(&self) -> LockGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Dirt {
    fn drop(&mut self) {
        // The kernel writes back the ranges that are still pending. A forked child counts nothing,
        // and must not wait for locks that its parent held.
        if self.process.is_here() {
            let dirty = self.lock().dirty;
            wake_all(self.limits.remove(dirty));
        }
    }
}

impl State {
    /// Whether `bytes` more may be dirty. A file without dirty bytes always has room, so that no
    /// write waits for ever.
    const fn fits(&self, bytes: u64, dirty_max: u64) -> bool {
        self.dirty == 0 || self.dirty.saturating_add(bytes) <= dirty_max
    }

    /// The writes that wait for room and fit now, to be woken after the lock is released.
    fn take_fitting(&mut self, dirty_max: u64) -> Vec<KeptWaker> {
        let room = dirty_max.saturating_sub(self.dirty);
        self.room.take_fitting((self.dirty > 0).then_some(room))
    }

    fn has_work(&self) -> bool {
        self.active < ACTIVE_PARTS_MAX && !self.queue.is_empty()
    }

    /// Hands over the whole parts of a pending range, except its last page, which the next write
    /// may continue.
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

    /// Hands over parts from the beginning of the file until at most `left` bytes are pending.
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
