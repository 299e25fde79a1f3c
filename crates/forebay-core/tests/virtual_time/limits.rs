//! Upper limits of classes and of groups of classes, alongside their shares.

use forebay_core::{Blocked, IoGroup, Limits, Op, Outcome, Policy, Time};

use crate::world::{Client, SECOND, World, by_figures, model, share_error};

const MIB: u64 = 1 << 20;

fn bytes(rate: u64) -> Limits {
    Limits { bytes_per_second: Some(rate), operations_per_second: None }
}

/// Bytes per second of each class over `seconds`.
fn bandwidths(world: &World, classes: &[forebay_core::ClassId], seconds: u64) -> Vec<f64> {
    let of = |class| {
        let counters = world.shards.iter().filter_map(|shard| shard.queue.class(class));
        counters.map(|counters| counters.bytes[Op::Read.index()]).sum::<u64>()
    };
    classes.iter().map(|&class| of(class) as f64 / seconds as f64).collect()
}

fn reads(shard: usize, class: forebay_core::ClassId) -> Client {
    Client { shard, class, op: Op::Read, len: 131_072, pause: 0 }
}

#[test]
fn a_class_stays_at_its_limit_and_the_rest_goes_to_others() {
    let mut world = World::new(model(20_000, 1_000_000_000), Policy::pace_window(), 2);
    let classes = [100, 100].map(|shares| world.group.add_class(None, shares).unwrap());
    world.group.set_limits(classes[0], &bytes(100 * MIB)).unwrap();
    for shard in 0..2 {
        world.clients(16, reads(shard, classes[0]));
        world.clients(16, reads(shard, classes[1]));
    }
    world.run_until(4 * SECOND);
    let rates = bandwidths(&world, &classes, 4);
    let limit = (100 * MIB) as f64;
    assert!((rates[0] / limit - 1.0).abs() < 0.01, "{rates:?}");
    assert!((rates[1] / (1e9 - limit) - 1.0).abs() < 0.01, "{rates:?}");
}

#[test]
fn shares_hold_below_the_limit_of_a_group() {
    let mut world = World::new(model(20_000, 1_000_000_000), Policy::pace_window(), 1);
    let group = world.group.add_class_group(None, 100).unwrap();
    world.group.set_limits(group, &bytes(100 * MIB)).unwrap();
    let classes = [400, 100].map(|shares| world.group.add_class(Some(group), shares).unwrap());
    for class in classes {
        world.clients(4, reads(0, class));
    }
    world.run_until(4 * SECOND);
    let rates = bandwidths(&world, &classes, 4);
    assert!(share_error(&rates, &[400, 100]) < 0.01, "{rates:?}");
    let sum: f64 = rates.iter().sum();
    assert!((sum / (100 * MIB) as f64 - 1.0).abs() < 0.01, "{rates:?}");
}

#[test]
fn operations_are_limited_too_and_the_queue_says_why_it_waits() {
    let mut world = World::new(model(20_000, 1_000_000_000), Policy::pace_window(), 1);
    let class = world.group.add_class(None, 100).unwrap();
    let limits = Limits { bytes_per_second: None, operations_per_second: Some(100) };
    world.group.set_limits(class, &limits).unwrap();
    world.clients(4, reads(0, class));
    world.run_until(10 * SECOND);
    let queue = &world.shards[0].queue;
    assert!((1000..=1002).contains(&queue.counters().completed), "{:?}", queue.counters());
    assert_eq!(queue.blocked(), Some(Blocked::ClassLimit));
    let blocked = queue.counters().blocked_nanos[Blocked::ClassLimit.index()];
    assert!(blocked > 9 * SECOND, "{blocked}");
}

#[test]
fn a_class_at_its_limit_cannot_be_removed_while_it_has_work() {
    let world = World::new(model(20_000, 1_000_000_000), Policy::pace_window(), 1);
    let class = world.group.add_class(None, 100).unwrap();
    let limits = Limits { bytes_per_second: None, operations_per_second: Some(1) };
    world.group.set_limits(class, &limits).unwrap();
    let mut queue = world.shards.into_iter().next().unwrap().queue;
    let now = Time::from_nanos(1);
    let tickets = [0; 3].map(|_| queue.enqueue(now, class, Op::Read, 4096).unwrap());
    assert_eq!(queue.poll_dispatch(now), Some(tickets[0]));
    assert_eq!(queue.poll_dispatch(now), None);
    assert!(world.group.remove(class).is_err());
    assert!(queue.cancel(now, tickets[1]) && queue.cancel(now, tickets[2]));
    world.group.remove(class).unwrap();
    assert!(queue.enqueue(now, class, Op::Read, 4096).is_err());
}

#[test]
fn a_queue_whose_limited_requests_were_all_cancelled_is_empty() {
    let mut config = by_figures(model(20_000, 1_000_000_000), Policy::pace_window());
    config.shards_max = 1;
    let group = IoGroup::new(config);
    let class = group.add_class(None, 100).unwrap();
    group.set_limits(class, &bytes(MIB)).unwrap();
    let (mut queue, now) = (group.join().unwrap(), Time::from_nanos(SECOND));
    let tickets = [(); 3].map(|()| queue.enqueue(now, class, Op::Read, 131_072).unwrap());
    assert_eq!(queue.poll_dispatch(now), Some(tickets[0]));
    assert_eq!(queue.poll_dispatch(now), None);
    assert_eq!(queue.blocked(), Some(Blocked::ClassLimit));
    assert!(tickets[1..].iter().all(|&ticket| queue.cancel(now, ticket)));
    assert_eq!(queue.poll_dispatch(now), None);
    queue.complete(now, tickets[0], Outcome::Done).unwrap();
    assert_eq!(queue.poll_dispatch(now), None);
    assert_eq!((queue.blocked(), queue.poll_timeout(now)), (Some(Blocked::Empty), None));
}
