//! The table of the requests of a queue, which wait or are in the disk. Also the parts of large
//! requests, and how their results are joined.

use alloc::vec::Vec;

use crate::{DiskTime, Op, Time};

/// Encoding: No request, which is the end of a list.
pub(crate) const NONE: u32 = u32::MAX;

/// The name of a request in its queue, from [`enqueue`](crate::IoQueue::enqueue) until it completes or
/// is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    index: u32,
    generation: u32,
}

impl Ticket {
    /// A small number, unique among the present requests of the queue: for tables kept next to it.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) const fn slot(self) -> u32 {
        self.index
    }
}

/// The state of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Free,
    Queued,
    InDisk,
    /// It was dispatched, and has returned its room because its owner was not ready.
    Parked,
    /// It has been in the disk for so long that the window no longer counts it.
    Overdue,
}

/// A request. Its links belong to the list of its state: the free list, the queue of its class, or the
/// requests in the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) cost: DiskTime,
    pub(crate) len: u64,
    pub(crate) enqueued_at: Time,
    pub(crate) dispatched_at: Time,
    /// When a disk that keeps up answers. [`Time::MAX`], for unknown, on a lone shard.
    pub(crate) due_at: Time,
    next: u32,
    previous: u32,
    generation: u32,
    pub(crate) class: u16,
    pub(crate) op: Op,
    pub(crate) state: State,
    /// Whether the disk was nearly idle at the dispatch, so that its service time is the base latency.
    pub(crate) nearly_idle: bool,
    /// Whether its owner holds another request in the disk until this one is done.
    pub(crate) nested: bool,
    /// Whether it was dispatched before, and charged then.
    pub(crate) already_charged: bool,
    /// Whether no request of its class waited on this shard when it came.
    pub(crate) fresh: bool,
}

impl Request {
    /// The ticket of the request that has this index.
    pub(crate) fn ticket(&self, index: u32) -> Ticket {
        Ticket { index, generation: self.generation }
    }
}

