//! The atomics of a group under every interleaving of two or three threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p forebay-core --release --lib loom_tests`.

use alloc::vec::Vec;

use loom::sync::Arc;
use loom::thread;

use crate::budget::{Budget, ChargeContext, Demand, Pace, Refusal, Reservation};
use crate::class_tree::{ClassTree, Credit, ROOT};
use crate::flow::FlowRatio;
use crate::limit::{Limiter, Limits};
use crate::shard_set::ShardId;
use crate::shard_set::{ShardSet, WakeList};
use crate::{Control, DiskModel, DiskTime, Op, Policy, Time};

const COST: DiskTime = DiskTime::from_nanos(1_000_000);
const NO_CREDIT: Credit = Credit { exclusive: 0, shared: 0 };
const ASK: Demand = Demand::new(COST, Op::Read, 4096, false);

fn budget() -> Budget {
    // the window is 1.5 ms: two requests of 1 ms fill it
    Budget::new(&Policy::pace_window(), &DiskModel::unmeasured(), false, Control::Rates, None)
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
                    let got = granted(budget.try_reserve(
                        now,
                        &ASK,
                        ChargeContext { flow: &FlowRatio::new(), passed: DiskTime::ZERO },
                        DiskTime::ZERO,
                    ));
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
        let marks = Arc::new(ShardSet::default());
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        assert!(granted(budget.try_reserve(
            at(1),
            &ASK,
            ChargeContext { flow: &FlowRatio::new(), passed: DiskTime::ZERO },
            DiskTime::ZERO
        )));
        assert!(granted(budget.try_reserve(
            at(2),
            &ASK,
            ChargeContext { flow: &FlowRatio::new(), passed: DiskTime::ZERO },
            DiskTime::ZERO
        )));
        let completer = {
            let (budget, marks) = (Arc::clone(&budget), Arc::clone(&marks));
            thread::spawn(move || {
                budget.leave(&ASK);
                let mut wakes = WakeList::default();
                marks.take_into(&mut wakes);
                wakes.pop().is_some()
            })
        };
        let waits = match budget.try_reserve(
            at(3),
            &ASK,
            ChargeContext { flow: &FlowRatio::new(), passed: DiskTime::ZERO },
            DiskTime::ZERO,
        ) {
            Reservation::Refused(Refusal::Window) => {
                marks.insert(ShardId(5));
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
        let tree = Arc::new(ClassTree::small(1, false));
        let id = tree.add_class(None, 10).unwrap();
        let class = id.node();
        tree.rescale_tag(class, false);
        tree.node(ROOT).advance_virtual_time(1_000);
        let shards: Vec<_> = (0..2)
            .map(|_| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    tree.wake(id, NO_CREDIT).unwrap();
                    let (start, _) = tree.node(class).charge(DiskTime::from_units(100), &mut 0);
                    tree.sleep(class);
                    start
                })
            })
            .collect();
        let starts: Vec<u64> = shards.into_iter().map(|shard| shard.join().unwrap()).collect();
        // one of the two may start before the other has raised the tag
        assert!(starts.iter().any(|&start| start >= 1_000), "{starts:?}");
        assert!(tree.node(class).tag() >= 1_000);
    });
}

#[test]
fn a_class_that_two_remove_at_once_is_removed_once() {
    loom::model(|| {
        let tree = Arc::new(ClassTree::small(1, false));
        let group = tree.add_class_group(None, 10).unwrap();
        let class = tree.add_class(Some(group), 10).unwrap();
        let others = Arc::clone(&tree);
        let other = thread::spawn(move || others.remove(class).is_ok());
        let one = tree.remove(class).is_ok();
        assert!(one != other.join().unwrap());
        assert!(tree.live(class).is_err());
        assert_eq!(tree.remove(group), Ok(()));
    });
}

#[test]
fn a_class_is_removed_or_takes_work_and_never_both() {
    for sole in [true, false] {
        loom::model(move || {
            let tree = Arc::new(ClassTree::small(1, sole));
            let class = tree.add_class(None, 10).unwrap();
            let remover = {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    tree.remove(class).ok()?;
                    tree.add_class(None, 20).ok()
                })
            };
            let queued = tree.wake(class, NO_CREDIT).is_ok();
            if queued {
                // no other class has the slot while there is work
                assert_eq!(tree.live(class).map(|node| node.shares()), Ok(10));
                tree.sleep(class.node());
            }
            let successor = remover.join().unwrap();
            assert!(queued || successor.is_some(), "refused, and nobody removed it");
            assert_eq!(tree.live(class).is_ok(), successor.is_none());
            let present = successor.unwrap_or(class);
            assert_eq!(tree.remove(present), Ok(()), "nobody uses it any more");
        });
    }
}

#[test]
fn a_group_is_removed_or_takes_a_class_and_never_both() {
    loom::model(|| {
        let tree = Arc::new(ClassTree::small(1, false));
        let group = tree.add_class_group(None, 10).unwrap();
        let others = Arc::clone(&tree);
        let remover = thread::spawn(move || others.remove(group).is_ok());
        let class = tree.add_class(Some(group), 10);
        let removed = remover.join().unwrap();
        assert!(removed != class.is_ok());
    });
}

#[test]
fn a_tag_is_restated_once_and_whoever_saw_the_old_one_looks_again() {
    loom::model(|| {
        let tree = Arc::new(ClassTree::small(1, false));
        let class = tree.add_class(None, 1).unwrap();
        tree.wake(class, NO_CREDIT).unwrap();
        let node = tree.node(class.node());
        node.charge(DiskTime::from_units(50_000), &mut 0);
        tree.set_shares(node, 10).unwrap();
        let shards: Vec<_> = (0..2)
            .map(|_| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    let seen = tree.changes();
                    tree.rescale_tag(class.node(), true);
                    (seen, tree.node(class.node()).tag())
                })
            })
            .collect();
        let found: Vec<_> = shards.into_iter().map(|shard| shard.join().unwrap()).collect();
        for (seen, tag) in found {
            assert!(tag == 5_000 || tree.changes() != seen, "{tag} for ever");
        }
        assert_eq!(tree.node(class.node()).tag(), 5_000);
    });
}

#[test]
fn charges_during_a_change_of_limit_are_forgiven_too() {
    loom::model(|| {
        let per_second = |rate| Limits { bytes_per_second: Some(rate), ..Limits::default() };
        let limiter = Arc::new(Limiter::default());
        limiter.set(&per_second(1));
        let now = Time::from_nanos(1_000_000_000);
        let charging = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.charge(now, 1 << 20))
        };
        limiter.set(&per_second(1 << 30));
        limiter.closed_until(now);
        charging.join().unwrap();
        let open = limiter.closed_until(now).unwrap_or(now);
        assert!(open.nanos_since(now) <= 10_000_001, "closed for {} ns", open.nanos_since(now));
    });
}
