//! The group's atomics under every interleaving of two or three threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p forebay-core --release --lib loom_tests`.

use alloc::vec::Vec;

use loom::sync::Arc;
use loom::thread;

use crate::budget::{Ask, Budget, Pace, Refusal, Reservation};
use crate::class_tree::{ClassTree, ROOT};
use crate::peers::{Marks, ShardId, Wakes};
use crate::{DiskModel, DiskTime, Op, Policy, Time};

const COST: DiskTime = DiskTime::from_nanos(1_000_000);
const ASK: Ask = Ask { cost: COST, op: Op::Read, len: 4096 };

fn budget() -> Budget {
    // the window is 1.5 ms: two requests of 1 ms fill it
    Budget::new(&Policy::pace_window(), &DiskModel::unmeasured(), false)
}

fn granted(reservation: Reservation) -> bool {
    matches!(reservation, Reservation::Granted { .. })
}

#[test]
fn the_pace_is_not_handed_out_twice() {
    loom::model(|| {
        let pace = Arc::new(Pace::new(false));
        let now = Time::from_nanos(1_000_000_000);
        let burst = DiskTime::from_nanos(2_000_000);
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let pace = Arc::clone(&pace);
                thread::spawn(move || (0..2).filter(|_| pace.try_take(now, burst, COST)).count())
            })
            .collect();
        let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(taken, 2);
    });
}

#[test]
fn the_window_overshoots_by_one_request_at_most_and_is_given_back_whole() {
    loom::model(|| {
        let budget = Arc::new(budget());
        let takers: Vec<_> = (0..2)
            .map(|taker| {
                let budget = Arc::clone(&budget);
                thread::spawn(move || {
                    let now = Time::from_nanos(1_000_000_000 * (taker + 1));
                    let got = granted(budget.try_reserve(now, &ASK, 1000));
                    assert!(budget.in_flight() <= DiskTime::from_nanos(3_000_000));
                    if got {
                        budget.leave(&ASK);
                    }
                })
            })
            .collect();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(budget.in_flight(), DiskTime::ZERO);
    });
}

#[test]
fn a_shard_that_finds_the_window_full_sees_the_room_or_is_woken() {
    loom::model(|| {
        let budget = Arc::new(budget());
        let marks = Arc::new(Marks::new());
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        assert!(granted(budget.try_reserve(at(1), &ASK, 1000)));
        assert!(granted(budget.try_reserve(at(2), &ASK, 1000)));
        let completer = {
            let (budget, marks) = (Arc::clone(&budget), Arc::clone(&marks));
            thread::spawn(move || {
                budget.leave(&ASK);
                let mut wakes = Wakes::default();
                marks.take_into(&mut wakes);
                wakes.pop().is_some()
            })
        };
        let waits = match budget.try_reserve(at(3), &ASK, 1000) {
            Reservation::Refused(Refusal::Window) => {
                marks.set(ShardId(5));
                !budget.room_after_mark()
            }
            _ => false,
        };
        let woken = completer.join().unwrap();
        assert!(!waits || woken, "asleep, and nobody knows");
    });
}

#[test]
fn a_class_that_wakes_on_two_shards_catches_up_once() {
    loom::model(|| {
        let tree = Arc::new(ClassTree::small(1));
        let class = tree.add_class(None, 10).unwrap().node();
        tree.node(ROOT).advance_virtual_time(1_000);
        let shards: Vec<_> = (0..2)
            .map(|_| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    tree.wake(class, 0);
                    let (start, _) = tree.node(class).charge(DiskTime::from_units(100), &mut 0);
                    tree.node(class).sleep();
                    start
                })
            })
            .collect();
        let starts: Vec<u64> = shards.into_iter().map(|shard| shard.join().unwrap()).collect();
        // one of the two may start before the other has made it catch up
        assert!(starts.iter().any(|&start| start >= 1_000), "{starts:?}");
        assert!(tree.node(class).tag() >= 1_000);
    });
}

#[test]
fn a_class_that_two_remove_at_once_is_removed_once() {
    loom::model(|| {
        let tree = Arc::new(ClassTree::small(1));
        let group = tree.add_class_group(None, 10).unwrap();
        let class = tree.add_class(Some(group), 10).unwrap();
        let others = Arc::clone(&tree);
        let other = thread::spawn(move || others.remove_class(class).is_ok());
        let one = tree.remove_class(class).is_ok();
        assert!(one != other.join().unwrap());
        assert!(tree.class(class).is_err());
        assert_eq!(tree.remove_class_group(group), Ok(()));
    });
}
