//! The counters of a queue, and what it reports to the group.

use alloc::vec::Vec;

use crate::budget::{Completed, Dispatched, Sample, Threshold, WindowSample};
use crate::flow::FlowRatio;
use crate::requests::Request;
use crate::{Blocked, ClassCounters, ClassId, DiskTime, Op, QueueCounters, Time};

/// A completion shows the time of the disk if the owner polled before within the time since the
/// dispatch, divided by this. Smaller numbers would take a late poll for a slow disk.
const POLLED_PART: u64 = 8;
/// Dispatched disk time is reported to the group once it reaches a window divided by this. Larger
/// numbers cost more stores to memory that all shards share. With smaller ones the price of a mix lags.
const REPORTED_PART: u64 = 16;
/// Dispatched disk time is reported to the group after this time at the latest, in nanoseconds (10 ms).
/// So few reads among many writes count too.
const REPORTED_NANOS: u64 = 10_000_000;

/// The time that the disk took for a request, in nanoseconds, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskNanos {
    pub(super) most: u64,
    /// The disk had not answered by then. Equal to `most` for an owner that does not know the disk.
    pub(super) least: u64,
    pub(super) is_known: bool,
    /// The time since the last poll of the owner.
    pub(super) gap: u64,
}

impl DiskNanos {
    /// For a request that completed at `now`, with an owner that polled before at `previous_poll`. That
    /// is zero for an owner that does not know when the disk answers.
    #[inline]
    pub(super) fn between(request: &Request, previous_poll: Time, now: Time) -> Self {
        let most = now.nanos_since(request.dispatched_at);
        let least = match previous_poll {
            Time::ZERO => most,
            _ => previous_poll.nanos_since(request.dispatched_at),
        };
        let gap = now.nanos_since(previous_poll);
        Self { most, least, is_known: gap <= most / POLLED_PART, gap }
    }
}

/// Dispatched disk time that is not reported yet, if mixes of reads and writes have prices.
#[derive(Debug, Default)]
struct UnreportedDispatch {
    has_prices: bool,
    dispatched: Dispatched,
    /// It is reported when either direction reaches this disk time, in units, or at `report_at`.
    units_max: u64,
    report_at: Time,
}

/// The counters of a queue, and its reports to the group.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) classes: Vec<ClassCounters>,
    pub(super) totals: QueueCounters,
    unreported: UnreportedDispatch,
    flow: FlowRatio,
    sample: Sample,
    /// What is not reported yet to the search for the window.
    window_sample: WindowSample,
}

impl Report {
    /// `has_prices` says whether mixes of reads and writes have prices on the disk.
    pub(super) fn new(has_prices: bool) -> Self {
        Self {
            classes: Vec::new(),
            totals: QueueCounters::default(),
            unreported: UnreportedDispatch { has_prices, ..UnreportedDispatch::default() },
            flow: FlowRatio::new(),
            sample: Sample::default(),
            window_sample: WindowSample::default(),
        }
    }

    /// Sets whether another model has prices of mixes.
    pub(super) fn set_prices(&mut self, has_prices: bool) {
        self.unreported = UnreportedDispatch { has_prices, ..UnreportedDispatch::default() };
    }

    /// The counters of a class, which are added if there are none.
    #[inline(always)]
    pub(super) fn class_mut(&mut self, class: ClassId) -> &mut ClassCounters {
        if self.classes.len() <= class.index() {
            self.make_room_for(class);
        }
        let counters = &mut self.classes[class.index()];
        counters.belong_to(class.to_bits());
        counters
    }

    #[cold]
    fn make_room_for(&mut self, class: ClassId) {
        self.classes.resize_with(class.index() + 1, ClassCounters::default);
    }

    /// The counters of a request's class.
    pub(super) fn class_of(&mut self, request: &Request) -> &mut ClassCounters {
        &mut self.classes[ClassId::index_of(request.class)]
    }

    pub(super) fn counters(&self) -> QueueCounters {
        QueueCounters { flow_ratio_permille: self.flow.permille(), ..self.totals.clone() }
    }

    #[inline]
    pub(super) fn flow(&self) -> &FlowRatio {
        &self.flow
    }

