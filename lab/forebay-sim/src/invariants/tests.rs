//! Each check sees what it is there for.

use forebay_core::{
    ClassId, DiskModel, DiskRates, DiskTime, GroupConfig, IoGroup, IoQueue, Op, Outcome, Policy,
    Ticket, Time,
};

use super::classes::{Class, Shares, fractions};
use super::conservation::{Conservation, State};
use super::lag::Lag;
use super::ledger::Ledger;
use super::starvation::Starvation;

const COST: u64 = 1000;

fn group() -> (IoGroup, IoQueue, ClassId) {
    let rates = DiskRates {
        read_iops: 10_000,
        write_iops: 10_000,
        read_bandwidth: 1 << 30,
        write_bandwidth: 1 << 30,
    };
    let model = DiskModel::from_rates(&rates).unwrap();
    let group = IoGroup::new(GroupConfig::new(model, Policy::pace_window()));
    let class = group.add_class(None, 100).unwrap();
    let queue = group.join().unwrap();
    (group, queue, class)
}

fn ticket(queue: &mut IoQueue, class: ClassId) -> Ticket {
    queue.enqueue(Time::ZERO, class, Op::Read, 4096).unwrap()
}

fn class(name: &str, shares: u32) -> Class {
    Class { name: name.into(), shares: Shares::new(shares), parent: None, is_capped: false }
}

#[test]
fn a_ticket_has_one_life() {
    let (_, mut queue, id) = group();
    let mut ledger = Ledger::new(1);
    let ticket = ticket(&mut queue, id);
    assert!(ledger.dispatched(Time::ZERO, ticket).is_err());
    ledger.enqueued(ticket, 0, COST).unwrap();
    assert!(ledger.enqueued(ticket, 0, COST).is_err());
    assert_eq!(ledger.after_step(&queue), Ok(0));
    assert_eq!(queue.poll_dispatch(Time::ZERO), Some(ticket));
    assert_eq!(ledger.dispatched(Time::ZERO, ticket), Ok((0, COST)));
    assert!(ledger.dispatched(Time::ZERO, ticket).is_err());
    assert_eq!(ledger.after_step(&queue), Ok(COST));
    let done = queue.complete(Time::ZERO, ticket, Outcome::Done).ok();
    // The queue has forgotten it, and the ledger not yet.
    assert!(ledger.after_step(&queue).is_err());
    ledger.completed(ticket, done).unwrap();
    assert!(ledger.completed(ticket, done).is_err());
    assert_eq!(ledger.after_step(&queue), Ok(0));
}

#[test]
fn a_request_that_the_queue_does_not_know_is_lost() {
    let (_, mut queue, id) = group();
    let mut ledger = Ledger::new(1);
    let ticket = ticket(&mut queue, id);
    ledger.enqueued(ticket, 0, COST).unwrap();
    assert!(ledger.completed(ticket, None).is_err());
}

#[test]
fn a_shard_that_gets_ahead_is_detected() {
    let classes = [class("a", 100), class("b", 100)];
    let mut lag = Lag::new(2, DiskTime::ZERO);
    let both_wait = |_| 1;
    assert_eq!(lag.check(&classes, both_wait), Ok(()));
    for _ in 0..2 {
        lag.dispatched((0, COST), 1);
        lag.dispatched((1, COST), 1);
        assert_eq!(lag.check(&classes, both_wait), Ok(()));
    }
    lag.dispatched((0, COST), 1);
    lag.dispatched((0, COST), 1);
    assert_eq!(lag.check(&classes, both_wait), Ok(()));
    lag.dispatched((0, COST), 1);
    assert!(lag.check(&classes, both_wait).is_err_and(|(class, _)| class == Some(1)));
    // Who has nothing to do does not lag.
    assert_eq!(lag.check(&classes, |class| 1 - class as u32), Ok(()));
}

