//! Nested requests whose class, or the class of their holders, has a limit.

use std::time::Duration;

use forebay_core::{
    ClassId, DiskTime, IoGroup, IoQueue, LATENCY_GOAL_DEFAULT, Limits, Op, Outcome, Policy,
    ServiceOrder, Time,
};

use super::{Bed, STEP};
use crate::world::{MILLI, SECOND, by_figures, model};

fn operations(rate: u64) -> Limits {
    Limits { operations_per_second: Some(rate), bytes_per_second: None }
}

fn bytes(rate: u64) -> Limits {
    Limits { bytes_per_second: Some(rate), operations_per_second: None }
}

/// A policy with a stated base latency, so that no larger window is tried.
fn policy() -> Policy {
    let base_latency = Some(Duration::from_micros(200));
    Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency }
}

impl Bed {
    /// A class with limits, or in a group with limits.
    fn limited(&self, shares: u32, limits: &Limits, in_group: bool) -> ClassId {
        if in_group {
            let parent = self.group.add_class_group(None, shares).unwrap();
            self.group.set_limits(parent, limits).unwrap();
            return self.group.add_class(Some(parent), 100).unwrap();
        }
        let class = self.class(shares);
        self.group.set_limits(class, limits).unwrap();
        class
    }

    /// The largest excess over the window, in thousandths of it.
    fn beyond_window(&self) -> u64 {
        self.in_flight_max.units() * 1000 / self.group.window().units() - 1000
    }
}

#[test]
fn a_limit_holds_for_a_class_that_only_holders_use() {
    let limits = [
        (4096, operations(50)),
        (4096, operations(500)),
        (4096, operations(2_000)),
        (4096, bytes(1 << 20)),
        (131_072, bytes(10 << 20)),
        (131_072, bytes(300 << 20)),
    ];
    for (len, limits) in limits {
        for (shards, inner, in_group) in
            [(1, 1, false), (1, 20, true), (2, 1, true), (2, 20, false), (3, 1, false)]
        {
            let mut bed = Bed::new(policy(), shards);
            let held = bed.class(1000);
            let limited = bed.limited(1000, &limits, in_group);
            let other = bed.class(100);
            bed.owners_of_two(32, (0, held, limited), len, inner);
            if shards == 3 {
                bed.owners_of_two(32, (1, held, limited), len, inner);
            }
            bed.owners(32, (shards - 1, other), 4096, 0);
            bed.run(4 * SECOND);
            let rate = match (limits.operations_per_second, limits.bytes_per_second) {
                (Some(rate), _) => rate,
                (None, rate) => rate.unwrap() / len,
            };
            let (done, due) = (bed.operations(limited) as f64, (4 * rate) as f64);
            // 10 ms at once, and one request per shard
            let burst = rate as f64 / 100.0 + shards as f64;
            let case = format!("{limits:?}, {len} bytes, {shards} shards, {inner}, {in_group}");
            assert!(done <= due * 1.02 + burst, "{case}: {done} of {due}");
            assert!(done >= due * 0.98, "{case}: {done} of {due}");
        }
    }
}

#[test]
fn others_have_the_disk_while_a_limit_holds_back_who_has_the_whole_window() {
    for (shards, nested, len) in
        [(1, 16, 4096), (1, 100, 4096), (2, 16, 4096), (2, 3, 1 << 20), (3, 6, 1 << 20)]
    {
        for (rate, in_group) in [(1, false), (20, true), (500, false)] {
            let mut bed = Bed::new(policy(), shards);
            let held = bed.class(1000);
            let limited = bed.limited(1000, &operations(rate), in_group);
            let other = bed.class(100);
            bed.owners_of_two(nested, (0, held, limited), len, 1);
            // the holders have all requests that they hold
            bed.run(SECOND / 2);
            let of_holders = |bed: &Bed| bed.consumption(held) + bed.consumption(limited);
            let before = of_holders(&bed);
            bed.owners(32, (shards - 1, other), 4096, 0);
            bed.run(4 * SECOND);
            let second = DiskTime::UNITS_PER_SECOND as f64;
            let left = 4.0 - (of_holders(&bed) - before) / second;
            let served = bed.consumption(other) / second;
            let case = format!("{shards} shards, {nested} nested of {len}, {rate}, {in_group}");
            assert!(served >= 0.9 * left, "{case}: {served} of {left}");
            assert!(bed.window_bypasses() > 0 || rate == 500, "{case}");
        }
    }
}

/// The bound holds however slow the disk is, and however long nested requests wait.
#[test]
fn while_a_limit_holds_holders_back_others_have_at_most_eight_windows_more() {
    for (shards, slowness, in_group) in
        [1, 2, 3].into_iter().flat_map(|shards| [(shards, 200, false), (shards, 1000, true)])
    {
        let mut bed = Bed::new(policy(), shards);
        bed.slowness = slowness;
        let limited = bed.limited(100, &operations(10), in_group);
        let other = bed.class(100);
        bed.owners(4, (0, limited), 4096, 5);
        for shard in 0..shards {
            bed.owners(64, (shard, other), 4096, 0);
        }
        bed.run(10 * SECOND);
        let case = format!("{shards} shards, {slowness} percent, in a group: {in_group}");
        let served = bed.consumption(other) / DiskTime::UNITS_PER_SECOND as f64;
        let due = 1000.0 / slowness as f64;
        assert!((0.95 * due..1.05 * due).contains(&served), "{case}: {served} of {due}");
        // allow for a request of each shard, of 15 in a window, and for requests that found it open
        assert!(bed.beyond_window() < 8_500, "{case}: {} beyond", bed.beyond_window());
        // four were granted and are held
        let done = bed.operations(limited);
        assert!((94..=103).contains(&done), "{case}: {done} at 10 a second");
    }
}

