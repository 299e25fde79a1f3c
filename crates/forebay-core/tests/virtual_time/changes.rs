//! Classes, shares, limits and queues that change while there is work.

use std::collections::HashMap;

use forebay_core::{
    ClassGroupId, ClassId, CostCurve, DiskModel, DiskTime, IoGroup, IoQueue, LATENCY_GOAL_DEFAULT,
    Limits, Op, Outcome, Policy, Ticket, Time,
};

use crate::world::{Client, MILLI, SECOND, World, by_figures, model, share_error};

const UNLIMITED: Limits = Limits { bytes_per_second: None, operations_per_second: None };

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn bytes(rate: u64) -> Limits {
    Limits { bytes_per_second: Some(rate), ..UNLIMITED }
}

fn reads(shard: usize, class: ClassId, len: u64) -> Client {
    Client { shard, class, op: Op::Read, len, pause: 0 }
}

/// The milliseconds until `queue` dispatches `wanted`, if it is polled each millisecond.
fn waits_for(queue: &mut IoQueue, now: u64, wanted: Ticket) -> u64 {
    let goes = |&ms: &u64| {
        std::iter::from_fn(|| queue.poll_dispatch(at(now + ms * MILLI))).any(|t| t == wanted)
    };
    (0..20_000).find(goes).unwrap_or(u64::MAX)
}

/// A removed class that has used much of the disk through `queue`.
fn a_class_that_was(group: &IoGroup, parent: Option<ClassGroupId>, queue: &mut IoQueue) -> ClassId {
    let class = group.add_class(parent, 1).unwrap();
    for step in 0..2_000 {
        let now = at(1 + step * 2 * MILLI);
        queue.enqueue(now, class, Op::Read, 131_072).unwrap();
        while let Some(ticket) = queue.poll_dispatch(now) {
            queue.complete(now, ticket, Outcome::Done).unwrap();
        }
    }
    group.remove(class).unwrap();
    class
}

#[test]
fn a_class_in_a_reused_place_starts_at_its_new_parents_time() {
    for shards in [1, 2, 3] {
        for (into_group, shares) in [(false, 1000), (true, 1000), (false, 1), (true, 1)] {
            let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), shards);
            let group = world.group.add_class_group(None, 1000).unwrap();
            let parents = [Some(group), None];
            let [before, after] = if into_group { [None, parents[0]] } else { parents };
            let gone = a_class_that_was(&world.group, before, &mut world.shards[0].queue);
            let late = world.group.add_class(after, shares).unwrap();
            assert_eq!(late.index(), gone.index());
            let other = world.group.add_class(after, shares).unwrap();
            world.now = 10 * SECOND;
            // the first class sets the virtual time of its parent, which would hide a wrong tag
            (0..shards).for_each(|shard| world.clients(8, reads(shard, other, 4096)));
            world.run_until(11 * SECOND);
            let used_alone = world.consumption(other);
            (0..shards).for_each(|shard| world.clients(8, reads(shard, late, 4096)));
            world.run_until(13 * SECOND);
            let used = [world.consumption(late), world.consumption(other) - used_alone];
            let case = format!("{shards} shards, {shares} shares, into a group: {into_group}");
            assert!(share_error(&used, &[1, 1]) < 0.02, "{case}: {used:?}");
        }
    }
}

/// A class whose limit keeps its second request waiting for more than 16 s.
fn a_class_in_debt(world: &mut World) -> (ClassId, Ticket) {
    let class = world.group.add_class(None, 100).unwrap();
    world.group.set_limits(class, &bytes(1_000_000)).unwrap();
    let queue = &mut world.shards[0].queue;
    let [first, second] = [0; 2].map(|_| queue.enqueue(at(1), class, Op::Write, 16 << 20).unwrap());
    assert_eq!(queue.poll_dispatch(at(1)), Some(first));
    queue.complete(at(20 * MILLI), first, Outcome::Done).unwrap();
    (class, second)
}

#[test]
fn a_changed_limit_holds_from_then_on_whatever_was_owed() {
    for limits in [UNLIMITED, bytes(2_000_000), bytes(1_000_000_000)] {
        for throttled in [true, false] {
            let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), 2);
            let (class, second) = a_class_in_debt(&mut world);
            let queue = &mut world.shards[0].queue;
            if throttled {
                assert_eq!(queue.poll_dispatch(at(20 * MILLI)), None);
                assert!(queue.poll_timeout(at(20 * MILLI)).unwrap() > at(16 * SECOND));
            }
            world.group.set_limits(class, &limits).unwrap();
            let waited = waits_for(queue, 20 * MILLI, second);
            // a burst under the new limit may be in debt still
            assert!(waited <= 11, "{limits:?}, throttled {throttled}: {waited} ms");
        }
    }
}

