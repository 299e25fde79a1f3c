use super::*;
use core::time::Duration;

use crate::{Control, DiskRates, Op};

fn model(iops: u64, bandwidth: u64) -> DiskModel {
    DiskModel::from_rates(&DiskRates {
        read_iops: iops,
        write_iops: iops,
        read_bandwidth: bandwidth,
        write_bandwidth: bandwidth,
    })
    .unwrap()
}

fn price_of(budget: &Budget) -> Price {
    budget.terms(budget.effective_goal()).price
}

/// An attempt of a queue that is not late, with a neutral flow ratio.
fn reserve(budget: &Budget, now: u64, demand: &Demand) -> Reservation {
    let flow = FlowRatio::new();
    let taking = ChargeContext { flow: &flow, passed: DiskTime::ZERO };
    budget.try_reserve(Time::from_nanos(now), demand, taking, DiskTime::ZERO)
}

#[test]
fn the_effective_goal_covers_a_slow_disk() {
    let fast = Budget::new(
        &Policy::pace_window(),
        &model(100_000, 1_000_000_000),
        false,
        Control::Rates,
        None,
    );
    assert_eq!(fast.effective_goal(), DiskTime::from_nanos(750_000));
    // 128 KiB take 10.4 ms on this one
    let slow =
        Budget::new(&Policy::pace_window(), &model(500, 12_500_000), false, Control::Rates, None);
    assert_eq!(slow.effective_goal().as_nanos_ceil(), 10_485_760);
    let policy = Policy::PaceWindow {
        latency_goal: LATENCY_GOAL_DEFAULT,
        base_latency: Some(Duration::from_millis(30)),
    };
    let far = Budget::new(&policy, &model(500, 12_500_000), false, Control::Rates, None);
    assert_eq!(far.effective_goal(), DiskTime::from_nanos(30_000_000));
    assert_eq!(far.window(), DiskTime::from_nanos(60_000_000));
}

#[test]
fn a_slow_base_latency_is_learnt_from_light_load() {
    let budget = Budget::new(
        &Policy::pace_window(),
        &model(100_000, 1_000_000_000),
        false,
        Control::Rates,
        None,
    );
    for turn in 1..=8 {
        budget.observe_idle_service(Time::from_nanos(turn * 1_000_000), 10_000_000);
    }
    assert_eq!(budget.effective_goal(), DiskTime::from_nanos(10_000_000));
    for turn in 9..=40 {
        budget.observe_idle_service(Time::from_nanos(turn * 1_000_000), 100_000);
    }
    assert_eq!(budget.effective_goal(), DiskTime::from_nanos(750_000));
}

#[test]
fn a_base_latency_that_is_stated_later_is_not_unlearnt() {
    let budget = Budget::new(
        &Policy::pace_window(),
        &model(100_000, 1_000_000_000),
        false,
        Control::Rates,
        None,
    );
    budget.set_base_latency(Duration::from_millis(5));
    let at = |turn: u64| Time::from_nanos(turn * 1_000_000);
    (1..=32).for_each(|turn| budget.observe_idle_service(at(turn), 100_000));
    assert_eq!(budget.effective_goal(), DiskTime::from_nanos(5_000_000));
    let law = Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT };
    let other = Budget::new(&law, &model(100_000, 1_000_000_000), false, Control::Rates, None);
    other.set_base_latency(Duration::from_millis(5));
    assert_eq!(other.effective_goal(), DiskTime::from_nanos(750_000));
}

#[test]
fn pace_and_window_both_stop_requests_and_overshoot_by_one_at_most() {
    let budget = Budget::new(
        &Policy::pace_window(),
        &model(100_000, 1_000_000_000),
        false,
        Control::Rates,
        None,
    );
    let cost = DiskTime::from_nanos(200_000);
    let demand = Demand::new(cost, Op::Read, 4096, false);
    let grant = |now| reserve(&budget, now, &demand);
    for _ in 0..4 {
        assert!(matches!(grant(1_000_000), Reservation::Granted { .. }));
    }
    let open = Time::from_nanos(1_050_001);
    assert_eq!(grant(1_000_000), Reservation::Refused(Refusal::Pace(open)));
    for now in [2_000_000, 2_200_000, 2_400_000, 2_600_000] {
        assert!(matches!(grant(now), Reservation::Granted { .. }));
    }
    // 8 x 200 us are in flight, more than the 1.5 ms of the window
    assert_eq!(grant(3_000_000), Reservation::Refused(Refusal::Window));
    assert!(!budget.room_after_mark());
    budget.leave(&demand);
    assert!(budget.room_after_mark());
    assert_eq!(grant(3_000_000), Reservation::Granted { nearly_idle: false });
}

