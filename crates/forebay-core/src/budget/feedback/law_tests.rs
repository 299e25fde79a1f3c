//! The law on made-up periods.

use alloc::vec::Vec;

use super::period::{Period, SPEED_ONE};
use super::state::{SPEED_MAX, SPEED_MIN, State, WORDS};

const WELL: Period = Period::WELL;
/// Periods after which what is usual is known.
const USUAL: u64 = 6;
const SECOND: u64 = 1_000_000_000;

fn after(state: &State, period: &Period) -> State {
    let mut state = *state;
    state.step(period);
    state
}

/// `count` periods, one after the other; the last one's end.
fn step(state: &mut State, mut now_nanos: u64, count: u64, period: &Period) -> u64 {
    for _ in 0..count {
        now_nanos += period.nanos;
        state.step(&Period { now_nanos, ..*period });
    }
    now_nanos
}

#[test]
fn beyond_the_model_the_speed_grows_only_where_what_it_lets_through_is_used() {
    let begin = State::BEGIN;
    assert!(after(&begin, &WELL).speed > begin.speed);
    let unused = Period { delivered: SPEED_ONE / 10 * 9, ..WELL };
    assert_eq!(after(&begin, &unused).speed, begin.speed);
    let bursts = State { speed: SPEED_ONE / 10, ..begin };
    let unused = Period { delivered: SPEED_ONE / 100, ..WELL };
    assert!(after(&bursts, &unused).speed > bursts.speed);
}

#[test]
fn without_a_stated_target_no_more_is_tried_than_the_model_says() {
    let promise = Period { speed_max: SPEED_ONE, ..WELL };
    let mut state = State { speed: SPEED_ONE / 2, ..State::BEGIN };
    step(&mut state, SECOND, 500, &promise);
    assert_eq!(state.speed, SPEED_ONE);
}

#[test]
fn what_waits_in_no_order_beyond_the_knee_is_not_let_through() {
    let unordered =
        Period { delivered: SPEED_ONE / 10 * 6, mean_nanos: 900_000, at_pace: 0, ..WELL };
    let cases = [
        (unordered, true),
        (Period { delivered: SPEED_ONE / 5, ..unordered }, false),
        // a load in bursts
        (Period { emptied: 1, ..unordered }, false),
        (Period { speed_max: SPEED_ONE, ..unordered }, false),
        (Period { mean_nanos: 300_000, ..unordered }, false),
        (Period { base_nanos: 0, ..unordered }, false),
    ];
    for rested in [0, 100] {
        for (period, is_cut) in cases {
            let mut state = State::BEGIN;
            for _ in 0..rested {
                state.step_unrefused(&Period { delivered: SPEED_ONE / 10, ..WELL });
            }
            for n in 1..=10 {
                let now_nanos = SECOND + n * period.nanos;
                state.step_unrefused(&Period { now_nanos, ..period });
            }
            assert_eq!(state.speed < SPEED_ONE, is_cut, "{period:?}: {}", state.speed);
            assert!(state.speed >= SPEED_ONE / 2, "{}", state.speed);
        }
    }
}

#[test]
fn one_period_in_which_the_disk_stood_still_cuts_nothing() {
    let stood_still = Period { delivered: 0, counted: 150, over: 150, at_window: 9, ..WELL };
    for well in [5, 10, 25] {
        let mut state = State::BEGIN;
        let mut now_nanos = SECOND;
        for _ in 0..50 {
            now_nanos = step(&mut state, now_nanos, well, &WELL);
            now_nanos = step(&mut state, now_nanos, 1, &stood_still);
            assert!(state.speed >= SPEED_ONE / 100 * 95, "{well}: {}", state.speed);
        }
    }
}

#[test]
fn bursts_of_which_nothing_is_late_cut_nothing_below_the_model() {
    let burst = Period { over: 0, delivered: SPEED_ONE / 2, at_window: 100, ..WELL };
    let burst = Period { mean_nanos: 800_000, speed_max: SPEED_ONE, ..burst };
    let mut state = State { speed: SPEED_ONE / 2, ..State::BEGIN };
    step(&mut state, SECOND, 100, &burst);
    assert_eq!(state.speed, SPEED_ONE);
}

