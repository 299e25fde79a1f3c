//! Discards: few are in the disk at once, and all get their turn.

use forebay_core::{
    CostCurve, DISCARDS_MAX, DiskModel, IoGroup, IoQueue, Op, Outcome, Policy, Ticket, Time,
};

use crate::world::{Client, MILLI, SECOND, World, by_figures, model};

/// A disk with 10,000 operations and 1 GB per second, 200 us per discard and 5 ms per GiB.
fn disk() -> DiskModel {
    model(10_000, 1_000_000_000).with_discard(CostCurve::sum(5_000, 200 << 30).unwrap())
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn group(policy: Policy) -> IoGroup {
    let mut config = by_figures(disk(), policy);
    config.shards_max = 4;
    IoGroup::new(config)
}

fn dispatched(queue: &mut IoQueue, now: u64) -> Vec<Ticket> {
    std::iter::from_fn(|| queue.poll_dispatch(at(now))).collect()
}

#[test]
fn no_more_than_two_are_in_the_disk_and_all_shards_take_turns() {
    for (shards, late, clients) in [(1, 0, 4), (2, 0, 1), (3, 50_000, 1), (8, 200_000, 3)] {
        let mut world = World::new(disk(), Policy::pace_window(), shards);
        world.late = late;
        let class = world.group.add_class(None, 100).unwrap();
        let discard = |shard| Client { shard, class, op: Op::Discard, len: 1 << 20, pause: 0 };
        (0..shards).for_each(|shard| world.clients(clients, discard(shard)));
        let mut most = 0;
        for step in 1..=20_000 {
            world.run_until(step * SECOND / 10_000);
            most = most.max(world.group.discards_in_disk());
        }
        assert_eq!(most, u64::from(DISCARDS_MAX), "{shards} shards");
        let done = |shard: &crate::world::Shard| shard.queue.counters().completed;
        let done: Vec<_> = world.shards.iter().map(done).collect();
        let (least, most) = (done.iter().min().unwrap(), done.iter().max().unwrap());
        assert!(most * 10 <= least * 13, "{shards} shards, {late} ns late: {done:?}");
        // two of them keep a disk busy that answers 50 us late, if the waiting shards poll soon
        let total: u64 = done.iter().sum();
        assert!(total > 6_000 || late > 0, "{shards} shards: {done:?} of 9,700");
    }
}

#[test]
fn waiting_deletes_do_not_delay_reads() {
    let mut world = World::new(disk(), Policy::pace_window(), 2);
    let reads = world.group.add_class(None, 1000).unwrap();
    let deletes = world.group.add_class(None, 100).unwrap();
    world.clients(1, Client { shard: 0, class: reads, op: Op::Read, len: 4096, pause: MILLI });
    for shard in 0..2 {
        let len = 16 << 20;
        world.clients(100, Client { shard, class: deletes, op: Op::Discard, len, pause: 0 });
    }
    world.watched = Some((0, Vec::new()));
    world.run_until(2 * SECOND);
    let (_, mut waits) = world.watched.take().unwrap();
    waits.sort_unstable();
    assert!(waits.len() > 1_000, "{}", waits.len());
    assert!(waits[waits.len() * 99 / 100] < MILLI, "{:?}", waits.last());
    assert!(world.utilisation() > 0.8, "an idle disk serves discards: {}", world.utilisation());
}

#[test]
fn permits_that_were_given_up_or_whose_queue_was_dropped_do_not_count() {
    let group = group(Policy::pace_window());
    let class = group.add_class(None, 100).unwrap();
    let mut queues = [group.join().unwrap(), group.join().unwrap()];
    for queue in &mut queues {
        for _ in 0..6 {
            queue.enqueue(at(1), class, Op::Discard, 4096).unwrap();
        }
    }
    let first = dispatched(&mut queues[0], 1);
    assert_eq!((first.len(), dispatched(&mut queues[1], 1).len()), (2, 0));
    // the disk never completes any
    let mut went = [2, 0];
    for step in 1..100_000 {
        for (queue, went) in queues.iter_mut().zip(&mut went) {
            *went += dispatched(queue, step * MILLI).len();
            while queue.poll_wake().is_some() {}
        }
        assert!(group.discards_in_disk() <= 2);
        if went == [6, 6] {
            break;
        }
    }
    assert_eq!(went, [6, 6]);
    // late completions free no place twice
    let now = at(200 * SECOND);
    for ticket in first {
        assert!(queues[0].complete(now, ticket, Outcome::Done).unwrap().overdue);
    }
    let [mut gone, mut stays] = queues;
    gone.enqueue(now, class, Op::Discard, 4096).unwrap();
    let went =
        (0..100_000).find(|step| !dispatched(&mut gone, 200 * SECOND + step * MILLI).is_empty());
    let (now, in_disk) = (200 * SECOND + went.unwrap() * MILLI, group.discards_in_disk());
    drop(gone);
    assert!(group.discards_in_disk() < in_disk);
    let now = at(now);
    stays.enqueue(now, class, Op::Discard, 4096).unwrap();
    let soon =
        (0..100_000).find(|step| !dispatched(&mut stays, 300 * SECOND + step * MILLI).is_empty());
    assert!(soon.is_some());
    drop(stays);
    assert_eq!(group.discards_in_disk(), 0);
}

#[test]
fn a_holder_does_not_wait_for_what_it_holds() {
    let group = group(Policy::pace_window());
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    for _ in 0..3 {
        queue.enqueue(at(1), class, Op::Discard, 4096).unwrap();
    }
    assert_eq!(dispatched(&mut queue, 1).len(), 2);
    for op in [Op::Read, Op::Discard] {
        let held = queue.enqueue_nested(at(2), class, op, 4096).unwrap();
        let went: Vec<_> = (2..100).flat_map(|ms| dispatched(&mut queue, ms * MILLI)).collect();
        assert!(went.contains(&held), "{op:?}");
    }
}

#[test]
fn one_that_was_set_aside_comes_back() {
    let group = group(Policy::pace_window());
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    for _ in 0..3 {
        queue.enqueue(at(1), class, Op::Discard, 4096).unwrap();
    }
    let first = dispatched(&mut queue, 1);
    queue.park(at(2), first[0]).unwrap();
    assert_eq!(group.discards_in_disk(), 1);
    assert_eq!(dispatched(&mut queue, MILLI).len(), 1);
    queue.complete(at(2 * MILLI), first[1], Outcome::Done).unwrap();
    let is_back = queue.resume(at(2 * MILLI), first[0]).unwrap();
    assert!(is_back || dispatched(&mut queue, 3 * MILLI).contains(&first[0]));
    assert_eq!(group.discards_in_disk(), 2);
}

#[test]
fn without_a_scheduler_all_go_at_once() {
    let group = group(Policy::Unlimited);
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    for _ in 0..100 {
        queue.enqueue(at(1), class, Op::Discard, 128 << 20).unwrap();
    }
    assert_eq!(dispatched(&mut queue, 1).len(), 100);
}

#[test]
fn one_of_many_commands_is_charged_for_each() {
    let group = group(Policy::pace_window());
    let class = group.add_class(None, 100).unwrap();
    let mut queue = group.join().unwrap();
    let ticket = queue.enqueue(at(1), class, Op::Discard.commands(32), 32 << 20).unwrap();
    let cost = queue.cost_of(ticket).unwrap();
    assert_eq!(cost, disk().discard_cost(32 << 20, 32));
    assert!(cost.as_nanos_ceil() > 6 * MILLI);
}
