//! The places of requests on a disk that seeks, their costs there, and the stream that has the head.
//!
//! A disk that seeks serves consecutive requests without a seek, unless its head was elsewhere in between.
//! What it does next is known best when a request is dispatched, so that is when requests are priced. A
//! request needs no seek if it begins where the last dispatched one ended. A disk that has had only streams
//! for a window serves each of them for a while. So there a request needs no seek either if it begins where
//! one ends that is still in the disk. Among random requests each way back to a stream is a seek, and is
//! charged.
//!
//! A flush of such a disk waits for a turn of the platter. Flushes that are dispatched while another one is
//! in the disk wait for the same turn and cost nothing, unless a write has finished in between.
//!
//! Each change between a stream and other requests costs a seek. A disk that chooses the nearest request
//! leaves either the stream or the others alone for long. So a stream whose turn it is, with more requests
//! waiting, gets the disk for itself. This is a *run*. It begins when the requests in the disk have been
//! served, and lasts for [`RUN_NANOS`] of disk time. It is charged as always, so classes that wait during the
//! run go first afterwards.
//!
//! Decision: `docs/decisions/0003-sequential-requests.md`.
//! Decision: `docs/decisions/0004-head-runs.md`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::peers::Peers;
use crate::requests::Request;
use crate::shard_set::{SHARDS_MAX, ShardId, ShardSet, WakeList};
use crate::sync::{AtomicU64, Ordering};
use crate::{Access, DiskModel, DiskTime, Op, Place, Time};

/// Encoding: The mark of a request without a place.
pub(crate) const NOWHERE: u64 = 0;

/// The head of a group's disk, as far as its place is known.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The [`mark`] of the end of the last dispatched request.
    latest_end: AtomicU64,
    /// When the disk last got or completed a random request, in nanoseconds.
    random_at: AtomicU64,
    /// The mark of the flush in the disk that covers all finished writes, or [`NOWHERE`].
    flush: AtomicU64,
    /// The stream that has the head.
    pub(crate) run: HeadRun,
}

impl Head {
    pub(crate) fn is_at(&self, place: u64) -> bool {
        place != NOWHERE && self.latest_end.load(Ordering::Relaxed) == place
    }