#[test]
fn one_cut_takes_three_tenths_at_most() {
    let hangs = Period { delivered: 0, over: 1000, at_window: 100, nanos: 100_000_000, ..WELL };
    let mut state = State::BEGIN;
    for number in 1..20 {
        let before = state.speed;
        step(&mut state, SECOND + number * hangs.nanos, 1, &hangs);
        assert!(state.speed >= before / 10 * 7 && state.speed >= SPEED_MIN, "{state:?}");
    }
    assert!(state.speed < SPEED_ONE / 2, "{state:?}");
}

#[test]
fn growth_that_costs_reads_their_rate_is_taken_back() {
    let mut state = State::BEGIN;
    let now_nanos = step(&mut state, SECOND, USUAL, &WELL);
    let grown = state.speed;
    assert!(grown > SPEED_ONE);
    let well = Period { now_nanos: now_nanos + WELL.nanos, delivered: grown, ..WELL };
    assert!(after(&state, &Period { counted: 990, mean_nanos: 110_000, ..well }).speed > grown);
    let cost = Period { counted: 100, mean_nanos: 900_000, base_nanos: 100_000, ..well };
    step(&mut state, now_nanos, 3, &cost);
    assert!(state.speed < grown, "{state:?}");
}

#[test]
fn growth_that_was_taken_back_is_tried_again_ever_later() {
    let full = Period { delivered: SPEED_ONE, mean_nanos: 600_000, ..WELL };
    let mut state = State::BEGIN;
    let mut now_nanos = SECOND;
    let mut tries = Vec::new();
    for _ in 0..4 {
        while state.speed <= SPEED_ONE {
            now_nanos = step(&mut state, now_nanos, 1, &WELL);
        }
        tries.push(now_nanos);
        now_nanos = step(&mut state, now_nanos, 3, &full);
        assert!(state.speed <= SPEED_ONE, "{state:?}");
    }
    let waits: Vec<_> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0] / 2 * 3), "{waits:?}");
}

#[test]
fn speed_beyond_the_model_that_nobody_uses_is_taken_back() {
    let grown = State { speed: SPEED_ONE / 8 * 9, ..State::BEGIN };
    let filled = Period { delivered: SPEED_ONE, mean_nanos: 200_000, ..WELL };
    let step = |period: Period| {
        let mut state = grown;
        state.step_unrefused(&period);
        state.speed
    };
    assert!(step(filled) <= SPEED_ONE);
    assert_eq!(step(Period { mean_nanos: 90_000, ..filled }), grown.speed);
    assert_eq!(step(Period { delivered: SPEED_ONE / 2, ..filled }), grown.speed);
}

#[test]
fn what_was_cut_is_given_back_to_others_and_after_a_rest() {
    let slowed = State { speed: SPEED_MIN, ..State::BEGIN };
    let mut alone = slowed;
    step(&mut alone, SECOND, 10, &Period { nanos: 200_000_000, counted: 0, over: 0, ..WELL });
    assert_eq!(alone.speed, SPEED_ONE);
    let mut rested = slowed;
    rested.step_unrefused(&Period { nanos: 2 * SECOND, delivered: 0, ..WELL });
    assert!(rested.has_rested() && rested.speed == SPEED_ONE, "{rested:?}");
}

#[test]
fn whatever_is_remembered_nothing_overflows() {
    let extremes = [0, 1, SPEED_ONE, u64::MAX];
    for word in extremes {
        for number in extremes {
            let mut state = State::from_words([word; WORDS]);
            let period = Period {
                now_nanos: number,
                nanos: number,
                lately_nanos: number,
                counted: number,
                over: number,
                mean_nanos: number,
                threshold_nanos: number,
                delivered: number,
                at_pace: number,
                base_nanos: number,
                ..WELL
            };
            state.step(&period);
            state.step_unrefused(&period);
            state.step(&Period { at_window: number, window_at_min: true, ..period });
            assert!((SPEED_MIN..=SPEED_MAX).contains(&state.speed));
        }
    }
}
