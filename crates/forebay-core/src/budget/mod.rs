//! Whether the next request may go to the disk now.
//!
//! A budget has a *goal* (how much may wait in the disk), a *rate* and
//! *rooms* (what may be unfinished); the policies differ in which rate and
//! which rooms they have.

mod base_latency;
mod goal;
mod littles_law;
mod overdue;
mod pace;
mod policy;
mod rate;
mod room;
mod two_level;

use core::time::Duration;

pub(crate) use overdue::Overdue;
pub(crate) use pace::Pace;
pub use policy::{LATENCY_GOAL_DEFAULT, Policy};

use crate::sync::Padded;
use crate::{DiskModel, DiskTime, Op, Time};

use goal::Goal;
use littles_law::LittlesLaw;
use rate::Rate;
use room::Room;

/// The window holds this many effective goals.
const WINDOW_GOALS: u64 = 2;
/// A disk counts as nearly idle while at most this part of the window is used.
const NEARLY_IDLE_PART: u64 = 4;

/// What a request asks of the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) cost: DiskTime,
    pub(crate) op: Op,
    pub(crate) len: u64,
}

/// Why the budget let nothing through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The rate is used up; it is open again at this time.
    Pace(Time),
    /// Too much is unfinished; it opens when something completes.
    Window,
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

/// The budget of one disk, shared by all queues of its group.
#[derive(Debug)]
pub(crate) struct Budget {
    goal: Padded<Goal>,
    rate: Padded<Rate>,
    /// Disk time of everything in the disk.
    in_flight: Padded<Room>,
    limit: Limit,
    /// Above this flow ratio, in thousandths, requests are priced higher.
    flow_limit_permille: Option<u64>,
    pub(crate) overdue: Overdue,
}

/// What bounds the work that is unfinished in the disk.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per disk")]
enum Limit {
    None,
    Window,
    Requests { max: u64, in_disk: Padded<Room> },
    LittlesLaw(LittlesLaw),
}

impl Budget {
    /// `sole` if a single shard uses it.
    pub(crate) fn new(policy: &Policy, model: &DiskModel, sole: bool) -> Self {
        let goal = Goal::new(policy, model);
        let limit = match policy {
            Policy::PaceWindow { .. } => Limit::Window,
            Policy::Concurrency { requests } => Limit::Requests {
                max: u64::from(*requests).max(1),
                in_disk: Padded(Room::new(sole)),
            },
            Policy::LittlesLaw { .. } => Limit::LittlesLaw(LittlesLaw::new(model, sole)),
            _ => Limit::None,
        };
        let flow_limit = matches!(policy, Policy::FlowRatio { .. });
        Self {
            rate: Padded(Rate::new(policy, goal.get(), sole)),
            goal: Padded(goal),
            in_flight: Padded(Room::new(sole)),
            limit,
            flow_limit_permille: flow_limit.then_some(policy::FLOW_RATIO_LIMIT_PERMILLE),
            overdue: Overdue::new(),
        }
    }

    /// Disk time of everything in the disk.
    pub(crate) fn in_flight(&self) -> DiskTime {
        DiskTime::from_units(self.in_flight.0.used())
    }

    /// How much may wait in the disk and how much may burst; unbounded when open.
    pub(crate) fn effective_goal(&self) -> DiskTime {
        self.goal.0.get()
    }

    /// Most disk time that may be unfinished when another request goes.
    pub(crate) fn window(&self) -> DiskTime {
        DiskTime::from_units(self.effective_goal().units().saturating_mul(WINDOW_GOALS))
    }

    /// Disk time that lies unused: what could be dispatched now, at most one
    /// effective goal.
    pub(crate) fn unused(&self, now: Time) -> DiskTime {
        let goal = self.effective_goal();
        let room = match &self.limit {
            Limit::None => goal,
            Limit::Window => self.in_flight.0.part_free(self.window().units(), goal),
            Limit::Requests { max, in_disk } => in_disk.0.part_free(*max, goal),
            Limit::LittlesLaw(law) => law.part_free(goal),
        };
        self.rate.0.available(now, goal).min(room)
    }

    /// When the rate alone leaves `wanted` unused (at most one effective goal).
    pub(crate) fn unused_at(&self, now: Time, wanted: DiskTime) -> Time {
        self.rate.0.available_at(now, self.effective_goal(), wanted).unwrap_or(now)
    }