#[test]
fn an_unsplittable_request_larger_than_everything_goes_alone() {
    let budget =
        Budget::new(&Policy::pace_window(), &model(5_000, 10_000_000), false, Control::Rates, None);
    let cost = DiskTime::from_nanos(800_000_000);
    let demand = Demand::new(cost, Op::Write, 8 << 20, false);
    let grant = |now| reserve(&budget, now, &demand);
    assert_eq!(grant(1), Reservation::Granted { nearly_idle: true });
    assert_eq!(grant(900_000_000), Reservation::Refused(Refusal::Window));
}

fn demand(model: &DiskModel, op: Op, len: u64) -> Demand {
    Demand::new(model.cost(op, len), op, len, false)
}

/// The number of requests that an idle disk gets at once.
fn admitted(policy: &Policy, model: &DiskModel, op: Op, len: u64) -> usize {
    let budget = Budget::new(policy, model, false, Control::Rates, None);
    let demand = demand(model, op, len);
    let grant = || reserve(&budget, 1_000_000_000, &demand);
    (0..10_000).take_while(|_| matches!(grant(), Reservation::Granted { .. })).count()
}

#[test]
fn the_2018_articles_worked_example() {
    let model = model(95_000, 512 << 20);
    let law = Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT };
    // 95,000 x 0.75 ms = 71.25 operations; 512 MiB/s x 0.75 ms = 402,653 bytes; the last request may exceed
    // either limit
    assert_eq!(admitted(&law, &model, Op::Read, 512), 72);
    assert_eq!(admitted(&law, &model, Op::Read, 131_072), 4);
    let fixed = Policy::Concurrency { requests: 32 };
    assert_eq!(admitted(&fixed, &model, Op::Read, 4096), 32);
    assert_eq!(admitted(&fixed, &model, Op::Read, 131_072), 32);
}

