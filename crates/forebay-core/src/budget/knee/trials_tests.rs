use super::super::Knee;
use super::super::measured::Measured;
use super::*;

const INTERVAL_NANOS: i64 = 5_000_000;
const COMPLETED: i64 = 1000;

/// The rate of a disk, in thousandths of its figures, and the latency of fresh reads, in nanoseconds, at a
/// window in thousandths of a goal. `None` if no request is fresh.
type Disk = fn(window: i64) -> (i64, Option<i64>);

/// One request after the other: a window larger than one goal only makes requests wait.
fn one_by_one(window: i64) -> (i64, Option<i64>) {
    (1000.min(window), Some(window.max(1000) * 1000))
}

/// A rate in proportion to the window, up to four goals; then requests wait.
fn four_at_once(window: i64) -> (i64, Option<i64>) {
    (1000.min(window / 4), Some(window.max(4000) * 250))
}

/// The rate of an array whose members are all busy at 48 goals, constant up to 16.
fn plateau(window: i64) -> (i64, Option<i64>) {
    ((600 + (window - 16_000).max(0) / 80).min(1000), None)
}

fn interval(trials: &Trials, disk: Disk, several: bool) -> Interval {
    let (rate, latency) = disk(trials.window());
    let fresh = if latency.is_some() { COMPLETED / 2 } else { 0 };
    let served = rate * INTERVAL_NANOS / 1000 * 64;
    let measured = Measured {
        nanos: INTERVAL_NANOS,
        served: [served / 4, served - served / 4],
        fresh: [fresh, 0],
        latency_nanos: [fresh * latency.unwrap_or(0), 0],
    };
    Interval {
        measured,
        completed: COMPLETED,
        nearly_idle: 0,
        waited_nanos: INTERVAL_NANOS,
        has_several_classes: several,
        is_cut_short: false,
        targeted: 0,
        over: 0,
        allowed_permille: 1000,
    }
}

/// The window after this many intervals, and how many of them were trials.
fn run(trials: &mut Trials, disk: Disk, several: bool, intervals: usize) -> (i64, usize) {
    let mut tried = 0;
    for _ in 0..intervals {
        tried += usize::from(trials.phase == Phase::Trial);
        let interval = interval(trials, disk, several);
        trials.step(&interval);
    }
    (trials.window, tried)
}

#[test]
fn a_disk_that_serves_one_request_after_the_other_keeps_a_window_of_one_goal() {
    let (window, _) = run(&mut Trials::new(), one_by_one, true, 1000);
    assert!((700..=1000).contains(&window), "{window}");
}

#[test]
fn the_window_grows_to_where_more_of_it_makes_requests_wait() {
    let (window, _) = run(&mut Trials::new(), four_at_once, true, 1000);
    assert!((3400..=4800).contains(&window), "{window}");
}

#[test]
fn a_settled_window_is_tried_again_less_than_once_in_a_hundred_intervals() {
    for disk in [one_by_one as Disk, four_at_once] {
        let mut trials = Trials::new();
        run(&mut trials, disk, true, 4000);
        let (_, tried) = run(&mut trials, disk, true, 4000);
        assert!((1..=40).contains(&tried), "{tried}");
    }
}

#[test]
fn a_plateau_is_crossed_by_a_class_that_is_alone() {
    let mut trials = Trials::new();
    run(&mut trials, plateau, false, 2000);
    assert!(plateau(trials.window()).0 >= 970, "{}", trials.window());
}

#[test]
fn the_widest_trial_is_not_run_where_two_classes_go_in_turn() {
    let mut trials = Trials::new();
    for turn in 0..2000 {
        assert!(trials.phase != Phase::Trial || trials.turn != WIDE, "after {turn} intervals");
        // each of two classes has the disk for a few intervals
        let interval = interval(&trials, |_| (1000, None), turn % 8 == 0);
        trials.step(&interval);
    }
}

#[test]
fn a_window_that_leaves_a_class_without_backlog_is_not_adopted() {
    fn all_of_a_class_above_six(window: i64) -> (i64, Option<i64>) {
        (window.min(20_000), (window > 6000).then_some(1_000_000))
    }
    let mut trials = Trials::new();
    run(&mut trials, all_of_a_class_above_six, true, 2000);
    let window = trials.window * BACKLOGGED / 1000;
    assert!((4000..=6000).contains(&window), "{window}");
}