#[test]
fn a_starved_class_is_detected() {
    let classes = [class("a", 100), class("b", 100)];
    let fractions = fractions(&classes, &[]);
    assert_eq!(fractions, [0.5, 0.5]);
    let mut starvation = Starvation::new((1, 2), 0, DiskTime::ZERO);
    starvation.enqueued(0, (1, COST), 0);
    let mut turns = |count: u64, from: u64, per_turn: u64| {
        (1..=count).try_for_each(|turn| {
            starvation.polled(0);
            let done = (from + turn * per_turn, COST);
            starvation.check(0, done, (&fractions, |_| false))
        })
    };
    assert_eq!(turns(4, 0, COST), Ok(()));
    // Rare turns are its own affair, and so is it if little goes meanwhile.
    assert_eq!(turns(7, 0, 20 * COST), Ok(()));
    assert!(turns(20, 140 * COST, COST).is_err_and(|(class, _)| class == Some(1)));
}

#[test]
fn a_class_that_blocked_the_disk_waits_as_long() {
    let classes = [class("a", 100), class("b", 100)];
    let fractions = fractions(&classes, &[]);
    let mut starvation = Starvation::new((1, 2), 0, DiskTime::ZERO);
    starvation.enqueued(0, (1, COST), 0);
    starvation.charged(1, (200 * COST) as f64, 0);
    let mut turns = |from: u64, to: u64| {
        (from..to).try_for_each(|turn| {
            starvation.polled(0);
            starvation.check(0, (turn * COST, COST), (&fractions, |_| false))
        })
    };
    assert_eq!(turns(0, 200), Ok(()));
    assert!(turns(200, 300).is_err_and(|(class, _)| class == Some(1)));
}

#[test]
fn only_the_class_charged_for_a_hang_lags() {
    let classes = [class("a", 100), class("b", 100)];
    let mut lag = Lag::new(2, DiskTime::ZERO);
    let both_wait = |_| 1;
    lag.dispatched((0, COST), 1);
    lag.dispatched((1, COST), 1);
    lag.charged(1, 5 * COST);
    for _ in 0..7 {
        assert_eq!(lag.check(&classes, both_wait), Ok(()));
        lag.dispatched((0, COST), 1);
    }
    lag.dispatched((0, COST), 1);
    assert!(lag.check(&classes, both_wait).is_err_and(|(class, _)| class == Some(1)));
    // It has paid when it is served again.
    lag.dispatched((1, COST), 1);
    assert_eq!(lag.check(&classes, both_wait), Ok(()));
    (0..3).for_each(|_| lag.dispatched((0, COST), 1));
    assert!(lag.check(&classes, both_wait).is_err_and(|(class, _)| class == Some(1)));
}

#[test]
fn an_empty_disk_with_queued_work_is_detected() {
    let (group, ..) = group();
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let waits = |disk_is_empty| State { someone_waits: true, oldest: None, disk_is_empty };
    let mut conservation = Conservation::new(0, Some(500_000));
    conservation.completed(1 << 40);
    assert_eq!(conservation.after_step(at(10), &group, waits(false)), Ok(()));
    assert_eq!(conservation.before_step(at(20), &group), Ok(()));
    assert_eq!(conservation.after_step(at(20), &group, waits(true)), Ok(()));
    assert_eq!(conservation.before_step(at(120), &group), Ok(()));
    assert!(conservation.before_step(at(130), &group).is_err());
}

#[test]
fn an_idle_disk_with_queued_work_is_detected() {
    let (group, ..) = group();
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let mut conservation = Conservation::new(0, None);
    let state = |someone_waits| State { someone_waits, oldest: None, disk_is_empty: true };
    assert_eq!(conservation.after_step(at(10), &group, state(true)), Ok(()));
    assert_eq!(conservation.before_step(at(11), &group), Ok(()));
    assert!(conservation.before_step(at(20), &group).is_err());
    assert!(conservation.after_step(at(20), &group, state(true)).is_err());
    assert_eq!(conservation.after_step(at(30), &group, state(false)), Ok(()));
    assert_eq!(conservation.before_step(at(40), &group), Ok(()));
}

#[test]
fn the_due_share_of_a_class_follows_from_its_groups() {
    let inside = |shares| Class { parent: Some(0), ..class("inside", shares) };
    let classes = [inside(10), inside(30), class("outside", 100)];
    assert_eq!(fractions(&classes, &[Shares::new(100)]), [0.125, 0.375, 0.5]);
    let mut changed = Shares::new(100);
    changed.change(300);
    assert_eq!((changed.now, changed.least, changed.most), (300, 100, 300));
}
