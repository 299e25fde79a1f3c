//! The counters of this queue, and the part that it reports to the group.

use alloc::vec::Vec;

use crate::budget::{Completed, Dispatched, Sample, Threshold, WindowSample};
use crate::flow::FlowRatio;
use crate::requests::Request;
use crate::{Blocked, ClassCounters, ClassId, DiskTime, Op, QueueCounters, Time};

/// An answer counts as the disk's own time where the owner polled within the time it took divided by
/// this. Smaller numbers would take a late poll for a slow disk.
const POLLED_PART: u64 = 8;
/// Dispatched disk time is reported to the group once it is a window divided by this. Larger
/// numbers cost more stores to what all shards share; smaller ones let the price of a mix lag.
const REPORTED_PART: u64 = 16;
/// Dispatched disk time is reported to the group after this time at the latest, in nanoseconds: few
/// reads among many writes count too.
const REPORTED_NANOS: u64 = 10_000_000;

/// What is known of how long the disk took for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskNanos {
    pub(super) most: u64,
    /// It had not answered then; as much as at most where only the owner knows.
    pub(super) least: u64,
    pub(super) is_known: bool,
    /// How long the owner had not polled.
    pub(super) gap: u64,
}

impl DiskNanos {
    /// Of a request that came back `now` to an owner that polled before at `previous_poll`; at zero if
    /// it does not know of the disk.
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

/// What was dispatched and not reported yet, where mixes of reads and writes have prices.
#[derive(Debug, Default)]
struct UnreportedDispatch {
    has_prices: bool,
    dispatched: Dispatched,
    /// It is reported when either direction is this much disk time, in units, or at the time.
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
    /// What was not yet reported to the search for the window.
    window_sample: WindowSample,
}

impl Report {
    /// `has_prices`: the disk prices mixes of reads and writes.
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

    /// Another model has prices of mixes, or none.
    pub(super) fn set_prices(&mut self, has_prices: bool) {
        self.unreported = UnreportedDispatch { has_prices, ..UnreportedDispatch::default() };
    }

    /// The counters of a class, for which there is room from now on.
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

    /// This many threads or tasks were woken.
    pub(super) fn woken(&mut self, count: u64) {
        self.totals.wake_ups = self.totals.wake_ups.wrapping_add(count);
    }

    /// Nothing went for this long.
    pub(super) fn blocked(&mut self, reason: Blocked, nanos: u64) {
        self.blocked_unsampled(reason, nanos);
        if !matches!(reason, Blocked::Empty | Blocked::ClassLimit) {
            self.sample.waited(nanos);
            self.window_sample.waited(nanos);
        }
    }

    /// As [`Report::blocked`], for time that is no sample.
    pub(super) fn blocked_unsampled(&mut self, reason: Blocked, nanos: u64) {
        let blocked = &mut self.totals.blocked_nanos[reason.index()];
        *blocked = blocked.wrapping_add(nanos);
    }

    /// A turn came late; at 0 it is not worth counting.
    pub(super) fn late_turn(&mut self, nanos: u64) {
        if nanos > 0 {
            self.totals.late_turns += 1;
            self.totals.late_nanos = self.totals.late_nanos.wrapping_add(nanos);
        }
    }

    /// A request goes to the disk.
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

    /// A request has left the disk for good.
    pub(super) fn left_disk(&mut self) {
        self.totals.completed += 1;
        self.totals.in_disk -= 1;
    }

    /// Counts a request in the mix of reads and writes. Returns what the group is to be told now.
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

    /// A request has come back. If it counts for the latency target it took `counted`. Returns a sample
    /// that is due.
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