    /// Takes what `ask` needs out of the budget if it is open. `flow_permille`
    /// is the asking queue's flow ratio.
    pub(crate) fn try_reserve(&self, now: Time, ask: &Ask, flow_permille: u64) -> Reservation {
        let goal = self.effective_goal();
        match self.rate.0.available_at(now, goal, DiskTime::from_units(1)) {
            Some(open_at) if open_at > now => {
                return Reservation::Refused(Refusal::Pace(open_at));
            }
            None => return Reservation::Refused(Refusal::Window),
            Some(_) => {}
        }
        let window = goal.units().saturating_mul(WINDOW_GOALS);
        let Some(before) = self.enter(ask, window) else {
            return Reservation::Refused(Refusal::Window);
        };
        if self.rate.0.try_take(now, goal, self.priced(ask.cost, goal, flow_permille)) {
            return Reservation::Granted { nearly_idle: before <= window / NEARLY_IDLE_PART };
        }
        self.leave(ask);
        Reservation::Undone
    }

    /// Takes what `ask` needs if the rate alone is open, however much is in the
    /// disk. Else when the rate is open again, if time alone brings that about.
    pub(crate) fn reserve_past_window(&self, now: Time, ask: &Ask) -> Result<(), Option<Time>> {
        let goal = self.effective_goal();
        if !self.rate.0.try_take(now, goal, ask.cost) {
            return Err(self.rate.0.available_at(now, goal, DiskTime::from_units(1)));
        }
        match &self.limit {
            Limit::None | Limit::Window => {}
            Limit::Requests { in_disk, .. } => _ = in_disk.0.enter_anyway(1),
            Limit::LittlesLaw(law) => law.enter_anyway(ask),
        }
        self.in_flight.0.enter_anyway(ask.cost.units());
        Ok(())
    }

    /// Other rates: the effective goal follows.
    pub(crate) fn set_model(&self, model: &DiskModel) {
        self.goal.0.set_model(model);
    }

    /// The latency of the idle disk is known now: the effective goal follows.
    pub(crate) fn set_base_latency(&self, base: Duration) {
        self.goal.0.set_base_latency(base);
    }

    /// The disk has finished with a request, or is no longer waited for.
    pub(crate) fn leave(&self, ask: &Ask) {
        self.in_flight.0.leave(ask.cost.units());
        match &self.limit {
            Limit::None | Limit::Window => {}
            Limit::Requests { in_disk, .. } => in_disk.0.leave(1),
            Limit::LittlesLaw(law) => law.leave(ask),
        }
        self.rate.0.completed(ask.cost);
    }

    /// Whether there is room, asked by a queue that has just left a mark and
    /// would otherwise sleep; see [`Room::open_after_mark`].
    pub(crate) fn room_after_mark(&self) -> bool {
        match &self.limit {
            Limit::None => true,
            Limit::Window => self.in_flight.0.open_after_mark(self.window().units()),
            Limit::Requests { max, in_disk } => in_disk.0.open_after_mark(*max),
            Limit::LittlesLaw(law) => law.open_after_mark(self.effective_goal()),
        }
    }

    /// Disk time that a request which is given up has kept from others: none
    /// where nothing bounds what is unfinished.
    pub(crate) fn kept_from_others(&self, in_disk_nanos: u64, cost: DiskTime) -> DiskTime {
        match &self.limit {
            Limit::None => DiskTime::ZERO,
            _ => Overdue::kept_from_others(in_disk_nanos, cost, self.window()),
        }
    }

    /// Learns from a service time that was measured while the disk was nearly idle.
    pub(crate) fn observe_idle_service(&self, service_nanos: u64) {
        self.goal.0.observe_idle_service(service_nanos);
    }

    /// Takes room for `ask`; returns the disk time that was in the disk before.
    fn enter(&self, ask: &Ask, window: u64) -> Option<u64> {
        let cost = ask.cost.units();
        match &self.limit {
            Limit::Window => return self.in_flight.0.enter(window, cost),
            Limit::None => {}
            Limit::Requests { max, in_disk } => {
                in_disk.0.enter(*max, 1)?;
            }
            Limit::LittlesLaw(law) => law.enter(self.effective_goal(), ask)?,
        }
        Some(self.in_flight.0.enter_anyway(cost))
    }

