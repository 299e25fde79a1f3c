//! Requests that never complete, shards that vanish, and clocks that jump.

use forebay_core::{ClassId, IoQueue, Op, Outcome, Policy, Ticket, Time};

use crate::world::{MILLI, SECOND, World, model};

fn queues(count: usize) -> (World, ClassId) {
    let world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), count);
    let class = world.group.add_class(None, 100).unwrap();
    (world, class)
}

fn fill(queue: &mut IoQueue, class: ClassId, count: usize) {
    for _ in 0..count {
        queue.enqueue(Time::from_nanos(1), class, Op::Read, 4096).unwrap();
    }
}

/// Polls every millisecond. Returns the dispatched requests.
fn dispatch(queue: &mut IoQueue, from_ms: u64, to_ms: u64) -> Vec<Ticket> {
    let mut dispatched = Vec::new();
    for ms in from_ms..to_ms {
        let now = Time::from_nanos(ms * MILLI);
        dispatched.extend(std::iter::from_fn(|| queue.poll_dispatch(now)));
    }
    dispatched
}

#[test]
fn a_disk_that_hangs_gets_one_window_and_then_a_probe_every_10_ms() {
    let (mut world, class) = queues(1);
    let queue = &mut world.shards[0].queue;
    fill(queue, class, 1000);
    // 100 us each: a window of 1.5 ms holds 15
    assert_eq!(dispatch(queue, 1, 100).len(), 15);
    let probes = dispatch(queue, 100, 1_101).len();
    assert!((98..=101).contains(&probes), "{probes} probes in a second");
    assert_eq!(queue.counters().overdue, probes as u64);
}

#[test]
fn the_queue_asks_to_be_polled_when_something_is_overdue() {
    let (mut world, class) = queues(1);
    let queue = &mut world.shards[0].queue;
    fill(queue, class, 1);
    let now = Time::from_nanos(MILLI);
    assert!(queue.poll_dispatch(now).is_some());
    assert!(queue.poll_dispatch(now).is_none());
    assert_eq!(queue.poll_timeout(now), Some(Time::from_nanos(101 * MILLI)));
}

#[test]
fn requests_that_hang_make_way_for_others_that_do_not() {
    let (mut world, class) = queues(1);
    let queue = &mut world.shards[0].queue;
    fill(queue, class, 15);
    let hung = dispatch(queue, 1, 50);
    assert_eq!(hung.len(), 15);
    fill(queue, class, 10_000);
    let mut completed = 0;
    for ms in 50..400 {
        for ticket in dispatch(queue, ms, ms + 1) {
            let now = Time::from_nanos(ms * MILLI + 1);
            queue.complete(now, ticket, Outcome::Done).unwrap();
            completed += 1;
        }
    }
    // from 110 ms on the disk serves 10 requests per millisecond again; a
    // poll per millisecond can use three quarters of them
    assert!(completed > 270 * 7, "{completed}");
    for ticket in hung {
        assert!(queue.complete(Time::from_nanos(SECOND), ticket, Outcome::Failed).unwrap().overdue);
    }
    assert_eq!(queue.class(class).unwrap().errors, 15);
}

/// The first `bad` slots of the table hang, all other requests take a millisecond.
fn serve_all_but(bad: usize, queue: &mut IoQueue, from_ms: u64, to_ms: u64) {
    let mut sent = Vec::new();
    for ms in from_ms..to_ms {
        for ticket in std::mem::take(&mut sent) {
            queue.complete(Time::from_nanos(ms * MILLI), ticket, Outcome::Done).unwrap();
        }
        sent = dispatch(queue, ms, ms + 1);
        sent.retain(|ticket| ticket.index() >= bad);
    }
}

#[test]
fn a_class_that_fills_each_window_with_what_hangs_leaves_others_their_share() {
    for (bad, shares, others) in [(150, 100, 100), (1000, 100, 100), (1000, 1000, 100)] {
        let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), 1);
        let [class, other] = [shares, others].map(|s| world.group.add_class(None, s).unwrap());
        let queue = &mut world.shards[0].queue;
        fill(queue, class, bad);
        fill(queue, other, 20_000);
        let served = |queue: &IoQueue| queue.class(other).unwrap().operations[0];
        serve_all_but(bad, queue, 1, 200);
        let before = served(queue);
        serve_all_but(bad, queue, 200, 1_200);
        // a poll per millisecond uses 8 of the 10 requests that the disk could serve
        let share = 8_000 * u64::from(others) / u64::from(shares + others);
        let case = format!("{bad} bad, {shares} shares alongside {others}");
        let got = served(queue) - before;
        assert!(got * 10 >= share * 9, "{case}: {got} of {share}");
    }
}

