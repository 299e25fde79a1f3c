//! The counters of a queue, and the reasons for which it dispatches nothing.

use crate::{Access, ClassId, DiskTime, Op, Time};

/// The reason for which a queue dispatched nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing is queued.
    Empty,
    /// The pace is used up.
    Pace,
    /// The window is full: the disk has as much unfinished work as it may have.
    Window,
    /// All queued requests belong to classes at their upper limit.
    ClassLimit,
    /// Other shards are behind and go first.
    FairnessLead,
    /// The pace is used up, and at most an eighth of the window is in the disk. If that is so most of
    /// the time, the disk may be faster than its model. A disk of long latency is never that empty.
    PaceDiskIdle,
}

impl Blocked {
    /// Every reason, in the order of [`QueueCounters::blocked_nanos`](crate::QueueCounters::blocked_nanos).
    pub const ALL: [Self; 6] = [
        Self::Empty,
        Self::Pace,
        Self::Window,
        Self::ClassLimit,
        Self::FairnessLead,
        Self::PaceDiskIdle,
    ];

    /// The name used in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Pace => "pace",
            Self::Window => "window",
            Self::ClassLimit => "class_limit",
            Self::FairnessLead => "ahead",
            Self::PaceDiskIdle => "pace_disk_idle",
        }
    }

    /// Position of this reason in [`Blocked::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Requests should begin and end at multiples of this, in bytes (4 KiB). Disks and file systems have
/// blocks of this size, even if they accept smaller ones. It only decides which requests count as
/// misaligned.
const ALIGNMENT: u64 = 4096;

/// The fraction one, in the unit of the fraction of fresh requests. It is 64 times the number of
/// requests averaged over, so that a single request still changes the fraction.
const ONE: u32 = 1 << 16;
/// The number of requests over which the fraction of fresh ones is averaged. A class that is starved
/// for fewer requests does not yet count as waiting for itself. With more, a closed loop counts for the
/// latency target for longer.
const FRESH_REQUESTS: u32 = 1024;
/// A class waits for itself if less than one in this many of its requests was fresh. With a larger
/// number, closed loops count for the latency target, although their latency follows from their own
/// depth.
const FRESH_PART: u32 = 8;

/// Adds the named totals of other counters. Totals wrap.
macro_rules! add {
    ($to:ident, $from:ident: $($total:ident),+) => {$(
        $to.$total = $to.$total.wrapping_add($from.$total);
    )+};
}

/// Counters of one class on one queue. Totals count from the start and wrap at 2^64; times are in
/// nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Requests waiting now.
    pub queued: u32,
    /// Requests in the disk now.
    pub in_disk: u32,
    /// Bytes of the requests in the disk now.
    pub bytes_in_disk: u64,
    /// Requests completed without error, by [`Op::index`].
    pub operations: [u64; 4],
    /// Bytes of those requests, by [`Op::index`].
    pub bytes: [u64; 4],
    /// Requests completed with an error.
    pub errors: u64,
    /// Requests cancelled while they waited.
    pub cancelled: u64,
    /// Requests given up as overdue, because they were in the disk for too long.
    pub overdue: u64,
    /// Requests that were split.
    pub splits: u64,
    /// Bytes of the requests that were split.
    pub split_bytes: u64,
    /// Requests or parts with a [stated offset](Op::at) that are not aligned to 4 KiB, by
    /// [`Op::index`].
    pub misaligned: [u64; 4],
    /// Sum of the times of dispatched requests in the queue, in nanoseconds.
    pub queue_nanos: u64,
    /// The longest of those waits.
    pub queue_nanos_max: u64,
    /// The wait of the request dispatched last.
    pub queue_nanos_last: u64,
    /// Sum of the times of completed requests in the disk, in nanoseconds.
    pub disk_nanos: u64,
    /// The longest of those times.
    pub disk_nanos_max: u64,
    /// Time during which requests waited while none of the class was in the disk.
    pub starved_nanos: u64,
    /// Time for which its upper limit, or that of a parent group, delayed it. It is counted while the
    /// limit is used up.
    pub limited_nanos: u64,
    /// Disk time dispatched.
    pub consumption: DiskTime,
    /// How often the class went from idle to backlogged.
    pub activations: u64,
    starved_since: Option<Time>,
    /// The fraction of the latest requests that were fresh, times 2^16.
    fresh: u32,
    /// The number of requests that this fraction covers, up to [`FRESH_REQUESTS`].
    fresh_of: u32,
    /// The class of these counters, whose slot may be given to another one.
    owner: u32,
}

