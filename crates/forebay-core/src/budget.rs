//! Whether the next request may go to the disk now.

use core::time::Duration;

use crate::base_latency::BaseLatency;
use crate::overdue::Overdue;
use crate::pace::Pace;
use crate::sync::{AtomicU64, Ordering, Padded, Tally};
use crate::{DiskModel, DiskTime, Time};

/// Latency goal unless said otherwise: 1.5 times a tick of 0.5 ms.
pub const LATENCY_GOAL_DEFAULT: Duration = Duration::from_micros(750);
/// A request of this size, in bytes, always fits into one goal.
const GOAL_REQUEST_LEN: u64 = 128 * 1024;
/// A longer goal or base latency counts as this, so that windows stay far from
/// the end of the number range.
const GOAL_NANOS_MAX: u64 = 100_000_000_000;
/// The window holds this many effective goals.
const WINDOW_GOALS: u64 = 2;
/// A disk counts as nearly idle while at most this part of the window is used.
const NEARLY_IDLE_PART: u64 = 4;

/// How a group decides whether a request may go to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Everything goes at once; nothing waits in the queue. For comparisons,
    /// and for disks without figures.
    Open,
    /// One second of disk time per second, with bursts of one effective goal,
    /// and at most two effective goals of it unfinished in the disk.
    PaceWindow {
        /// How long requests may wait inside the disk.
        latency_goal: Duration,
        /// Latency of the idle disk, if known; learnt otherwise.
        base_latency: Option<Duration>,
    },
}

impl Policy {
    /// Pace and window at the default latency goal.
    pub const fn pace_window() -> Self {
        Self::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency: None }
    }

    /// The name used in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open => "none",
            Self::PaceWindow { .. } => "pace+window",
        }
    }
}

/// Why the budget let nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rate is used up; it is open again at this time.
    Pace(Time),
    /// Too much is unfinished; it opens when something completes.
    Window,
}

/// The budget of one disk, shared by all queues of its group.
#[derive(Debug)]
pub(crate) struct Budget {
    gate: Gate,
    pub(crate) overdue: Overdue,
    in_flight: Padded<Tally>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per disk")]
enum Gate {
    Open,
    PaceWindow(Padded<PaceWindow>),
}

#[derive(Debug)]
struct PaceWindow {
    pace: Pace,
    /// The effective goal in units; the window follows from it.
    goal: AtomicU64,
    goal_min: u64,
    base: Option<BaseLatency>,
}

impl Budget {
    /// `sole` if a single shard uses it.
    pub(crate) fn new(policy: &Policy, model: &DiskModel, sole: bool) -> Self {
        let gate = match policy {
            Policy::Open => Gate::Open,
            Policy::PaceWindow { latency_goal, base_latency } => {
                Gate::PaceWindow(Padded(PaceWindow::new(*latency_goal, *base_latency, model, sole)))
            }
        };
        Self { gate, overdue: Overdue::new(), in_flight: Padded(Tally::new(sole)) }
    }

    /// Disk time of everything in the disk.
    pub(crate) fn in_flight(&self) -> DiskTime {
        DiskTime::from_units(self.in_flight.0.load(Ordering::Relaxed))
    }

    /// How much may wait in the disk and how much may burst; unbounded when open.
    pub(crate) fn effective_goal(&self) -> DiskTime {
        match &self.gate {
            Gate::Open => DiskTime::MAX,
            Gate::PaceWindow(gate) => gate.0.goal(),
        }
    }

    /// Most disk time that may be unfinished when another request goes.
    pub(crate) fn window(&self) -> DiskTime {
        DiskTime::from_units(self.effective_goal().units().saturating_mul(WINDOW_GOALS))
    }

    /// Disk time that lies unused: what could be dispatched now, at most one
    /// effective goal.
    pub(crate) fn unused(&self, now: Time) -> DiskTime {
        match &self.gate {
            Gate::Open => DiskTime::MAX,
            Gate::PaceWindow(gate) => {
                let room = self.window().minus(self.in_flight());
                let room = DiskTime::from_units(room.units() / WINDOW_GOALS);
                gate.0.pace.available(now, gate.0.goal()).min(room)
            }
        }
    }