    pub(crate) fn meets_random(&self, now: Time) {
        self.random_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn random_at(&self) -> Time {
        Time::from_nanos(self.random_at.load(Ordering::Relaxed))
    }

    pub(crate) fn moves_to(&self, place: u64) {
        self.latest_end.store(place, Ordering::Relaxed);
    }

    /// Whether a flush is in the disk that covers all finished writes.
    pub(crate) fn flush_covers(&self) -> bool {
        self.flush.load(Ordering::Relaxed) != NOWHERE
    }

    /// Notes a dispatched flush. It covers all finished writes unless an earlier one does.
    pub(crate) fn flush_begins(&self, mark: u64) {
        let _ = self.flush.compare_exchange(NOWHERE, mark, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes that the flush is not in the disk any more, because it is completed, parked or given up.
    pub(crate) fn flush_ends(&self, mark: u64) {
        let _ = self.flush.compare_exchange(mark, NOWHERE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes a finished write. Flushes in the disk do not cover it.
    pub(crate) fn write_ends(&self) {
        self.flush.store(NOWHERE, Ordering::Relaxed);
    }
}

/// A number for a place and an operation, never [`NOWHERE`].
pub(crate) fn mark(op: Op, Place { file, offset }: Place) -> u64 {
    // splitmix64, so that neighbouring places are far apart in the table
    let mut mixed = file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset ^ (op.index() as u64) << 62;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
    }
    (mixed ^ mixed >> 31).max(1)
}

/// The longest time for which a stream keeps the head of a disk that seeks, in nanoseconds of disk time
/// (50 ms). The way there and back is two seeks and two half turns, on a slow disk 20 ms. That is less than a
/// third of the disk's time. A longer run delays the requests of others by as much.
pub const RUN_NANOS: u64 = 50_000_000;

/// The most that a class is charged for a run, in nanoseconds of disk time (500 ms). Each request may be
/// charged a seek. Without this bound, small requests would keep their class from the disk for many seconds
/// after the run.
pub const RUN_CHARGED_NANOS: u64 = 10 * RUN_NANOS;

/// Encoding: The bits of [`HeadRun::held`] for one more than the number of the shard. With the next bit they
/// replace the lowest bits of the time, which is therefore exact to 1024 ns.
const SHARD: u64 = 0x1ff;
/// Encoding: The bit of [`HeadRun::held`] that says whether the run has begun.
const BEGUN: u64 = 0x200;
const _: () = assert!(SHARDS_MAX as u64 <= SHARD, "a shard fits into its bits");

/// The run of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) class: u16,
    /// The [`mark`] where the next request of the stream begins.
    pub(crate) next: u64,
    /// Disk time that the run still has.
    pub(crate) left: DiskTime,
    /// Disk time that its class may still be charged for it.
    pub(crate) chargeable: DiskTime,
    /// The time until which it waits for the requests in the disk; `None` once its first request is
    /// dispatched.
    pub(crate) begins_by: Option<Time>,
    /// Whether its requests are charged for their bytes alone.
    pub(crate) pays_bytes: bool,
}

/// A stream that has the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) shard: ShardId,
    pub(crate) until: Time,
    /// Whether its first request is dispatched; until then it waits for the requests in the disk.
    pub(crate) has_begun: bool,
}

/// The run of a group, which its shards share.
#[derive(Debug, Default)]
pub(crate) struct HeadRun {
    /// An encoded [`Held`], or zero. The lowest bits are one more than the number of the shard. Above them
    /// are [`BEGUN`] and the time.
    held: AtomicU64,
    /// Shards that wait for its end.
    waiting: ShardSet,
}

impl HeadRun {
    /// The stream that has the head.
    pub(crate) fn held(&self, now: Time) -> Option<Held> {
        Self::decoded(self.held.load(Ordering::Acquire), now)
    }

    fn decoded(held: u64, now: Time) -> Option<Held> {
        let until = Time::from_nanos(held & !(SHARD | BEGUN));
        let shard = ShardId((held & SHARD).checked_sub(1)? as u16);
        (until > now).then_some(Held { shard, until, has_begun: held & BEGUN != 0 })
    }

    /// Gives the head to a stream, unless one of another shard has it. Returns whether it did.
    pub(crate) fn give(&self, now: Time, to: Held) -> bool {
        let Held { shard, until, has_begun } = to;
        let found = self.held.load(Ordering::Acquire);
        let is_free = Self::decoded(found, now).is_none_or(|held| held.shard == shard);
        let begun = if has_begun { BEGUN } else { 0 };
        let given = until.as_nanos() & !(SHARD | BEGUN) | begun | (shard.index() as u64 + 1);
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        is_free && self.held.compare_exchange(found, given, order.0, order.1).is_ok()
    }

    /// Takes the head back from the stream of `shard`, if it has it.
    pub(crate) fn give_back(&self, shard: ShardId) {
        let found = self.held.load(Ordering::Acquire);
        if found & SHARD == shard.index() as u64 + 1 {
            let _ = self.held.compare_exchange(found, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Notes that a shard must be woken when the head is given back.
    pub(crate) fn wait(&self, shard: ShardId) {
        self.waiting.insert(shard);
    }

    /// Moves the shards that wait for the end of the run into `wakes`.
    pub(crate) fn take_waiting(&self, peers: &Peers, now: Time, wakes: &mut WakeList) {
        peers.take_all(&self.waiting, now, wakes);
    }
}

/// The number of ends of requests that are remembered. Where two fall on the same entry, a seek is charged
/// that does not happen. More entries make that rarer and take 16 bytes each.
const ENDS: usize = 1024;
/// The cost of a flush that waits for the same turn of the platter as an earlier one: the least cost, 1/64
/// ns.
const COVERED: DiskTime = DiskTime::from_units(1);
/// The time without a random request after which streams are alone, in nanoseconds (20 runs).
const ALONE_NANOS: u64 = 20 * RUN_NANOS;

/// Where a request begins and ends, and whether it is random: it continues no other.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: u64,
    end: u64,
    is_random: bool,
}

impl Span {
    const UNKNOWN: Self = Self { begin: NOWHERE, end: NOWHERE, is_random: false };
}

/// The end of a dispatched request.
#[derive(Clone, Copy, Debug)]
struct End {
    place: u64,
    index: u32,
}

/// The costs of requests of no bytes, of each kind.
fn empty_requests(model: &DiskModel) -> [(u64, DiskTime); 4] {
    Op::ALL.map(|op| (0, model.cost(op, 0)))
}

/// The costs of the requests of a queue, and their places.
#[derive(Debug)]
pub(crate) struct SeekPricer {
    model: DiskModel,
    /// The length and cost of the latest request of each kind: most are as long as the one before.
    latest: [(u64, DiskTime); 4],
    head: Arc<Head>,
    shard: ShardId,
    /// By the index of the request. It grows to the most requests that were present at once.
    spans: Vec<Span>,
    /// Ends of dispatched requests, by the place.
    ends: Vec<End>,
    run: Option<Run>,
}

impl SeekPricer {
    pub(crate) fn new(model: DiskModel, head: Arc<Head>, shard: ShardId) -> Self {
        let latest = empty_requests(&model);
        Self { model, latest, head, shard, spans: Vec::new(), ends: Vec::new(), run: None }
    }

    #[inline]
    pub(crate) fn model(&self) -> &DiskModel {
        &self.model
    }

    pub(crate) fn set_model(&mut self, model: DiskModel) {
        self.latest = empty_requests(&model);
        self.model = model;
    }

    /// The cost of a request, whatever its place.
    #[inline(always)]
    pub(crate) fn access_cost(&mut self, access: &Access, len: u64) -> DiskTime {
        let (latest_len, cost) = self.latest[access.op.index()];
        if len == latest_len && access.op != Op::Discard { cost } else { self.cost(access, len) }
    }

    #[inline(never)]
    fn cost(&mut self, access: &Access, len: u64) -> DiskTime {
        let cost = self.model.access_cost(access, len);
        self.latest[access.op.index()] = (len, cost);
        cost
    }

    #[inline(always)]
    pub(crate) fn seeks(&self) -> bool {
        self.model.seeks()
    }

    /// Notes the place of a new request, if the disk seeks.
    #[inline(always)]
    pub(crate) fn note_place(&mut self, index: u32, access: Access, len: u64) {
        if self.seeks() {
            self.add_span(index, access, len);
        }
    }

    #[cold]
    fn add_span(&mut self, index: u32, Access { op, place, .. }: Access, len: u64) {
        let span = place.map(|place| {
            let end = mark(op, place.plus(len));
            Span { begin: mark(op, place), end, is_random: false }
        });
        if self.spans.len() <= index as usize {
            self.spans.resize(index as usize + 1, Span::UNKNOWN);
        }
        self.spans[index as usize] = span.unwrap_or(Span::UNKNOWN);
    }

    fn span(&self, index: u32) -> Span {
        self.spans.get(index as usize).copied().unwrap_or(Span::UNKNOWN)
    }

    /// The dispatched request that ends at a place, as far as it is remembered.
    fn ended_at(&self, place: u64) -> Option<u32> {
        let end = self.ends.get(place as usize % ENDS)?;
        (end.place == place && place != NOWHERE).then_some(end.index)
    }

    /// Whether a request that is in the disk ends at a place.
    fn ends_at(&self, place: u64, is_in_disk: impl Fn(u32) -> bool) -> bool {
        self.ended_at(place).is_some_and(|index| self.span(index).end == place && is_in_disk(index))
    }

    /// The cost of a request if it is dispatched now. `class_requests` of its class wait or are in the disk.
    /// `window` is the window by the figures.
    #[cold]
    pub(crate) fn price(
        &self,
        now: Time,
        (index, request): (u32, &Request),
        (class_requests, window): (u64, DiskTime),
        is_in_disk: impl Fn(u32) -> bool,
    ) -> DiskTime {
        let Request { op, len, .. } = *request;
        let full = self.model.cost(op, len);
        if op == Op::Flush {
            return if self.head.flush_covers() { COVERED } else { full };
        }
        let begin = self.span(index).begin;
        let sequential = self.model.sequential_cost(op, len);
        let run = self.run.filter(|_| self.is_of_run(index));
        let only_streams = run.map_or_else(|| self.only_streams(now, window), |run| run.pays_bytes);
        let goes_on = if only_streams {
            self.head.is_at(begin) || self.ends_at(begin, is_in_disk)
        } else {
            // a class with all of its requests in the disk, among others, would lose its share
            let outlasts = sequential.units().saturating_mul(class_requests) > window.units();
            self.head.is_at(begin) && outlasts
        };
        if goes_on { sequential } else { full }
    }

    /// Whether the disk has had only streams for the time of a window.
    fn only_streams(&self, now: Time, window: DiskTime) -> bool {
        self.nanos_since_random(now) >= window.as_nanos_ceil()
    }

    /// The time since the disk last got or completed a random request, in nanoseconds.
    fn nanos_since_random(&self, now: Time) -> u64 {
        now.nanos_since(self.head.random_at())
    }

    /// Notes a dispatched request, with which the head moves.
    #[inline(always)]
    pub(crate) fn enter_disk(&mut self, now: Time, index: u32, op: Op) {
        if self.seeks() {
            self.move_head(now, index, op);
        }
    }

    #[cold]
    fn move_head(&mut self, now: Time, index: u32, op: Op) {
        match op {
            Op::Read | Op::Write => {
                let Span { begin, end: place, .. } = self.span(index);
                let is_random = self.ended_at(begin).is_none();
                if let Some(span) = self.spans.get_mut(index as usize) {
                    span.is_random = is_random;
                }
                self.ends.resize(ENDS, End { place: NOWHERE, index: 0 });
                self.ends[place as usize % ENDS] = End { place, index };
                if is_random {
                    self.head.meets_random(now);
                }
                self.head.moves_to(place);
            }
            Op::Flush => self.head.flush_begins(self.flush_mark(index)),
            Op::Discard => {}
        }
    }

    /// Notes that a disk that seeks has completed a request.
    #[cold]
    pub(crate) fn leave_disk(&self, now: Time, index: u32, op: Op) {
        if self.span(index).is_random {
            self.head.meets_random(now);
        }
        if op == Op::Write {
            self.head.write_ends();
        }
        self.end_flush(index, op);
    }

    /// Notes that a request is completed, parked or given up. It covers no later flushes then.
    pub(crate) fn end_flush(&self, index: u32, op: Op) {
        if op == Op::Flush && self.seeks() {
            self.head.flush_ends(self.flush_mark(index));
        }
    }

    /// A number for a flush that is in the disk, never [`NOWHERE`].
    fn flush_mark(&self, index: u32) -> u64 {
        (self.shard.index() as u64 + 1) << 32 | u64::from(index)
    }

    #[inline(always)]
    pub(crate) fn run(&self) -> Option<Run> {
        self.run
    }

    /// Whether a request is the next one of this queue's run.
    #[inline(always)]
    pub(crate) fn is_of_run(&self, index: u32) -> bool {
        self.run.is_some_and(|run| self.span(index).begin == run.next)
    }

    /// Whether a request of this queue's run is in the disk. Its owner sends more when that one is done.
    pub(crate) fn has_run_in_disk(&self, run: Run, is_in_disk: impl Fn(u32) -> bool) -> bool {
        self.ends_at(run.next, is_in_disk)
    }

    /// The stream that has the head, of any shard.
    #[inline(always)]
    pub(crate) fn head_held(&self, now: Time) -> Option<Held> {
        if self.seeks() { self.head.run.held(now) } else { None }
    }

    /// Whether a run would serve a request and the next one of its class sooner. Both have to continue the
    /// same stream, and there must be random requests. Without these, a disk that continues where its head is
    /// serves streams better.
    pub(crate) fn is_worth_a_run(&self, now: Time, index: u32, successor: Option<u32>) -> bool {
        let Span { begin, end, .. } = self.span(index);
        let next = successor.map(|index| self.span(index).begin);
        self.run.is_none()
            && self.ended_at(begin).is_some()
            && next == Some(end)
            && end != NOWHERE
            && self.nanos_since_random(now) < ALONE_NANOS
    }

    /// Requests the head for a stream. Its run begins when the disk has no more to do than a seek.
    pub(crate) fn begin_run(&mut self, now: Time, class: u16, index: u32, window: DiskTime) {
        let begins_by = now.plus_nanos(RUN_NANOS);
        let until = begins_by.plus_nanos(RUN_NANOS);
        if self.head.run.give(now, Held { shard: self.shard, until, has_begun: false }) {
            self.run = Some(Run {
                class,
                next: self.span(index).begin,
                left: DiskTime::from_nanos(RUN_NANOS),
                chargeable: DiskTime::from_nanos(RUN_CHARGED_NANOS),
                begins_by: Some(begins_by),
                pays_bytes: self.only_streams(now, window),
            });
        }
    }

    /// Whether a disk with this much disk time in flight has no more to do than a seek.
    pub(crate) fn disk_has_one(&self, in_flight: DiskTime) -> bool {
        in_flight <= self.model.cost(Op::Read, 1)
    }

    /// The time until which the first request of a run waits, unless the disk has no more to do than a seek
    /// before. `None` if it may be dispatched now, and for all other requests.
    #[cold]
    pub(crate) fn waits_for_head(
        &mut self,
        now: Time,
        index: u32,
        in_flight: DiskTime,
    ) -> Option<Time> {
        let Some(Run { next, begins_by: Some(begins_by), .. }) = self.run else { return None };
        if self.span(index).begin != next {
            return None;
        }
        if !self.head.is_at(next) && !self.disk_has_one(in_flight) && now < begins_by {
            return Some(begins_by);
        }
        let until = now.plus_nanos(RUN_NANOS);
        self.head.run.give(now, Held { shard: self.shard, until, has_begun: true });
        self.run = self.run.map(|run| Run { begins_by: None, ..run });
        None
    }

    /// The disk time that a request of a run takes, whatever its class is charged. The first one takes a
    /// seek.
    pub(crate) fn time_of_head(&self, index: u32, op: Op, len: u64) -> DiskTime {
        if self.head.is_at(self.span(index).begin) {
            self.model.sequential_cost(op, len)
        } else {
            self.model.cost(op, len)
        }
    }

    /// Counts a dispatched request of the run. Returns whether the run has used up its time.
    pub(crate) fn count_in_run(&mut self, index: u32, request: &Request) -> bool {
        let (cost, next) =
            (self.time_of_head(index, request.op, request.len), self.span(index).end);
        let Some(run) = &mut self.run else { return false };
        (run.left, run.next) = (run.left.minus(cost), next);
        run.chargeable = run.chargeable.minus(request.cost);
        run.left == DiskTime::ZERO || run.chargeable == DiskTime::ZERO
    }

    /// Ends the run.
    pub(crate) fn end_run(&mut self) {
        self.run = None;
        self.head.run.give_back(self.shard);
    }
}