/// A first-in first-out list of requests, linked through the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Fifo {
    pub(crate) fn head(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(crate) fn tail(self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

/// All requests of one queue. The table grows to the largest number of requests at once, and then
/// allocates no more memory.
#[derive(Debug)]
pub(crate) struct Requests {
    slots: Vec<Request>,
    free: u32,
    len: u32,
    max: u32,
}

impl Requests {
    pub(crate) fn new(max: u32) -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0, max: max.min(NONE - 1) }
    }

    /// Whether there is room for one more request.
    pub(crate) fn has_room(&self) -> bool {
        self.len < self.max
    }

    /// The number of requests.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The most requests at once.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Adds a queued request, in no list yet; `None` if the table is full.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        class: u16,
        op: Op,
        len: u64,
        cost: DiskTime,
        nested: bool,
    ) -> Option<Ticket> {
        let request = |generation| Request {
            cost,
            len,
            enqueued_at: now,
            dispatched_at: now,
            due_at: Time::MAX,
            next: NONE,
            previous: NONE,
            generation,
            class,
            op,
            state: State::Queued,
            nearly_idle: false,
            nested,
            already_charged: false,
            fresh: false,
        };
        let index = self.free;
        let Some(slot) = self.slots.get_mut(index as usize) else {
            return self.insert_in_new_slot(request(0));
        };
        self.free = slot.next;
        let generation = slot.generation;
        *slot = request(generation);
        self.len += 1;
        Some(Ticket { index, generation })
    }

    #[cold]
    fn insert_in_new_slot(&mut self, request: Request) -> Option<Ticket> {
        let index = self.slots.len() as u32;
        if index >= self.max {
            return None;
        }
        self.slots.push(request);
        self.len += 1;
        Some(Ticket { index, generation: request.generation })
    }

    /// Removes a request that is in no list. Its ticket is void from now on.
    pub(crate) fn remove(&mut self, index: u32) {
        let free = self.free;
        let slot = self.at_mut(index);
        debug_assert!(slot.state != State::Free, "a request is removed once");
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next = free;
        self.free = index;
        self.len -= 1;
    }

    /// The request of a ticket; `None` if the ticket is void.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Request> {
        self.slots.get(ticket.index as usize).filter(|request| {
            request.generation == ticket.generation && request.state != State::Free
        })
    }

    /// The state of the request with this index; free if there is none.
    pub(crate) fn state(&self, index: u32) -> State {
        self.slots.get(index as usize).map_or(State::Free, |request| request.state)
    }

    /// Whether the request is in the disk, even if the window no longer counts it.
    pub(crate) fn is_in_disk(&self, index: u32) -> bool {
        matches!(self.state(index), State::InDisk | State::Overdue)
    }

    pub(crate) fn at(&self, index: u32) -> &Request {
        &self.slots[index as usize]
    }

    pub(crate) fn at_mut(&mut self, index: u32) -> &mut Request {
        &mut self.slots[index as usize]
    }

    /// The next request in the list of this one.
    pub(crate) fn after(&self, index: u32) -> Option<u32> {
        let next = self.at(index).next;
        (next != NONE).then_some(next)
    }

    pub(crate) fn push_back(&mut self, fifo: &mut Fifo, index: u32) {
        let tail = core::mem::replace(&mut fifo.tail, index);
        let request = self.at_mut(index);
        request.previous = tail;
        request.next = NONE;
        self.set_next(fifo, tail, index);
    }

    pub(crate) fn push_front(&mut self, fifo: &mut Fifo, index: u32) {
        let head = core::mem::replace(&mut fifo.head, index);
        let request = self.at_mut(index);
        request.previous = NONE;
        request.next = head;
        self.set_previous(fifo, head, index);
    }

    /// Removes the first request of a list.
    pub(crate) fn unlink_first(&mut self, fifo: &mut Fifo, index: u32) {
        debug_assert_eq!(fifo.head, index, "it is the first");
        let next = self.at(index).next;
        fifo.head = next;
        self.set_previous(fifo, next, NONE);
    }

    pub(crate) fn unlink(&mut self, fifo: &mut Fifo, index: u32) {
        let Request { next, previous, .. } = *self.at(index);
        debug_assert_eq!(previous == NONE, fifo.head == index, "a request is in its list");
        debug_assert_eq!(next == NONE, fifo.tail == index, "a request is in its list");
        self.set_next(fifo, previous, next);
        self.set_previous(fifo, next, previous);
    }

    /// Sets the request that follows `index` in a list. [`NONE`] is no index of the table; what follows
    /// it is the head.
    #[inline(always)]
    fn set_next(&mut self, fifo: &mut Fifo, index: u32, next: u32) {
        match self.slots.get_mut(index as usize) {
            Some(request) => request.next = next,
            None => fifo.head = next,
        }
    }

    #[inline(always)]
    fn set_previous(&mut self, fifo: &mut Fifo, index: u32, previous: u32) {
        match self.slots.get_mut(index as usize) {
            Some(request) => request.previous = previous,
            None => fifo.tail = previous,
        }
    }
}

/// The parts of a request, as an iterator. All have `part_max` bytes except the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    at: u64,
    end: u64,
    part_max: u64,
}

impl Parts {
    /// Splits `len` bytes into parts of at most `part_max` bytes (at least 1).
    pub fn new(len: u64, part_max: u64) -> Self {
        Self { at: 0, end: len, part_max: part_max.max(1) }
    }
}

impl Iterator for Parts {
    /// The offset from the start of the request, and the length, both in bytes.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let at = self.at;
        let len = (self.end - at).min(self.part_max);
        self.at += len;
        (len > 0).then_some((at, len))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from((self.end - self.at).div_ceil(self.part_max));
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The result of a request whose parts complete in any order: the bytes of the longest prefix that
/// succeeded. An error is returned only if that prefix is empty. The memory does not depend on the
/// number of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join<E> {
    parts_left: u64,
    /// Bytes up to the end of what the first incomplete part transferred.
    prefix: u64,
    /// The offset of the first incomplete part.
    short_at: u64,
    error: Option<E>,
}

impl<E> Join<E> {
    /// A join of all of `parts`.
    pub fn new(parts: &Parts) -> Self {
        let parts_left = (parts.end - parts.at).div_ceil(parts.part_max);
        Self { parts_left, prefix: parts.end, short_at: parts.end, error: None }
    }

    /// Adds the result of the part of `len` bytes at offset `at`. Returns whether it was the last one.
    /// Results beyond the number of parts are ignored.
    pub fn part_done(&mut self, at: u64, len: u64, outcome: Result<u64, E>) -> bool {
        let done = match &outcome {
            Ok(bytes) => (*bytes).min(len),
            Err(_) => 0,
        };
        if done < len && at < self.short_at {
            (self.short_at, self.prefix) = (at, at + done);
            self.error = outcome.err();
        }
        self.parts_left = self.parts_left.saturating_sub(1);
        self.parts_left == 0
    }