#[test]
fn the_same_limit_again_forgives_nothing() {
    let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), 1);
    let (class, second) = a_class_in_debt(&mut world);
    world.group.set_limits(class, &bytes(1_000_000)).unwrap();
    let waited = waits_for(&mut world.shards[0].queue, 20 * MILLI, second);
    assert!((16_000..17_000).contains(&waited), "{waited} ms");
}

#[test]
fn limits_that_change_all_the_time_let_no_more_through() {
    let mut world = World::new(model(20_000, 1_000_000_000), Policy::pace_window(), 2);
    let class = world.group.add_class(None, 100).unwrap();
    for shard in 0..2 {
        world.clients(16, reads(shard, class, 4096));
    }
    for ms in 1..=2_000 {
        world.group.set_limits(class, &bytes(10_000_000 + ms % 2)).unwrap();
        world.run_until(ms * MILLI);
    }
    let served: u64 = world.shards.iter().map(|shard| shard.queue.counters().completed).sum();
    let rate = served as f64 * 4096.0 / 2.0;
    assert!((9_900_000.0..10_300_000.0).contains(&rate), "{rate} B/s");
}

#[test]
fn a_new_class_owes_nothing_for_the_one_that_had_its_place() {
    for limits in [UNLIMITED, bytes(1_000_000)] {
        let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), 1);
        let (class, second) = a_class_in_debt(&mut world);
        let queue = &mut world.shards[0].queue;
        assert_eq!(queue.poll_dispatch(at(20 * MILLI)), None);
        assert!(queue.cancel(at(20 * MILLI), second));
        world.group.remove(class).unwrap();
        let fresh = world.group.add_class(None, 1000).unwrap();
        assert_eq!(fresh.index(), class.index());
        world.group.set_limits(fresh, &limits).unwrap();
        let ticket = queue.enqueue(at(21 * MILLI), fresh, Op::Read, 4096).unwrap();
        assert!(waits_for(queue, 21 * MILLI, ticket) <= 1, "{limits:?}");
    }
}

/// The milliseconds until a class of `first` shares is served, after its shares are changed to `then`.
/// Another class of 1000 shares has a backlog on all shards.
fn served_after(shards: usize, in_groups: bool, (first, then): (u32, u32)) -> u64 {
    let policy = Policy::pace_window();
    let mut world = World::new(model(5_000, 500_000_000), policy, shards);
    let groups = [first, 1000].map(|shares| world.group.add_class_group(None, shares).unwrap());
    let parent = |index: usize| in_groups.then(|| groups[index]);
    let class = world.group.add_class(parent(0), if in_groups { 7 } else { first }).unwrap();
    let other = world.group.add_class(parent(1), 1000).unwrap();
    world.clients(4, reads(0, class, 16 << 20));
    for shard in 0..shards {
        world.clients(64, reads(shard, other, 4096));
    }
    world.run_until(2 * SECOND);
    let before = world.consumption(class);
    if in_groups {
        world.group.set_shares(groups[0], then).unwrap();
    } else {
        world.group.set_shares(class, then).unwrap();
    }
    let served = |&ms: &u64| {
        world.run_until(2 * SECOND + ms * MILLI);
        world.consumption(class) > before
    };
    (1..30_000).find(served).unwrap_or(u64::MAX)
}

#[test]
fn raised_shares_count_for_what_was_used_already() {
    for shards in [1, 2, 4] {
        for in_groups in [false, true] {
            for shares in [(1, 1000), (10, 1000), (100, 1000)] {
                let ms = served_after(shards, in_groups, shares);
                // 16 MiB take the disk 34 ms: allow for twice that, and a turn
                assert!(ms <= 100, "{shards} shards, groups {in_groups}, {shares:?}: {ms} ms");
            }
        }
    }
}

#[test]
fn shares_hold_where_tags_begin_anew() {
    const COST: u64 = 1 << 52;
    const SHARES: [u32; 3] = [3, 1, 4];
    // enough disk time that the tags wrap one and a half times
    const ROUNDS: u64 = 3 * (1 << 60) / COST;
    for (shards, nested) in [(1, false), (1, true), (2, false), (2, true)] {
        let curve = || CostCurve::flat(DiskTime::from_units(COST));
        let huge = DiskModel::new(curve(), curve());
        let mut config = by_figures(huge, Policy::Unlimited);
        config.shards_max = shards;
        let group = IoGroup::new(config);
        let inner = group.add_class_group(None, 4).unwrap();
        let parents = [nested.then_some(inner), nested.then_some(inner), None];
        let add = |index: usize| group.add_class(parents[index], SHARES[index]).unwrap();
        let classes = [0, 1, 2].map(add);
        let mut queues: Vec<_> = (0..shards).map(|_| group.join().unwrap()).collect();
        let mut owners: Vec<HashMap<Ticket, usize>> = vec![HashMap::new(); shards];
        for round in 0..ROUNDS {
            let mut got = [0_i64; 3];
            for turn in 0..64 {
                let shard = turn % shards;
                let queue = &mut queues[shard];
                for (index, class) in classes.into_iter().enumerate() {
                    while queue.class(class).map_or(0, |counters| counters.queued) < 2 {
                        let ticket = queue.enqueue(at(1), class, Op::Read, 4096).unwrap();
                        owners[shard].insert(ticket, index);
                    }
                }
                let ticket = queue.poll_dispatch(at(1)).unwrap();
                got[owners[shard].remove(&ticket).unwrap()] += 1;
                queue.complete(at(1), ticket, Outcome::Done).unwrap();
            }
            let fair = got.iter().zip([24, 8, 32]).all(|(got, due)| (got - due).abs() <= 2);
            assert!(fair, "{shards} shards, nested {nested}, round {round}: {got:?}");
        }
    }
}