    /// Counts wake-ups of threads or tasks.
    pub(super) fn woken(&mut self, count: u64) {
        self.totals.wake_ups = self.totals.wake_ups.wrapping_add(count);
    }

    /// Counts time in which nothing was dispatched, in nanoseconds.
    pub(super) fn blocked(&mut self, reason: Blocked, nanos: u64) {
        self.blocked_unsampled(reason, nanos);
        if !matches!(reason, Blocked::Empty | Blocked::ClassLimit) {
            self.sample.waited(nanos);
            self.window_sample.waited(nanos);
        }
    }

    /// Like [`Report::blocked`], for time that is no sample.
    pub(super) fn blocked_unsampled(&mut self, reason: Blocked, nanos: u64) {
        let blocked = &mut self.totals.blocked_nanos[reason.index()];
        *blocked = blocked.wrapping_add(nanos);
    }

    /// Counts a late turn, unless `nanos` is 0.
    pub(super) fn late_turn(&mut self, nanos: u64) {
        if nanos > 0 {
            self.totals.late_turns += 1;
            self.totals.late_nanos = self.totals.late_nanos.wrapping_add(nanos);
        }
    }

    /// Counts a dispatch.
    #[inline(always)]
    pub(super) fn entered_disk(&mut self, charged: Option<DiskTime>) {
        let totals = &mut self.totals;
        totals.in_disk += 1;
        totals.in_disk_max = totals.in_disk_max.max(totals.in_disk);
        if let Some(cost) = charged {
            totals.dispatched += 1;
            totals.consumption = totals.consumption.plus(cost);
        }
    }

    /// Counts a request that has left the disk for good.
    pub(super) fn left_disk(&mut self) {
        self.totals.completed += 1;
        self.totals.in_disk -= 1;
    }

    /// Counts a request in the mix of reads and writes. Returns what to report to the group now, if it
    /// is due.
    #[inline(always)]
    pub(super) fn count_in_mix(
        &mut self,
        now: Time,
        op: Op,
        cost: DiskTime,
        window: impl FnOnce() -> DiskTime,
    ) -> Option<Dispatched> {
        let UnreportedDispatch { has_prices, dispatched, units_max, report_at } =
            &mut self.unreported;
        if !*has_prices {
            return None;
        }
        let of_op = if op.is_write() { &mut dispatched.writes } else { &mut dispatched.reads };
        *of_op = of_op.saturating_add(cost.units());
        (*of_op >= *units_max || now >= *report_at).then(|| {
            *units_max = window().units() / REPORTED_PART;
            *report_at = now.plus_nanos(REPORTED_NANOS);
            core::mem::take(dispatched)
        })
    }

    /// Counts a completed request. `counted` is its time, in nanoseconds, if it counts for the latency
    /// target. Returns a sample if it is due.
    #[inline(always)]
    pub(super) fn sample(
        &mut self,
        now: Time,
        request: &Request,
        counted: Option<(Threshold, u64)>,
    ) -> Option<Sample> {
        self.sample.served(request.cost);
        if let Some((threshold, nanos)) = counted
            && let Some(is_over) = self.sample.count(threshold, request.op, nanos)
        {
            self.window_sample.target(is_over);
        }
        self.sample.take_due(now)
    }

    /// Counts a completed request for the search for the window. Returns the sample if it is due.
    #[inline]
    pub(super) fn sample_window(
        &mut self,
        now: Time,
        request: &Request,
        done: bool,
    ) -> Option<&mut WindowSample> {
        let Request { op, cost, class, nearly_idle, enqueued_at, .. } = *request;
        let is_fresh = request.fresh && done;
        let fresh_nanos = is_fresh.then(|| now.nanos_since(enqueued_at));
        let completed = Completed { op, cost, class, nearly_idle, fresh_nanos };
        self.window_sample.add(now, completed).then_some(&mut self.window_sample)
    }

    pub(super) fn update_flow(&mut self, now: Time, effective_goal: DiskTime) {
        let goal = effective_goal.as_nanos_ceil();
        self.flow.update(now, goal, self.totals.dispatched, self.totals.completed);
    }
}