    /// The result of the whole request, once every part is done. An error is returned once.
    ///
    /// # Errors
    /// The error of the first incomplete part, if it transferred nothing and begins the request.
    pub fn finish(&mut self) -> Result<u64, E> {
        match self.error.take() {
            Some(error) if self.prefix == 0 => Err(error),
            _ => Ok(self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn insert(requests: &mut Requests) -> Ticket {
        requests.insert(Time::ZERO, 0, Op::Read, 1, DiskTime::ZERO, false).unwrap()
    }

    #[test]
    fn a_fifo_gives_up_any_of_its_members() {
        let mut requests = Requests::new(8);
        let mut fifo = Fifo::default();
        let tickets: Vec<_> = (0..4).map(|_| insert(&mut requests)).collect();
        for ticket in &tickets {
            requests.push_back(&mut fifo, ticket.slot());
        }
        for gone in [1, 3, 0] {
            requests.unlink(&mut fifo, tickets[gone].slot());
        }
        assert_eq!(fifo.head(), Some(tickets[2].slot()));
        requests.unlink(&mut fifo, tickets[2].slot());
        assert!(fifo.is_empty());
    }

    #[test]
    fn a_ticket_is_void_once_its_request_is_gone() {
        let mut requests = Requests::new(2);
        let first = insert(&mut requests);
        requests.remove(first.slot());
        let second = insert(&mut requests);
        assert_eq!(first.index(), second.index());
        assert!(requests.get(first).is_none());
        assert!(requests.get(second).is_some());
    }

    #[test]
    fn the_table_is_bounded() {
        let mut requests = Requests::new(2);
        insert(&mut requests);
        insert(&mut requests);
        assert_eq!(requests.insert(Time::ZERO, 0, Op::Read, 1, DiskTime::ZERO, false), None);
        assert_eq!(requests.len(), 2);
    }

    #[test]
    fn parts_cover_the_request() {
        assert_eq!(Parts::new(24, 12).collect::<Vec<_>>(), [(0, 12), (12, 12)]);
        assert_eq!(Parts::new(33, 13).collect::<Vec<_>>(), [(0, 13), (13, 13), (26, 7)]);
        assert_eq!(Parts::new(17, 21).collect::<Vec<_>>(), [(0, 17)]);
        assert_eq!(Parts::new(0, 21).count(), 0);
    }

    #[test]
    fn seastars_three_outcomes() {
        // all whole; the second part halved; the second part failed
        for (second, expected) in [(Ok(100), 300), (Ok(50), 150), (Err("EIO"), 100)] {
            let parts = Parts::new(300, 100);
            let mut join = Join::new(&parts);
            assert!(!join.part_done(200, 100, Ok(100)));
            assert!(!join.part_done(100, 100, second));
            assert!(join.part_done(0, 100, Ok(100)));
            assert_eq!(join.finish(), Ok(expected));
        }
        let mut join = Join::new(&Parts::new(300, 100));
        join.part_done(100, 100, Err("late"));
        join.part_done(0, 100, Err("first"));
        assert_eq!(join.finish(), Err("first"));
    }

    proptest! {
        #[test]
        fn the_prefix_never_depends_on_the_order(
            outcomes in prop::collection::vec((0u64..=10, prop::bool::ANY), 1..20),
            seed in any::<u64>(),
        ) {
            let parts = Parts::new(outcomes.len() as u64 * 10, 10);
            let outcome = |index: usize| match outcomes[index] {
                (bytes, true) => Ok(bytes),
                (_, false) => Err(index),
            };
            let mut order: Vec<usize> = (0..outcomes.len()).collect();
            order.sort_by_key(|&index| (index as u64 + 1).wrapping_mul(seed | 1));
            let mut join = Join::new(&parts);
            for &index in &order {
                join.part_done(index as u64 * 10, 10, outcome(index));
            }
            let mut expected = 0;
            let mut error = None;
            for index in 0..outcomes.len() {
                match outcome(index) {
                    Ok(10) => expected += 10,
                    Ok(bytes) => { expected += bytes; break }
                    Err(index) => { error = Some(index); break }
                }
            }
            let expected = match error {
                Some(error) if expected == 0 => Err(error),
                _ => Ok(expected),
            };
            prop_assert_eq!(join.finish(), expected);
        }
    }
}