#[test]
fn a_queue_that_is_dropped_gives_its_part_of_the_window_back() {
    let (mut world, class) = queues(2);
    fill(&mut world.shards[0].queue, class, 100);
    assert_eq!(dispatch(&mut world.shards[0].queue, 1, 20).len(), 15);
    world.shards.remove(0);
    assert_eq!(world.group.in_flight().units(), 0);
    world.group.remove(class).unwrap();
    assert!(world.group.join().is_ok());
}

#[test]
fn a_full_window_wakes_a_shard_that_has_nothing_in_the_disk() {
    let (mut world, class) = queues(2);
    fill(&mut world.shards[0].queue, class, 15);
    let mut sent = dispatch(&mut world.shards[0].queue, 1, 20);
    assert_eq!(sent.len(), 15);
    // the class is owed none of the disk time of the others
    let light = world.group.add_class(None, 1).unwrap();
    fill(&mut world.shards[1].queue, light, 1);
    assert_eq!(dispatch(&mut world.shards[1].queue, 20, 21).len(), 0);
    let now = Time::from_nanos(21 * MILLI);
    let first = &mut world.shards[0].queue;
    first.complete(now, sent.remove(0), Outcome::Done).unwrap();
    assert_eq!(first.poll_wake().map(|shard| shard.index()), Some(1));
    assert_eq!(first.poll_wake(), None);
    assert!(world.shards[1].queue.poll_dispatch(now).is_some());
}

/// Two of its own requests hang, so no completion will ever let it poll again.
#[test]
fn a_shard_whose_requests_hang_is_woken_for_the_room_that_others_free() {
    let (mut world, class) = queues(2);
    fill(&mut world.shards[0].queue, class, 2);
    assert_eq!(dispatch(&mut world.shards[0].queue, 1, 2).len(), 2);
    fill(&mut world.shards[1].queue, class, 100);
    let mut sent = dispatch(&mut world.shards[1].queue, 2, 5);
    assert_eq!(sent.len(), 13);
    // the class is owed none of the disk time of the others
    let light = world.group.add_class(None, 1).unwrap();
    fill(&mut world.shards[0].queue, light, 1);
    let asked = Time::from_nanos(5 * MILLI);
    let [first, second] = world.shards.as_mut_slice() else { panic!() };
    assert!(first.queue.poll_dispatch(asked).is_none());
    let now = Time::from_nanos(6 * MILLI);
    second.queue.complete(now, sent.remove(0), Outcome::Done).unwrap();
    assert_eq!(second.queue.poll_wake().map(|shard| shard.index()), Some(0));
    assert!(first.queue.poll_dispatch(now).is_some());
}

#[test]
fn a_shard_looks_again_when_its_requests_should_have_come_back() {
    let (mut world, class) = queues(2);
    fill(&mut world.shards[0].queue, class, 100);
    let queue = &mut world.shards[0].queue;
    assert_eq!(dispatch(queue, 1, 3).len(), 15);
    // two windows of 1.5 ms after the last dispatch
    let silent = Time::from_nanos(5 * MILLI);
    assert_eq!(queue.poll_timeout(Time::from_nanos(2 * MILLI)), Some(silent));
    assert!(queue.poll_dispatch(silent).is_none());
    assert_eq!(queue.poll_timeout(silent), Some(Time::from_nanos(101 * MILLI)));
}

#[test]
fn tickets_are_void_after_completion_and_before_dispatch() {
    let (mut world, class) = queues(1);
    let queue = &mut world.shards[0].queue;
    let now = Time::from_nanos(1);
    let ticket = queue.enqueue(now, class, Op::Read, 4096).unwrap();
    assert!(queue.complete(now, ticket, Outcome::Done).is_err());
    assert_eq!(queue.poll_dispatch(now), Some(ticket));
    assert!(!queue.cancel(now, ticket));
    assert!(queue.complete(now, ticket, Outcome::Done).is_ok());
    assert!(queue.complete(now, ticket, Outcome::Done).is_err());
}

#[test]
fn a_clock_that_jumps_back_or_far_ahead_loses_nothing() {
    let (mut world, class) = queues(1);
    let queue = &mut world.shards[0].queue;
    fill(queue, class, 100);
    let mut done = 0;
    let mut serve = |now: u64| {
        while let Some(ticket) = queue.poll_dispatch(Time::from_nanos(now)) {
            queue.complete(Time::from_nanos(now / 3), ticket, Outcome::Done).unwrap();
            done += 1;
        }
    };
    let far = SECOND << 24;
    for now in [SECOND, 3, far, 5 * SECOND, 0, far + 1] {
        serve(now);
    }
    // once the clock is past its old value, it counts again
    for ms in 0..100 {
        serve(far + ms * MILLI);
    }
    assert_eq!(done, 100);
}