impl ClassCounters {
    /// Adds the counters of another queue for the same class. Of the longest and the latest waits, the
    /// longer ones are kept.
    pub fn merge(&mut self, other: &Self) {
        add!(self, other: queued, in_disk, bytes_in_disk);
        for (to, from) in [
            (&mut self.operations, &other.operations),
            (&mut self.bytes, &other.bytes),
            (&mut self.misaligned, &other.misaligned),
        ] {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = to.wrapping_add(*from));
        }
        add!(self, other: errors, cancelled, overdue, splits, split_bytes, activations);
        add!(self, other: queue_nanos, disk_nanos, starved_nanos, limited_nanos);
        self.queue_nanos_max = self.queue_nanos_max.max(other.queue_nanos_max);
        self.queue_nanos_last = self.queue_nanos_last.max(other.queue_nanos_last);
        self.disk_nanos_max = self.disk_nanos_max.max(other.disk_nanos_max);
        self.consumption = self.consumption.plus(other.consumption);
    }

    /// Clears the counters of present requests, for a queue that has ended.
    #[must_use]
    pub fn ended(self) -> Self {
        Self { queued: 0, in_disk: 0, bytes_in_disk: 0, starved_since: None, ..self }
    }

    /// Adds later counters of an ended queue if they are of the same class. Otherwise they replace
    /// these.
    pub fn succeed(&mut self, later: Self) {
        if self.owner == later.owner {
            self.merge(&later.ended());
        } else {
            *self = later.ended();
        }
    }

    /// Whether these are the counters of `class`, and not of an earlier class in its slot.
    pub const fn are_of(&self, class: ClassId) -> bool {
        self.owner == class.to_bits()
    }

    /// The class of these counters; `None` before anything was counted.
    pub(crate) const fn class(&self) -> Option<ClassId> {
        ClassId::from_bits(self.owner)
    }

    /// Starts from zero if these were the counters of another class. Requests of that may still be in
    /// the disk.
    #[inline]
    pub(crate) fn belong_to(&mut self, owner: u32) {
        if self.owner != owner {
            self.begin_again(owner);
        }
    }

    #[cold]
    fn begin_again(&mut self, owner: u32) {
        let Self { queued, in_disk, bytes_in_disk, .. } = *self;
        *self = Self { queued, in_disk, bytes_in_disk, owner, ..Self::default() };
    }

    /// Counts a queued request. Returns whether none of the class waited before.
    pub(crate) fn enqueued(&mut self, now: Time, access: Access, len: u64) -> bool {
        self.note_alignment(access, len);
        let is_first = self.queued == 0;
        self.activations += u64::from(is_first);
        self.note_fresh(is_first);
        self.queued += 1;
        self.note_starvation(now);
        is_first
    }

    /// Counts a request that is dispatched without being queued. None of the class is queued.
    pub(crate) fn passed(&mut self, access: Access, len: u64, cost: DiskTime) {
        self.note_alignment(access, len);
        self.note_fresh(true);
        self.activations += 1;
        self.enter_disk(len);
        self.queue_nanos_last = 0;
        self.consumption = self.consumption.plus(cost);
    }

    fn note_fresh(&mut self, is_fresh: bool) {
        let part = if is_fresh { ONE } else { 0 };
        if self.fresh_of == FRESH_REQUESTS {
            // divisions by a constant power of two are shifts
            self.fresh = self.fresh - self.fresh / FRESH_REQUESTS + part / FRESH_REQUESTS;
            return;
        }
        self.fresh_of += 1;
        self.fresh = self.fresh - self.fresh / self.fresh_of + part / self.fresh_of;
    }

    /// Whether requests of the class mostly wait for each other.
    pub(crate) fn waits_for_itself(&self) -> bool {
        self.fresh < ONE / FRESH_PART
    }

    /// Counts the time for which a limit of it or of a parent group delays it, in nanoseconds.
    pub(crate) fn limited(&mut self, nanos: u64) {
        self.limited_nanos = self.limited_nanos.wrapping_add(nanos);
    }

    pub(crate) fn cancelled(&mut self, now: Time) {
        self.cancelled += 1;
        self.queued -= 1;
        if self.queued == 0 {
            self.end_starvation(now);
        }
    }

    pub(crate) fn dispatched(&mut self, now: Time, waited: u64, len: u64, cost: DiskTime) {
        self.end_starvation(now);
        self.queued -= 1;
        self.enter_disk(len);
        self.queue_nanos = self.queue_nanos.wrapping_add(waited);
        self.queue_nanos_last = waited;
        self.queue_nanos_max = self.queue_nanos_max.max(waited);
        self.consumption = self.consumption.plus(cost);
    }

    /// Counts a request that has left the disk and waits for its owner.
    pub(crate) fn park(&mut self, len: u64) {
        self.leave_disk(len);
        self.queued += 1;
    }

    pub(crate) fn completed(&mut self, now: Time, op: Op, len: u64, disk_nanos: u64, ok: bool) {
        self.leave_disk(len);
        self.disk_nanos = self.disk_nanos.wrapping_add(disk_nanos);
        self.disk_nanos_max = self.disk_nanos_max.max(disk_nanos);
        if ok {
            self.operations[op.index()] += 1;
            let bytes = &mut self.bytes[op.index()];
            *bytes = bytes.wrapping_add(len);
        } else {
            self.errors += 1;
        }
        self.note_starvation(now);
    }

    fn enter_disk(&mut self, len: u64) {
        self.in_disk += 1;
        self.bytes_in_disk = self.bytes_in_disk.wrapping_add(len);
    }

    /// Counts a request that has left the disk, or was given up and forgotten.
    pub(crate) fn leave_disk(&mut self, len: u64) {
        self.in_disk -= 1;
        self.bytes_in_disk = self.bytes_in_disk.wrapping_sub(len);
    }

    fn note_alignment(&mut self, Access { op, place, .. }: Access, len: u64) {
        if place.is_some_and(|place| !(place.offset | len).is_multiple_of(ALIGNMENT)) {
            self.misaligned[op.index()] += 1;
        }
    }

    fn note_starvation(&mut self, now: Time) {
        if self.in_disk == 0 && self.queued > 0 && self.starved_since.is_none() {
            self.starved_since = Some(now);
        }
    }

    fn end_starvation(&mut self, now: Time) {
        if let Some(since) = self.starved_since.take() {
            self.starved_nanos = self.starved_nanos.wrapping_add(now.nanos_since(since));
        }
    }
}