    fn priced(&self, cost: DiskTime, goal: DiskTime, flow_permille: u64) -> DiskTime {
        match self.flow_limit_permille {
            Some(limit) if flow_permille > limit => {
                let raised = u128::from(cost.units()) * u128::from(flow_permille) / 1000;
                let raised = u64::try_from(raised).unwrap_or(u64::MAX);
                DiskTime::from_units(raised.min(goal.units())).max(cost)
            }
            _ => cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

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
    fn a_base_latency_that_is_stated_later_is_not_unlearnt() {
        let budget = Budget::new(&Policy::pace_window(), &model(100_000, 1_000_000_000), false);
        budget.set_base_latency(Duration::from_millis(5));
        (0..32).for_each(|_| budget.observe_idle_service(100_000));
        assert_eq!(budget.effective_goal(), DiskTime::from_nanos(5_000_000));
        let law = Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT };
        let other = Budget::new(&law, &model(100_000, 1_000_000_000), false);
        other.set_base_latency(Duration::from_millis(5));
        assert_eq!(other.effective_goal(), DiskTime::from_nanos(750_000));
    }

    #[test]
    fn pace_and_window_both_stop_requests_and_overshoot_by_one_at_most() {
        let budget = Budget::new(&Policy::pace_window(), &model(100_000, 1_000_000_000), false);
        let cost = DiskTime::from_nanos(200_000);
        let ask = Ask { cost, op: Op::Read, len: 4096 };
        let grant = |now| budget.try_reserve(Time::from_nanos(now), &ask, 1000);
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
        budget.leave(&ask);
        assert!(budget.room_after_mark());
        assert_eq!(grant(3_000_000), Reservation::Granted { nearly_idle: false });
    }

    #[test]
    fn an_unsplittable_request_larger_than_everything_goes_alone() {
        let budget = Budget::new(&Policy::pace_window(), &model(5_000, 10_000_000), false);
        let cost = DiskTime::from_nanos(800_000_000);
        let ask = Ask { cost, op: Op::Write, len: 8 << 20 };
        let grant = |now| budget.try_reserve(Time::from_nanos(now), &ask, 1000);
        assert_eq!(grant(1), Reservation::Granted { nearly_idle: true });
        assert_eq!(grant(900_000_000), Reservation::Refused(Refusal::Window));
    }

    fn ask(model: &DiskModel, op: Op, len: u64) -> Ask {
        Ask { cost: model.cost(op, len), op, len }
    }

    /// How many requests go at once into an idle disk.
    fn admitted(policy: &Policy, model: &DiskModel, op: Op, len: u64) -> usize {
        let budget = Budget::new(policy, model, false);
        let ask = ask(model, op, len);
        let now = Time::from_nanos(1_000_000_000);
        let granted =
            |_| matches!(budget.try_reserve(now, &ask, 1000), Reservation::Granted { .. });
        (0..10_000).take_while(|&attempt| granted(attempt)).count()
    }

    #[test]
    fn the_2018_articles_worked_example() {
        let model = model(95_000, 512 << 20);
        let law = Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT };
        // 95,000 x 0.75 ms = 71.25 operations; 512 MiB/s x 0.75 ms = 402,653 bytes;
        // the last request may cross either line
        assert_eq!(admitted(&law, &model, Op::Read, 512), 72);
        assert_eq!(admitted(&law, &model, Op::Read, 131_072), 4);
        let fixed = Policy::Concurrency { requests: 32 };
        assert_eq!(admitted(&fixed, &model, Op::Read, 4096), 32);
        assert_eq!(admitted(&fixed, &model, Op::Read, 131_072), 32);
    }

    #[test]
    fn a_bucket_has_no_bound_in_the_disk_and_the_second_level_gives_it_one() {
        let model = model(10_000, 1_000_000_000);
        let ask = ask(&model, Op::Read, 4096);
        let goal = LATENCY_GOAL_DEFAULT;
        let policies = [
            (Policy::TokenBucket { latency_goal: goal }, 1_007),
            (Policy::TwoLevelBucket { latency_goal: goal }, 8),
        ];
        for (policy, expected) in policies {
            let budget = Budget::new(&policy, &model, false);
            let mut granted = 0;
            for step in 0..1_000 {
                let now = Time::from_nanos(1_000_000_000 + step * 100_000);
                let grant = || budget.try_reserve(now, &ask, 1000);
                while matches!(grant(), Reservation::Granted { .. }) {
                    granted += 1;
                }
            }
            assert_eq!(granted, expected, "{policy:?}");
        }
    }

    #[test]
    fn a_flow_ratio_above_the_limit_raises_prices() {
        let model = model(10_000, 1_000_000_000);
        let budget =
            Budget::new(&Policy::FlowRatio { latency_goal: LATENCY_GOAL_DEFAULT }, &model, false);
        let (cost, goal) = (DiskTime::from_nanos(100_000), budget.effective_goal());
        assert_eq!(budget.priced(cost, goal, 1_100), cost);
        assert_eq!(budget.priced(cost, goal, 2_000), DiskTime::from_nanos(200_000));
        assert_eq!(budget.priced(cost, goal, 90_000), goal);
    }
}