#[test]
fn a_bucket_has_no_bound_in_the_disk_and_the_second_level_gives_it_one() {
    let model = model(10_000, 1_000_000_000);
    let demand = demand(&model, Op::Read, 4096);
    let goal = LATENCY_GOAL_DEFAULT;
    let policies = [
        (Policy::TokenBucket { latency_goal: goal }, 1_007),
        (Policy::TwoLevelBucket { latency_goal: goal }, 8),
    ];
    for (policy, expected) in policies {
        let budget = Budget::new(&policy, &model, false, Control::Rates, None);
        let mut granted = 0;
        for step in 0..1_000 {
            let grant = || reserve(&budget, 1_000_000_000 + step * 100_000, &demand);
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
    let budget = Budget::new(
        &Policy::FlowRatio { latency_goal: LATENCY_GOAL_DEFAULT },
        &model,
        false,
        Control::Rates,
        None,
    );
    let (cost, goal) = (DiskTime::from_nanos(100_000), budget.effective_goal());
    let price = price_of(&budget);
    assert_eq!(budget.priced(cost, goal, price, &FlowRatio::of_permille(1_100)), cost);
    assert_eq!(
        budget.priced(cost, goal, price, &FlowRatio::of_permille(2_000)),
        DiskTime::from_nanos(200_000)
    );
    assert_eq!(budget.priced(cost, goal, price, &FlowRatio::of_permille(90_000)), goal);
}

/// A budget whose window is this many times its effective goal of 1 ms.
fn with_constant_window(goals: u32) -> Budget {
    let window = Duration::from_millis(u64::from(goals));
    let policy = Policy::PaceWindow {
        latency_goal: Duration::from_millis(1),
        base_latency: Some(Duration::from_micros(100)),
    };
    let control = Control::Fixed(FixedControl { window, pace_permille: None });
    Budget::new(&policy, &model(1_000_000, 10_000_000_000), false, control, None)
}

#[test]
fn requests_that_wait_in_a_large_window_are_not_given_up() {
    let patience =
        |goals| with_constant_window(goals).patience_nanos(Time::from_nanos(1)) / 1_000_000;
    assert_eq!([1, 2, 64].map(patience), [100, 100, 512]);
}

#[test]
fn a_late_shard_goes_beyond_what_fresh_requests_of_others_fill() {
    let budget = with_constant_window(4);
    let demand = |fresh| Demand::new(DiskTime::from_nanos(100_000), Op::Read, 4096, fresh);
    let now = 1_000_000_000;
    let granted = || matches!(reserve(&budget, now, &demand(true)), Reservation::Granted { .. });
    let fresh = (0..10_000).take_while(|_| granted()).count();
    // 3 windows of 4 ms less twice the request's own 0.1 ms
    assert_eq!(fresh, 118);
    let late = || budget.try_overdraw(Time::from_nanos(now), &demand(false), true);
    let late = (0..10_000).take_while(|_| late()).count();
    // up to 3 windows and 4 goals, however fast the pace is
    assert_eq!(late, 160 - 118);
}

#[test]
fn under_a_ceiling_the_pace_is_that_of_the_figures_and_trials_find_the_window() {
    let (policy, model) = (Policy::pace_window(), model(100_000, 1_000_000_000));
    let demand = Demand::new(DiskTime::from_nanos(10_000), Op::Read, 4096, false);
    let stated = LatencyTarget::new(Op::Read, 950, Duration::from_millis(1)).ok();
    for (ceiling, expected) in [(Ceiling::Always, 100), (Ceiling::Never, 1_000)] {
        let budget = Budget::new(&policy, &model, false, Control::Adaptive, stated);
        budget.set_ceiling(ceiling);
        let step = |now: u64| {
            let granted = matches!(reserve(&budget, now, &demand), Reservation::Granted { .. });
            if granted {
                budget.leave(&demand);
            }
            granted
        };
        let begin = 1_000_000_000;
        while step(begin) && ceiling == Ceiling::Always {}
        // a millisecond at the rate of the figures
        let granted = (1..=1_000).filter(|now| step(begin + now * 1_000)).count();
        assert_eq!(granted, expected, "{ceiling:?}");
        assert!(budget.searches_knee());
    }
}

#[test]
fn the_target_in_force_set_again_changes_nothing() {
    let target = |millis| LatencyTarget::new(Op::Read, 950, Duration::from_millis(millis)).ok();
    let policy = Policy::pace_window();
    let model = model(100_000, 1_000_000_000);
    let budget = Budget::new(&policy, &model, false, Control::Adaptive, target(1));
    let is_new = |target| budget.service.0.set_target(target);
    assert_eq!(
        [target(1), target(2), target(2), None, None].map(is_new),
        [false, true, false, true, false]
    );
}

#[test]
fn parked_grants_come_back_at_the_rate_of_the_figures_where_the_pace_does_not_bind() {
    let model = model(100_000, 1_000_000_000);
    let budget = Budget::new(&Policy::pace_window(), &model, false, Control::Adaptive, None);
    let demand = Demand::new(DiskTime::from_nanos(10_000), Op::Read, 4096, false);
    let begin = 1_000_000_000;
    while budget.reenter(Time::from_nanos(begin), &demand) {}
    // in a millisecond at the rate of the figures
    let later =
        (1..=1_000).filter(|now| budget.reenter(Time::from_nanos(begin + now * 1_000), &demand));
    assert_eq!(later.count(), 100);
}

#[test]
fn the_end_of_a_burst_changes_nothing_where_figures_bind_anyway() {
    let model = model(100_000, 1_000_000_000);
    let budget = Budget::new(&Policy::pace_window(), &model, false, Control::Rates, None);
    let before = price_of(&budget);
    budget.set_ceiling(Ceiling::AfterBurst);
    (0..100).for_each(|_| budget.controller.figures_bound.end_period(1_000, true));
    assert_eq!(price_of(&budget), before);
}

#[test]
fn a_part_scales_pace_and_window_and_what_is_owed_until_the_disk_is_this_process_s_alone() {
    let model = model(100_000, 1_000_000_000);
    let demand = Demand::new(DiskTime::from_nanos(10_000), Op::Read, 4096, true);
    for control in [Control::Adaptive, Control::Rates] {
        let budget = Budget::new(&Policy::pace_window(), &model, false, control, None);
        let begin = 1_000_000_000;
        let alone = budget.window_in_force();
        let set_part = |part| budget.set_part(Time::from_nanos(begin), part);
        let is_granted =
            |now: u64| matches!(reserve(&budget, now, &demand), Reservation::Granted { .. });
        set_part(Some(250_000));
        // a quarter of 1.5 ms, without a reserve for fresh requests
        let quarter = DiskTime::from_nanos(375_000);
        assert_eq!(budget.window_in_force(), quarter);
        while is_granted(begin) {}
        let in_disk = budget.in_flight();
        assert!(in_disk <= quarter.plus(DiskTime::from_nanos(10_000)), "{in_disk:?}");
        // as if the disk answered at once: a millisecond at a quarter of the figures
        let granted = (1..=1_000).filter(|now| {
            budget.leave(&demand);
            let granted = is_granted(begin + 100_000_000 + now * 1_000);
            budget.enter_anyway(&demand);
            if granted {
                budget.leave(&demand);
            }
            granted
        });
        let burst = budget.effective_goal().as_nanos_ceil().div_ceil(40_000);
        assert_eq!(granted.count() as u64, burst + 25, "{control:?}");
        budget.set_base_latency(Duration::from_micros(200));
        let known = if control == Control::Adaptive { 100_000 } else { 375_000 };
        assert_eq!(budget.window_in_force(), DiskTime::from_nanos(known));
        budget.set_base_latency(Duration::ZERO);
        set_part(None);
        assert_eq!(budget.window_in_force(), alone);
    }
}