    /// When the rate alone leaves `wanted` unused (at most one effective goal).
    pub(crate) fn unused_at(&self, now: Time, wanted: DiskTime) -> Time {
        match &self.gate {
            Gate::Open => now,
            Gate::PaceWindow(gate) => gate.0.pace.available_at(now, gate.0.goal(), wanted),
        }
    }

    /// Takes `cost` out of the budget if it is open. Whoever is refused by a
    /// race after all must be treated as having freed room: see
    /// [`Reservation`].
    pub(crate) fn try_reserve(&self, now: Time, cost: DiskTime) -> Reservation {
        let Gate::PaceWindow(gate) = &self.gate else {
            self.in_flight.0.fetch_add(cost.units(), Ordering::Relaxed);
            return Reservation::Granted { nearly_idle: false };
        };
        let goal = gate.0.goal();
        let open_at = gate.0.pace.available_at(now, goal, DiskTime::from_units(1));
        if open_at > now {
            return Reservation::Refused(Refusal::Pace(open_at));
        }
        let window = goal.units().saturating_mul(WINDOW_GOALS);
        let Some(before) = self.enter_window(window, cost) else {
            return Reservation::Refused(Refusal::Window);
        };
        if gate.0.pace.try_take(now, goal, cost) {
            return Reservation::Granted { nearly_idle: before <= window / NEARLY_IDLE_PART };
        }
        self.leave_window(cost);
        Reservation::Undone
    }

    /// The disk has finished with `cost`, or is no longer waited for.
    pub(crate) fn leave_window(&self, cost: DiskTime) {
        // AcqRel, and an atomic read-modify-write: see `room_after_mark`.
        self.in_flight.0.fetch_sub(cost.units(), Ordering::AcqRel);
    }

    /// Whether the window is open, asked by a queue that has just left a mark
    /// and would otherwise sleep. This is a read-modify-write on the atomic
    /// that `leave_window` changes: either it comes later and sees the room,
    /// or `leave_window` comes later and its caller sees the mark.
    pub(crate) fn room_after_mark(&self) -> bool {
        self.in_flight.0.fetch_add(0, Ordering::AcqRel) < self.window().units()
    }

    /// Learns from a service time that was measured while the disk was nearly idle.
    pub(crate) fn observe_idle_service(&self, service_nanos: u64) {
        if let Gate::PaceWindow(gate) = &self.gate {
            gate.0.observe(service_nanos);
        }
    }

    fn enter_window(&self, window: u64, cost: DiskTime) -> Option<u64> {
        let mut in_flight = self.in_flight.0.load(Ordering::Relaxed);
        while in_flight < window {
            match self.in_flight.0.compare_exchange_weak(
                in_flight,
                in_flight.wrapping_add(cost.units()),
                Ordering::AcqRel,
            ) {
                Ok(before) => return Some(before),
                Err(seen) => in_flight = seen,
            }
        }
        None
    }
}

/// What became of an attempt to reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The request may go; `nearly_idle` if it met an almost empty disk.
    Granted { nearly_idle: bool },
    /// The budget is closed.
    Refused(Refusal),
    /// Another queue took the rate between two steps. Room was taken and given
    /// back meanwhile, so queues that found the window full must be woken.
    Undone,
}

impl PaceWindow {
    fn new(latency_goal: Duration, base: Option<Duration>, model: &DiskModel, sole: bool) -> Self {
        let nanos = |duration: Duration| {
            u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(GOAL_NANOS_MAX)
        };
        let goal_min = DiskTime::from_nanos(nanos(latency_goal))
            .max(model.dearer_cost(GOAL_REQUEST_LEN))
            .max(DiskTime::from_units(1));
        let goal = base.map_or(goal_min, |base| goal_min.max(DiskTime::from_nanos(nanos(base))));
        Self {
            pace: Pace::new(sole),
            goal: AtomicU64::new(goal.units()),
            goal_min: goal_min.units(),
            base: base.is_none().then(BaseLatency::new),
        }
    }

