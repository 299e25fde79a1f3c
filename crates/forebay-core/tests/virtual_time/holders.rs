//! Owners who hold a request in the disk while they ask for the next, and
//! disks whose rates change.

use forebay_core::{ClassId, IoQueue, NotNow, Op, Outcome, Policy, Ticket, Time};

use crate::world::{MILLI, SECOND, World, model};

/// 10,000 requests of 4 KiB per second: 100 us each.
fn world(policy: Policy) -> World {
    World::new(model(10_000, 1_000_000_000), policy, 1)
}

fn pass(queue: &mut IoQueue, class: ClassId, now: u64) -> Result<Ticket, NotNow> {
    queue.dispatch_past_window(Time::from_nanos(now), class, Op::Read, 4096)
}

#[test]
fn holders_who_fill_the_window_do_not_wait_for_each_other() {
    let policies = [Policy::pace_window(), Policy::Concurrency { requests: 4 }];
    for policy in policies {
        let mut world = world(policy);
        let class = world.group.add_class(None, 100).unwrap();
        let queue = &mut world.shards[0].queue;
        let mut now = MILLI;
        for _ in 0..32 {
            queue.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap();
        }
        let mut held = Vec::new();
        while now < SECOND / 50 {
            now += MILLI / 10;
            held.extend(std::iter::from_fn(|| queue.poll_dispatch(Time::from_nanos(now))));
        }
        assert!(held.len() < 32, "the window is full");
        let more: Vec<_> =
            held.iter().map(|_| (pass(queue, class, now), now += MILLI / 10).0).collect();
        for ticket in held.into_iter().chain(more.into_iter().map(Result::unwrap)) {
            queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
        }
        assert!(queue.poll_dispatch(Time::from_nanos(now + MILLI)).is_some());
    }
}

#[test]
fn past_the_window_the_pace_still_holds() {
    let mut world = world(Policy::pace_window());
    let class = world.group.add_class(None, 100).unwrap();
    let queue = &mut world.shards[0].queue;
    let (mut now, mut passed) = (SECOND, 0);
    while now < 2 * SECOND {
        match pass(queue, class, now) {
            Ok(_) => passed += 1,
            Err(NotNow::Until(at)) => now = at.as_nanos(),
            Err(refused) => panic!("{refused}"),
        }
    }
    // a second's worth and one burst
    assert!((10_000..=10_009).contains(&passed), "{passed}");
}

#[test]
fn a_class_that_went_past_the_window_does_not_starve_when_others_come() {
    let mut world = world(Policy::pace_window());
    let [holder, late] = [(); 2].map(|()| world.group.add_class(None, 100).unwrap());
    let queue = &mut world.shards[0].queue;
    for step in 0..1_000 {
        let now = SECOND + step * MILLI / 10;
        let ticket = pass(queue, holder, now).unwrap();
        queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
    }
    let mut now = 2 * SECOND;
    for _ in 0..1_000 {
        for class in [holder, late] {
            queue.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap();
        }
    }
    for _ in 0..100 {
        now += MILLI / 10;
        while let Some(ticket) = queue.poll_dispatch(Time::from_nanos(now)) {
            queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
        }
    }
    let left = [holder, late].map(|class| queue.class(class).unwrap().queued);
    assert!(left[0].abs_diff(left[1]) <= 1, "{left:?}");
}

#[test]
fn going_past_the_window_is_paid_for_beside_others() {
    let mut world = world(Policy::pace_window());
    let [holder, other] = [(); 2].map(|()| world.group.add_class(None, 100).unwrap());
    let queue = &mut world.shards[0].queue;
    let mut now = SECOND;
    for _ in 0..2_000 {
        for class in [holder, other] {
            queue.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap();
        }
    }
    for step in 0..2_000 {
        now += MILLI / 10;
        // one request in four goes past the window
        if step % 4 == 0
            && let Ok(ticket) = pass(queue, holder, now)
        {
            queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
        }
        while let Some(ticket) = queue.poll_dispatch(Time::from_nanos(now)) {
            queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
        }
    }
    let used = [holder, other].map(|class| queue.class(class).unwrap().consumption.units());
    let ratio = used[0] as f64 / used[1] as f64;
    assert!((0.99..=1.01).contains(&ratio), "{ratio}");
}

#[test]
fn limits_hold_past_the_window() {
    let mut world = world(Policy::pace_window());
    let class = world.group.add_class(None, 100).unwrap();
    let limits = forebay_core::Limits {
        operations_per_second: Some(100),
        ..forebay_core::Limits::default()
    };
    world.group.set_limits(class, &limits).unwrap();
    let queue = &mut world.shards[0].queue;
    let (mut now, mut passed) = (SECOND, 0);
    while now < 2 * SECOND {
        match pass(queue, class, now) {
            Ok(_) => passed += 1,
            Err(NotNow::Until(at)) => now = at.as_nanos(),
            Err(refused) => panic!("{refused}"),
        }
    }
    assert!((100..=111).contains(&passed), "{passed}");
}

/// How many requests a second of backlog gets through.
fn served_in_a_second(queue: &mut IoQueue, class: ClassId, from: u64) -> u64 {
    let mut count = 0;
    for step in 0..10_000 {
        let now = Time::from_nanos(from + step * MILLI / 10);
        while queue.len() < 32 {
            queue.enqueue(now, class, Op::Read, 4096).unwrap();
        }
        while let Some(ticket) = queue.poll_dispatch(now) {
            queue.complete(now, ticket, Outcome::Done).unwrap();
            count += 1;
        }
    }
    count
}

#[test]
fn new_rates_hold_for_what_is_queued_from_then_on() {
    let mut world = world(Policy::pace_window());
    let class = world.group.add_class(None, 100).unwrap();
    let queue = &mut world.shards[0].queue;
    let before = served_in_a_second(queue, class, SECOND);
    assert!((9_990..=10_010).contains(&before), "{before}");
    queue.set_model(model(2_000, 40_000_000));
    // 128 KiB take 3.3 ms on the new disk
    assert_eq!(world.group.effective_goal().as_nanos_ceil(), 3_276_800);
    let after = served_in_a_second(queue, class, 3 * SECOND);
    // 32 of the old cost were queued, and a burst was saved up
    assert!((2_000..=2_040).contains(&after), "{after}");
}
