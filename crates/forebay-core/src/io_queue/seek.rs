//! What a request costs that goes on where another ended.
//!
//! A disk that seeks serves what follows each other without a seek, unless its
//! head was elsewhere in between. What it does next is known best when a request
//! goes: so that is when these are priced. One that begins where the last ended
//! that the disk got needs no seek. Nor does one that begins where one ends that
//! the disk still has, if it had nothing but such streams for a window: a disk
//! serves each of them for a while. Beside random requests it does not: each way
//! back to the stream is a seek then, and is charged.
//!
//! A flush of such a disk waits for a turn of the platter. Flushes that go while
//! another one is in the disk wait for the same turn and cost nothing, unless a
//! write has finished in between.

use super::IoQueue;
use super::streams::Span;
use crate::head::mark;
use crate::{Access, ClassId, DiskTime, Op, Time};

/// What a flush costs that waits for the same turn as an earlier one.
const COVERED: DiskTime = DiskTime::from_units(1);

impl IoQueue {
    /// Notes where a new request is, if that matters.
    #[inline(always)]
    pub(super) fn note_place(&mut self, index: u32, access: Access, len: u64) {
        if self.model.seeks() {
            let Access { op, place, .. } = access;
            let span = place.map(|place| {
                let end = mark(op, place.plus(len));
                Span { begin: mark(op, place), end, is_random: false }
            });
            self.streams.add(index, span.unwrap_or(Span::UNKNOWN));
        }
    }

    /// Prices a request that would go to the disk now, if where it is matters.
    #[inline(always)]
    pub(super) fn price_by_place(&mut self, now: Time, index: u32) {
        if self.model.seeks() {
            self.price_seek(now, index);
        }
    }

    #[cold]
    fn price_seek(&mut self, now: Time, index: u32) {
        let request = self.requests.at(index);
        if request.already_charged {
            return;
        }
        let (op, len, begin) = (request.op, request.len, self.streams.span(index).begin);
        if op == Op::Flush {
            let is_covered = self.shared.head.flush_covers();
            let cost = if is_covered { COVERED } else { self.model.cost(op, len) };
            self.requests.at_mut(index).cost = cost;
            return;
        }
        let sequential = self.model.sequential_cost(op, len);
        let only_streams = self.pays_bytes_in_run(index).unwrap_or_else(|| self.only_streams(now));
        let goes_on = if only_streams {
            self.shared.head.is_at(begin) || self.streams.ends_at(begin, &self.requests)
        } else {
            self.shared.head.is_at(begin) && self.outlasts_window(request.class, sequential)
        };
        let cost = if goes_on { sequential } else { self.model.cost(op, len) };
        self.requests.at_mut(index).cost = cost;
    }

    /// Whether the disk had nothing for a window but what goes on where others ended.
    pub(super) fn only_streams(&self, now: Time) -> bool {
        self.nanos_since_random(now) >= self.shared.budget.two_goals().as_nanos_ceil()
    }

    /// The time since a request went to the disk that was of no stream.
    pub(super) fn nanos_since_random(&self, now: Time) -> u64 {
        now.nanos_since(self.shared.head.random_at())
    }

    /// Whether some of a class would wait if each of its requests cost this. One
    /// that has all of them in the disk, beside others, would lose its share.
    fn outlasts_window(&self, class: u16, cost: DiskTime) -> bool {
        let counters = &self.classes[ClassId::index_of(class)];
        let requests = u64::from(counters.queued) + u64::from(counters.in_disk);
        cost.units().saturating_mul(requests) > self.shared.budget.two_goals().units()
    }

    /// A request goes to the disk, whose head moves with it.
    #[inline(always)]
    pub(super) fn move_head(&mut self, now: Time, index: u32, op: Op) {
        if !self.model.seeks() {
            return;
        }
        match op {
            Op::Read | Op::Write => {
                if self.streams.enters_disk(index) {
                    self.shared.head.meets_random(now);
                }
                self.shared.head.moves_to(self.streams.span(index).end);
            }
            Op::Flush => self.shared.head.flush_begins(self.flush_mark(index)),
            Op::Discard => {}
        }
    }

    /// The disk has answered a request.
    #[inline(always)]
    pub(super) fn leave_head(&self, now: Time, index: u32, op: Op) {
        if self.model.seeks() {
            if self.streams.span(index).is_random {
                self.shared.head.meets_random(now);
            }
            if op == Op::Write {
                self.shared.head.write_ends();
            }
            self.leave_flush(index, op);
        }
    }

    /// A request is answered, set aside or overdue: later flushes do not wait for it.
    pub(super) fn leave_flush(&self, index: u32, op: Op) {
        if op == Op::Flush && self.model.seeks() {
            self.shared.head.flush_ends(self.flush_mark(index));
        }
    }

    /// A number for a flush that is in the disk, never [`NOWHERE`].
    fn flush_mark(&self, index: u32) -> u64 {
        (self.shard.index() as u64 + 1) << 32 | u64::from(index)
    }
}
