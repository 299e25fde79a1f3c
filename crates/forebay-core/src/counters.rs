//! What a queue counts, and why it dispatched nothing: plain numbers, read by the owner of the queue.

use crate::{Access, ClassId, DiskTime, Op, Time};

/// Why a queue dispatched nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// Nothing is queued.
    Empty,
    /// The disk's rate is used up.
    Pace,
    /// The disk has as much unfinished work as it may have.
    Window,
    /// All queued requests belong to classes at their upper limit.
    ClassLimit,
    /// Other shards are behind and go first.
    FairnessLead,
    /// The disk's rate is used up, and at most an eighth of the window is in the disk: if that is
    /// so most of the time, the disk may be faster than its model. A disk of long latency is never
    /// so empty.
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

/// Requests should begin and end at multiples of this, in bytes (4 KiB). Disks and file systems
/// have blocks of this size, even where they accept smaller ones. It only decides what is counted
/// as misaligned.
const ALIGNMENT: u64 = 4096;

/// The whole, in the unit of the part of fresh requests. It is 64 times the number of requests
/// averaged over, so that a single request still changes the part.
const ONE: u32 = 1 << 16;
/// The number of requests over which the part of fresh ones is averaged. A class that is starved
/// for fewer requests still counts as one that does not wait for itself. With more, a loop that
/// waits for itself counts for the latency target for longer.
const FRESH_REQUESTS: u32 = 1024;
/// A class waits for itself where less than one in this many of its requests found nothing of the
/// class waiting. At a larger number closed loops count for the latency target, although their
/// latency follows from their own depth.
const FRESH_PART: u32 = 8;

/// Adds these totals of other counters, which wrap.
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
    /// Their bytes.
    pub bytes_in_disk: u64,
    /// Requests completed without error, by [`Op::index`].
    pub operations: [u64; 4],
    /// Bytes of those requests, by [`Op::index`].
    pub bytes: [u64; 4],
    /// Requests completed with an error.
    pub errors: u64,
    /// Requests cancelled while they waited.
    pub cancelled: u64,
    /// Requests that took so long in the disk that the window no longer counts them.
    pub overdue: u64,
    /// Requests that were split, and their bytes.
    pub splits: u64,
    /// Bytes of the requests that were split.
    pub split_bytes: u64,
    /// Requests, or their parts, with a [stated offset](Op::at) that are not aligned to 4 KiB, by
    /// [`Op::index`].
    pub misaligned: [u64; 4],
    /// Time of requests in the queue, before they were dispatched.
    pub queue_nanos: u64,
    /// The longest of those waits.
    pub queue_nanos_max: u64,
    /// The wait of the request dispatched last.
    pub queue_nanos_last: u64,
    /// Time completed requests spent in the disk.
    pub disk_nanos: u64,
    /// The longest of those times.
    pub disk_nanos_max: u64,
    /// Time during which requests waited while none of the class was in the disk.
    pub starved_nanos: u64,
    /// Time for which its upper limit, or that of a parent group, delayed it: counted while the
    /// limit is used up.
    pub limited_nanos: u64,
    /// Disk time dispatched.
    pub consumption: DiskTime,
    /// How often the class went from idle to backlogged.
    pub activations: u64,
    starved_since: Option<Time>,
    /// The part of the latest requests that found nothing of the class waiting, times 2^16.
    fresh: u32,
    /// The number of requests that this part covers, up to [`FRESH_REQUESTS`].
    fresh_of: u32,
    /// The class that these counters belong to: its place can be given to another.
    owner: u32,
}

impl ClassCounters {
    /// Adds the counters of another queue for the same class. Of the longest and the last waits it
    /// keeps the longer ones.
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

    /// The counters of a queue that has ended: none of its requests waits or is in the disk.
    #[must_use]
    pub fn ended(self) -> Self {
        Self { queued: 0, in_disk: 0, bytes_in_disk: 0, starved_since: None, ..self }
    }

    /// Adds later counters of an ended queue for the same class, or is replaced by them if another
    /// class had this place.
    pub fn succeed(&mut self, later: Self) {
        if self.owner == later.owner {
            self.merge(&later.ended());
        } else {
            *self = later.ended();
        }
    }

    /// Whether these belong to `class`, and not to an earlier class in its place.
    pub const fn are_of(&self, class: ClassId) -> bool {
        self.owner == class.to_bits()
    }

    /// The class that these belong to; `None` before anything was counted.
    pub(crate) const fn class(&self) -> Option<ClassId> {
        ClassId::from_bits(self.owner)
    }

    /// Starts from zero if they belonged to another class, whose requests may still be in the disk.
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

    /// Whether nothing of the class waited before.
    pub(crate) fn enqueued(&mut self, now: Time, access: Access, len: u64) -> bool {
        self.note_alignment(access, len);
        let is_first = self.queued == 0;
        self.activations += u64::from(is_first);
        self.note_fresh(is_first);
        self.queued += 1;
        self.note_starvation(now);
        is_first
    }

    /// Queued and dispatched in one step, when nothing of the class was queued.
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
            // the same in shifts
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

    /// Its limit, or that of a parent group, delays it for this long.
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

    /// The request has left the disk, and waits for its owner.
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

    /// A request has left the disk, or was given up and never completes.
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
    /// Nanoseconds during which nothing was dispatched, by [`Blocked::index`].
    pub blocked_nanos: [u64; Blocked::ALL.len()],
    /// Requests that took so long that the window no longer counts them.
    pub overdue: u64,
    /// Late polls: 2 ms or more after the intended time. Where only completions could cause a poll,
    /// those that find more than an effective goal completed at once, or that are as late as the
    /// window gives requests up. The thread was busy with other work.
    pub late_turns: u64,
    /// Delay of these polls.
    pub late_nanos: u64,
    /// Requests dispatched beyond a full window for a nested request.
    pub window_bypasses: u64,
    /// Requests dispatched beyond a full window, as no thread had polled lately.
    pub absence_bypasses: u64,
    /// Disk time of the requests dispatched for a nested request.
    pub window_bypass_consumption: DiskTime,
    /// Wake-ups of threads and tasks: of other shards, as [`poll_wake`](crate::IoQueue::poll_wake)
    /// names them; of this one, when the time of [`poll_timeout`](crate::IoQueue::poll_timeout)
    /// comes before anything else; and those that its owner [notes](crate::IoQueue::note_wake_ups).
    /// A thread that polls without sleeping is counted as one that sleeps.
    pub wake_ups: u64,
    /// Requests dispatched per request completed, averaged over some seconds, in thousandths: more
    /// than 1000 means that the disk is slower than its figures. Where a window limits the requests
    /// in the disk, it is always 1000: see the time blocked by [`Blocked::Window`] instead.
    pub flow_ratio_permille: u64,
}

impl QueueCounters {
    /// Adds the counters of another queue of the same group; of the flow ratios and the maxima in
    /// the disk it keeps the higher one.
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