    fn goal(&self) -> DiskTime {
        DiskTime::from_units(self.goal.load(Ordering::Relaxed))
    }

    fn observe(&self, service_nanos: u64) {
        let median = self.base.as_ref().and_then(|base| base.observe(service_nanos));
        if let Some(median) = median {
            let goal = DiskTime::from_nanos(median).units().max(self.goal_min);
            self.goal.store(goal, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskRates;

    fn model(iops: u64, bandwidth: u64) -> DiskModel {
        DiskModel::from_rates(&DiskRates {
            read_iops: iops,
            write_iops: iops,
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
        })
        .unwrap()
    }

    #[test]
    fn the_effective_goal_covers_a_slow_disk() {
        let fast = Budget::new(&Policy::pace_window(), &model(100_000, 1_000_000_000), false);
        assert_eq!(fast.effective_goal(), DiskTime::from_nanos(750_000));
        // 128 KiB take 10.4 ms on this one
        let slow = Budget::new(&Policy::pace_window(), &model(500, 12_500_000), false);
        assert_eq!(slow.effective_goal().as_nanos_ceil(), 10_485_760);
        let policy = Policy::PaceWindow {
            latency_goal: LATENCY_GOAL_DEFAULT,
            base_latency: Some(Duration::from_millis(30)),
        };
        let far = Budget::new(&policy, &model(500, 12_500_000), false);
        assert_eq!(far.effective_goal(), DiskTime::from_nanos(30_000_000));
        assert_eq!(far.window(), DiskTime::from_nanos(60_000_000));
    }

    #[test]
    fn a_slow_base_latency_is_learnt_from_light_load() {
        let budget = Budget::new(&Policy::pace_window(), &model(100_000, 1_000_000_000), false);
        for _ in 0..8 {
            budget.observe_idle_service(10_000_000);
        }
        assert_eq!(budget.effective_goal(), DiskTime::from_nanos(10_000_000));
        for _ in 0..32 {
            budget.observe_idle_service(100_000);
        }
        assert_eq!(budget.effective_goal(), DiskTime::from_nanos(750_000));
    }

    #[test]
    fn pace_and_window_both_stop_requests_and_overshoot_by_one_at_most() {
        let budget = Budget::new(&Policy::pace_window(), &model(100_000, 1_000_000_000), false);
        let cost = DiskTime::from_nanos(200_000);
        let grant = |now| budget.try_reserve(Time::from_nanos(now), cost);
        for _ in 0..4 {
            assert!(matches!(grant(1_000_000), Reservation::Granted { .. }));
        }
        let open = Time::from_nanos(1_050_001);
        assert_eq!(grant(1_000_000), Reservation::Refused(Refusal::Pace(open)));
        for now in [2_000_000, 2_200_000, 2_400_000, 2_600_000] {
            assert!(matches!(grant(now), Reservation::Granted { .. }));
        }
        // 8 x 200 us are unfinished, more than the 1.5 ms of the window
        assert_eq!(grant(3_000_000), Reservation::Refused(Refusal::Window));
        assert!(!budget.room_after_mark());
        budget.leave_window(cost);
        assert!(budget.room_after_mark());
        assert_eq!(grant(3_000_000), Reservation::Granted { nearly_idle: false });
    }

    #[test]
    fn an_unsplittable_request_larger_than_everything_goes_alone() {
        let budget = Budget::new(&Policy::pace_window(), &model(5_000, 10_000_000), false);
        let cost = DiskTime::from_nanos(800_000_000);
        let now = Time::from_nanos(1);
        assert_eq!(budget.try_reserve(now, cost), Reservation::Granted { nearly_idle: true });
        let later = Time::from_nanos(900_000_000);
        assert_eq!(budget.try_reserve(later, cost), Reservation::Refused(Refusal::Window));
    }
}