#[test]
fn holders_of_two_limited_classes_who_wait_for_each_other_get_on() {
    for policy in [policy(), Policy::Concurrency { requests: 8 }] {
        for (shards, nested, rate) in [(1, 1, 10), (1, 8, 50), (2, 8, 50), (2, 32, 100)] {
            let mut bed = Bed::new(policy, shards);
            let [one, two] = [1, 1000].map(|shares| bed.limited(shares, &operations(rate), false));
            bed.owners_of_two(nested, (0, one, two), 4096, 1);
            bed.owners_of_two(nested, (shards - 1, two, one), 4096, 1);
            bed.run(10 * SECOND);
            let rounds: Vec<_> = bed.owners.iter().map(|owner| owner.rounds).collect();
            let case = format!("{policy:?}, {shards} shards, {nested} of each, {rate}");
            // each owner takes one of both
            let all = rounds.iter().sum::<u64>();
            assert!(all + 2 * nested as u64 >= 10 * rate * 9 / 10, "{case}: {rounds:?}");
            let least = 10 * rate / (2 * nested as u64) / 2;
            assert!(rounds.iter().all(|rounds| *rounds >= least), "{case}: {rounds:?}");
        }
    }
}

#[test]
fn a_holder_gets_on_though_its_class_owes_a_limit_and_the_others_have_the_disk() {
    for (len, in_group) in
        [4096, 131_072, 1 << 20].into_iter().flat_map(|len| [(len, false), (len, true)])
    {
        for (shards, mib_per_second) in [(1, 1), (1, 10), (2, 1), (2, 10), (3, 100)] {
            let rate = mib_per_second << 20;
            let mut bed = Bed::new(policy(), shards);
            let limited = bed.limited(100, &bytes(rate), in_group);
            let other = bed.class(100);
            bed.owners(3, (0, limited), len, 2);
            bed.owners(64, (shards - 1, other), 4096, 0);
            bed.run(10 * SECOND);
            let case = format!("{len} bytes, {in_group}, {shards}, {mib_per_second} MiB/s");
            let [held, others] = [limited, other].map(|class| bed.consumption(class));
            let used = (held + others) / (10 * DiskTime::UNITS_PER_SECOND) as f64;
            assert!(used > 0.98, "{case}: {used} of the disk is used");
            let bytes = bed.operations(limited) * len;
            // a burst and a request
            let most = rate * 10 + rate / 100 + len;
            assert!(bytes <= most, "{case}: {bytes} of {most}");
        }
    }
}

#[test]
fn a_limit_holds_holders_back_as_others_and_who_asked_first_goes_first() {
    for order in
        [ServiceOrder::StartTime, ServiceOrder::ExponentialDecay { tau_nanos: 100_000_000 }]
    {
        let mut config = by_figures(model(10_000, 1_000_000_000), Policy::pace_window());
        config.order = order;
        let group = IoGroup::new(config);
        let mut queue = group.join().unwrap();
        let parent = group.add_class_group(None, 100).unwrap();
        let class = group.add_class(Some(parent), 100).unwrap();
        let mut now = Time::from_nanos(SECOND);
        let ask = |queue: &mut IoQueue, now, nested| {
            if nested {
                queue.enqueue_nested(now, class, Op::Read, 4096).unwrap()
            } else {
                queue.enqueue(now, class, Op::Read, 4096).unwrap()
            }
        };
        let drain = |queue: &mut IoQueue, now: &mut Time, nanos: u64| {
            let mut went = Vec::new();
            let end = now.plus_nanos(nanos);
            while *now < end {
                *now = now.plus_nanos(STEP);
                while let Some(ticket) = queue.poll_dispatch(*now) {
                    queue.complete(*now, ticket, Outcome::Done).unwrap();
                    went.push(ticket);
                }
            }
            went
        };
        let twenty = |queue: &mut IoQueue, now| -> Vec<_> {
            (0..20).map(|n| ask(queue, now, n % 3 == 1)).collect()
        };
        let mut in_turn = twenty(&mut queue, now);
        assert_eq!(drain(&mut queue, &mut now, 10 * MILLI), in_turn, "{order:?}: no limit");
        group.set_limits(parent, &operations(10)).unwrap();
        in_turn = twenty(&mut queue, now);
        assert_eq!(drain(&mut queue, &mut now, SECOND / 20), in_turn[..1], "{order:?}");
        for n in 1..20 {
            let went = drain(&mut queue, &mut now, SECOND / 10);
            assert_eq!(went, in_turn[n..=n], "{order:?}: the limit is used up");
            if n == 3 {
                let late = ask(&mut queue, now, true);
                assert!(queue.cancel(now, late), "and one that gives up leaves nothing behind");
            }
        }
        assert_eq!((queue.len(), queue.counters().window_bypasses), (0, 0), "{order:?}");
    }
}