#[test]
fn a_discard_counts_as_an_operation_and_moves_no_bytes() {
    for (limits, most) in
        [(bytes(100_000_000), 1), (Limits { operations_per_second: Some(10), ..UNLIMITED }, 200)]
    {
        let mut world = World::new(model(5_000, 500_000_000), Policy::pace_window(), 1);
        let class = world.group.add_class(None, 1).unwrap();
        world.group.set_limits(class, &limits).unwrap();
        let queue = &mut world.shards[0].queue;
        let discard = queue.enqueue(at(1), class, Op::Discard, 64 << 20).unwrap();
        let read = queue.enqueue(at(1), class, Op::Read, 4096).unwrap();
        assert_eq!(queue.poll_dispatch(at(1)), Some(discard));
        let early = queue.poll_dispatch(at(1)) == Some(read);
        queue.complete(at(MILLI), discard, Outcome::Done).unwrap();
        let waited = if early { 0 } else { waits_for(queue, MILLI, read) };
        assert!((most / 4..=most).contains(&waited), "{limits:?}: {waited} ms");
    }
}

#[test]
fn the_first_request_of_a_class_that_is_split_counts() {
    let mut world = World::new(model(5_000, 500_000_000), Policy::pace_window(), 1);
    let class = world.group.add_class(None, 1).unwrap();
    let queue = &mut world.shards[0].queue;
    for split in 1..=3 {
        assert!(queue.split(class, Op::Read, 1 << 20).count() > 1);
        assert_eq!(queue.class(class).unwrap().splits, split);
    }
}

/// Three shards: the first holds the whole window, and the second waits.
fn a_full_window(policy: Policy) -> (World, IoQueue) {
    let mut world = World::new(model(10_000, 1_000_000_000), policy, 3);
    let class = world.group.add_class(None, 100).unwrap();
    let mut nested = world.shards.remove(0).queue;
    for _ in 0..100 {
        nested.enqueue(at(1), class, Op::Read, 4096).unwrap();
    }
    for ms in 1..20 {
        while nested.poll_dispatch(at(ms * MILLI)).is_some() {}
    }
    // both have applied the changes
    for shard in &mut world.shards {
        assert_eq!(shard.queue.poll_dispatch(at(20 * MILLI)), None);
    }
    let waiting = &mut world.shards[0].queue;
    waiting.enqueue(at(20 * MILLI), class, Op::Read, 4096).unwrap();
    assert_eq!(waiting.poll_dispatch(at(20 * MILLI)), None);
    (world, nested)
}

/// Policies with a window, in disk time or in other units.
const WINDOWS: [Policy; 3] = [
    Policy::pace_window(),
    Policy::Concurrency { requests: 15 },
    Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT },
];

#[test]
fn a_queue_that_leaves_names_who_waits_for_what_it_held() {
    for policy in WINDOWS {
        let (mut world, nested) = a_full_window(policy);
        let waiting = &mut world.shards[0].queue;
        let woken: Vec<_> = nested.leave(at(21 * MILLI)).collect();
        assert_eq!(woken, [waiting.shard()], "{policy:?}");
        assert!(waiting.poll_dispatch(at(21 * MILLI)).is_some(), "{policy:?}");
    }
}

#[test]
fn polling_after_a_queue_was_dropped_wakes_its_waiters() {
    for policy in WINDOWS {
        let (mut world, nested) = a_full_window(policy);
        drop(nested);
        let [waiting, polls] = world.shards.as_mut_slice() else { panic!() };
        assert_eq!(polls.queue.poll_dispatch(at(21 * MILLI)), None);
        assert_eq!(polls.queue.poll_wake(), Some(waiting.queue.shard()), "{policy:?}");
        assert!(waiting.queue.poll_dispatch(at(21 * MILLI)).is_some(), "{policy:?}");
    }
}