#[test]
fn trials_that_leave_a_class_without_backlog_are_rare() {
    // above 14 goals a third of the requests finds none of its class before it, and some of these
    // are completed in the interval after the trial
    let mut trials = Trials::new();
    let (mut tried, mut left) = (0, 0);
    for turn in 0..4000 {
        let is_wide = trials.window() > 14_000;
        tried += i32::from(turn >= 500 && is_wide);
        let mut interval = interval(&trials, |window| (window.min(16_000), None), true);
        interval.measured.fresh = [if is_wide { COMPLETED / 3 } else { left }, 0];
        interval.measured.latency_nanos = interval.measured.fresh.map(|fresh| fresh * 60_000_000);
        left = if is_wide { COMPLETED / 9 } else { 0 };
        trials.step(&interval);
    }
    assert!((1..=70).contains(&tried), "{tried} of 3500 intervals, at {}", trials.window());
}

#[test]
fn a_gain_of_one_direction_at_the_cost_of_the_other_is_not_adopted() {
    let mut trials = Trials::new();
    for _ in 0..2000 {
        let mut interval = interval(&trials, |_| (1000, None), true);
        let [reads, others] = &mut interval.measured.served;
        *reads += *reads * trials.window().min(8000) / 16_000;
        *others -= *others * trials.window().min(8000) / 32_000;
        trials.step(&interval);
    }
    assert!(trials.window <= BEGIN * 7 / 5, "{}", trials.window);
}

#[test]
fn a_class_that_cannot_gain_does_not_keep_the_window_small() {
    let mut trials = Trials::new();
    for _ in 0..2000 {
        let mut interval = interval(&trials, four_at_once, true);
        let noise = if trials.phase == Phase::Before { 2 } else { 1 };
        // writes of a class with a limit: few, and as many in each interval
        interval.measured.served = [interval.measured.served[0] * 4, noise * INTERVAL_NANOS / 8];
        interval.measured.fresh = [0; 2];
        trials.step(&interval);
    }
    let window = trials.window * BACKLOGGED / 1000;
    assert!(window >= 3900, "{window}");
}

#[test]
fn one_per_cent_more_rate_is_no_reason_for_a_larger_window() {
    fn slope(window: i64) -> (i64, Option<i64>) {
        (1000 + window.min(16_000) / 200, None)
    }
    let mut trials = Trials::new();
    run(&mut trials, slope, true, 4000);
    assert!(trials.window <= BEGIN * 7 / 5, "{}", trials.window);
}

#[test]
fn smaller_windows_that_lose_little_each_do_not_lose_much_together() {
    // a trial of a smaller window costs 4 % of the rate and saves 20 % of the latency
    fn concave(window: i64) -> (i64, Option<i64>) {
        let (mut at, mut rate, mut latency) = (64_000, 100_000, 10_000_000);
        while at > window {
            (at, rate, latency) = (at * FACTORS[DOWN] / 1000, rate * 96 / 100, latency * 80 / 100);
        }
        (rate / 100, Some(latency))
    }
    let mut trials = Trials::new();
    (trials.window, trials.noise) = (64_000, 0);
    run(&mut trials, concave, true, 300);
    assert!(concave(trials.window).0 >= 840, "{}", trials.window);
}

#[test]
fn noise_does_not_move_the_window() {
    let (mut trials, mut state) = (Trials::new(), 1_u64);
    for _ in 0..8000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = (state >> 33) as i64 % 200;
        let mut interval = interval(&trials, |_| (1000, Some(1_000_000)), true);
        interval.measured.served =
            interval.measured.served.map(|units| units / 1000 * (900 + noise));
        trials.step(&interval);
        assert!((BEGIN / 2..=BEGIN * 2).contains(&trials.window), "{}", trials.window);
    }
}

#[test]
fn a_disk_with_idle_moments_has_a_window_that_does_not_bind() {
    let mut trials = Trials::new();
    for _ in 0..1000 {
        let interval = interval(&trials, one_by_one, true);
        trials.step(&Interval { nearly_idle: COMPLETED / 4, waited_nanos: 0, ..interval });
        assert_eq!(trials.window(), FREE);
    }
}

#[test]
fn another_disk_is_searched_anew() {
    let mut trials = Trials::new();
    run(&mut trials, one_by_one, true, 4000);
    let (window, _) = run(&mut trials, four_at_once, true, 300);
    assert!(window >= 3400, "{window} after 300 intervals");
    let (window, _) = run(&mut trials, one_by_one, true, 600);
    assert!(window <= 1400, "{window} after 600 intervals");
}