/// Counters of one queue over all classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Requests dispatched.
    pub dispatched: u64,
    /// Requests completed, with or without error.
    pub completed: u64,
    /// Requests in the disk now.
    pub in_disk: u32,
    /// The maximum of requests in the disk at once. Over several queues it is the maximum of a
    /// single queue: all together may have had more.
    pub in_disk_max: u32,
    /// Disk time dispatched.
    pub consumption: DiskTime,
    /// Time in which nothing was dispatched, in nanoseconds, by [`Blocked::index`].
    pub blocked_nanos: [u64; Blocked::ALL.len()],
    /// Requests given up as overdue, because they were in the disk for too long.
    pub overdue: u64,
    /// Late turns: 2 ms or more after the intended time. If only completions could cause the turn, it
    /// is late if more than an effective goal completed at once, or if it comes after the patience with
    /// the disk. The thread was busy with other work.
    pub late_turns: u64,
    /// The delays of these turns, in nanoseconds.
    pub late_nanos: u64,
    /// Requests dispatched beyond a full window for a nested request.
    pub window_bypasses: u64,
    /// Requests dispatched beyond a full window because all threads were absent lately.
    pub absence_bypasses: u64,
    /// Disk time of the requests dispatched beyond a full window for a nested request.
    pub window_bypass_consumption: DiskTime,
    /// Wake-ups of threads and tasks. They are those of other shards that
    /// [`poll_wake`](crate::IoQueue::poll_wake) returned, those of this shard by the time of
    /// [`poll_timeout`](crate::IoQueue::poll_timeout), and those that the owner
    /// [notes](crate::IoQueue::note_wake_ups). A thread that polls without sleeping counts like one
    /// that sleeps.
    pub wake_ups: u64,
    /// The flow ratio: requests dispatched per request completed, averaged over some seconds, in
    /// thousandths. More than 1000 means that the disk is slower than its figures. If a window limits
    /// the requests in the disk, it is always 1000: see the time blocked by [`Blocked::Window`]
    /// instead.
    pub flow_ratio_permille: u64,
}

impl QueueCounters {
    /// Adds the counters of another queue of the same group. Of the flow ratios and of the maxima in
    /// the disk, the higher one is kept.
    pub fn merge(&mut self, other: &Self) {
        add!(self, other: dispatched, completed, in_disk, overdue, late_turns, late_nanos);
        add!(self, other: window_bypasses, absence_bypasses, wake_ups);
        self.in_disk_max = self.in_disk_max.max(other.in_disk_max);
        self.consumption = self.consumption.plus(other.consumption);
        let blocked = self.blocked_nanos.iter_mut().zip(&other.blocked_nanos);
        blocked.for_each(|(to, from)| *to = to.wrapping_add(*from));
        self.window_bypass_consumption =
            self.window_bypass_consumption.plus(other.window_bypass_consumption);
        self.flow_ratio_permille = self.flow_ratio_permille.max(other.flow_ratio_permille);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_is_starved_for_a_while_does_not_wait_for_itself_and_a_scan_does() {
        let note = |counters: &mut ClassCounters, fresh: bool, count: usize| {
            (0..count).for_each(|_| counters.note_fresh(fresh));
            counters.waits_for_itself()
        };
        let (mut reads, mut scan) = (ClassCounters::default(), ClassCounters::default());
        assert!(!note(&mut reads, true, 1));
        assert!(!note(&mut reads, true, 3_000));
        assert!(!note(&mut reads, false, 1_000));
        assert!(note(&mut reads, false, 2_000));
        assert!(!note(&mut scan, true, 1));
        assert!(note(&mut scan, false, 10));
    }

    #[test]
    fn totals_of_absurd_lengths_start_again_from_zero() {
        let mut counters = ClassCounters::default();
        for _ in 0..2 {
            counters.passed(Op::Read.at(u64::MAX), u64::MAX, DiskTime::MAX);
            counters.completed(Time::ZERO, Op::Read, u64::MAX, u64::MAX, true);
        }
        let mut sum = counters.clone();
        sum.merge(&counters);
        assert_eq!((sum.operations[Op::Read.index()], sum.in_disk), (4, 0));
        assert_eq!((sum.misaligned, sum.bytes_in_disk), ([4, 0, 0, 0], 0));
    }
}