#[test]
fn a_trial_that_doubles_latency_can_end_early_and_is_no_gain() {
    let mut trials = Trials::new();
    for _ in 0..1000 {
        let mut interval = interval(&trials, four_at_once, true);
        interval.is_cut_short = trials.phase == Phase::Trial && trials.turn != DOWN;
        trials.step(&interval);
    }
    assert!(trials.window <= BEGIN, "{}", trials.window);
}

#[test]
fn a_state_survives_as_words() {
    let (mut trials, knee) = (Trials::new(), Knee::new());
    for _ in 0..500 {
        let interval = interval(&trials, four_at_once, true);
        trials.step(&interval);
        knee.keep(trials);
        assert_eq!(knee.trials(), trials);
    }
}

#[test]
fn no_measurement_panics_and_windows_stay_in_range() {
    let numbers = [0, 1, 7, 1 << 20, 1 << 50];
    let mut trials = Trials::new();
    let mut next = 0_usize;
    let mut pick = || {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        numbers[(next >> 33) % numbers.len()]
    };
    for _ in 0..100_000 {
        let measured = Measured {
            nanos: pick(),
            served: [pick(), pick()],
            fresh: [pick(), pick()],
            latency_nanos: [pick(), pick()],
        };
        trials.step(&Interval {
            measured,
            completed: pick(),
            nearly_idle: pick(),
            waited_nanos: pick(),
            has_several_classes: pick() > 1,
            is_cut_short: pick() > 1,
            targeted: pick(),
            over: pick(),
            allowed_permille: pick().min(1000),
        });
        assert!((WINDOWS.0..=WINDOWS.1).contains(&trials.window));
        assert!(trials.window() > 0 && trials.window() <= WINDOWS.1 * 20);
    }
}

/// A rate in proportion to the window, up to 200 goals.
fn late_array(window: i64) -> (i64, Option<i64>) {
    (1000.min(window / 200), None)
}

#[test]
fn a_window_far_below_what_the_disk_needs_grows_with_each_trial() {
    let mut trials = Trials::new();
    run(&mut trials, late_array, false, 30);
    let (_, tried) = run(&mut trials, late_array, false, 30);
    assert!(trials.window() > 160_000 && tried <= 15, "{}, {tried}", trials.window());
}

#[test]
fn a_larger_window_is_taken_back_if_a_class_loses_its_backlog_some_intervals_later() {
    let mut trials = Trials::new();
    let mut large = 0;
    for turn in 0..4000 {
        let is_large = trials.window() > 6000;
        large += i32::from(turn >= 500 && is_large);
        let mut interval = interval(&trials, |window| (window.min(16_000), None), true);
        // a trial is too short for the clients of the class to have all of it in the disk
        let fresh = if is_large && trials.phase != Phase::Trial { COMPLETED / 5 } else { 0 };
        interval.measured.fresh = [fresh, 0];
        interval.measured.latency_nanos = [fresh * 1_000_000, 0];
        trials.step(&interval);
    }
    assert!(large < 500, "{large} of 3500 intervals");
}

/// A small class is fresh at any window, with 16 % of requests at the larger window and 14 % at the smaller.
#[test]
fn a_larger_window_is_kept_if_hardly_more_requests_are_fresh_than_before() {
    let mut trials = Trials::new();
    let mut large = 0;
    for turn in 0..400 {
        let is_large = trials.window() > 1800;
        large += i32::from(turn >= 100 && is_large);
        let mut interval =
            interval(&trials, |window| (if window > 1800 { 1000 } else { 200 }, None), true);
        let fresh =
            COMPLETED * if is_large && trials.phase != Phase::Trial { 16 } else { 14 } / 100;
        interval.measured.fresh = [fresh, 0];
        interval.measured.latency_nanos = [fresh * 1_000_000, 0];
        trials.step(&interval);
    }
    assert!(large >= 290, "{large} of 300 intervals");
}

#[test]
fn a_trial_for_a_class_alone_ends_where_another_class_comes() {
    let mut trials = Trials::new();
    while !trials.is_wide_trial() {
        run(&mut trials, plateau, false, 1);
    }
    let wide = trials.window();
    run(&mut trials, plateau, true, 1);
    assert!(trials.phase == Phase::Before && trials.window() < wide / 4, "{}", trials.window());
}
