//! What the counters of queues show about a disk and its model.

use forebay_core::{Blocked, Limits, Op, Outcome, Policy, QueueCounters, Time};

use crate::world::{Client, MILLI, SECOND, World, model};

fn merged(world: &World) -> QueueCounters {
    let mut totals = QueueCounters::default();
    world.shards.iter().for_each(|shard| totals.merge(&shard.queue.counters()));
    totals
}

/// The fraction of the time in which the pace was used up and the disk nearly empty, by the counters of
/// the queues. They have a backlog on a disk with `slowness` percent of the service times of its model.
fn nearly_empty(world: &mut World, slowness: u64, latency: u64, len: u64) -> f64 {
    let class = world.group.add_class(None, 100).unwrap();
    (world.disk.slowness, world.disk.latency) = (slowness, latency);
    for shard in 0..world.shards.len() {
        world.clients(400, Client { shard, class, op: Op::Read, len, pause: 0 });
    }
    world.run_until(4 * SECOND);
    let nanos = merged(world).blocked_nanos[Blocked::PaceDiskIdle.index()];
    nanos as f64 / (4 * SECOND * world.shards.len() as u64) as f64
}

#[test]
fn a_model_that_is_too_slow_uses_up_the_rate_while_the_disk_is_empty() {
    for shards in [1, 2, 4] {
        for (iops, latency) in [(100_000, 50_000), (10_000, MILLI / 10), (200, MILLI / 10)] {
            // of several shards, one leads the others for part of the time
            let least = if shards == 1 { 0.3 } else { 0.15 };
            for (slowness, wanted) in [(10, least..1.01), (120, 0.0..0.02), (200, 0.0..0.02)] {
                for len in [4096, 131_072] {
                    let policy = Policy::pace_window();
                    let mut world = World::new(model(iops, 500_000_000), policy, shards);
                    let part = nearly_empty(&mut world, slowness, latency, len);
                    let case = format!("{shards} shards, {iops} iops, {len} bytes, {slowness} %");
                    println!("{case}: {part:.3}");
                    assert!(wanted.contains(&part), "{case}: {part}");
                }
            }
        }
    }
}

#[test]
fn queues_together_do_not_claim_more_in_the_disk_than_may_be_there() {
    for shards in [1, 2, 4, 8] {
        let policy = Policy::Concurrency { requests: 8 };
        let mut world = World::new(model(20_000, 500_000_000), policy, shards);
        nearly_empty(&mut world, 100, MILLI, 4096);
        let most = merged(&world).in_disk_max;
        assert!((1..=8).contains(&most), "{shards} shards: {most}");
    }
}

#[test]
fn only_misaligned_requests_are_counted_as_misaligned() {
    let world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), 1);
    let class = world.group.add_class(None, 100).unwrap();
    let mut queue = world.shards.into_iter().next().unwrap().queue;
    let now = Time::from_nanos(1);
    for (op, offset, len) in [
        (Op::Read, 0, 4096),
        (Op::Read, 512, 4096),
        (Op::Write, 8192, 1024),
        (Op::Write, 1024, 1024),
        (Op::Write, 1 << 40, 1 << 20),
    ] {
        queue.enqueue(now, class, op.at(offset), len).unwrap();
    }
    // a request without a position does not count as misaligned
    queue.enqueue(now, class, Op::Write, 1000).unwrap();
    assert_eq!(queue.class(class).unwrap().misaligned, [1, 2, 0, 0]);
    assert_eq!(queue.class(class).unwrap().bytes_in_disk, 0);
    let first = queue.poll_dispatch(now).unwrap();
    assert_eq!(queue.class(class).unwrap().bytes_in_disk, 4096);
    queue.complete(now, first, Outcome::Done).unwrap();
    assert_eq!(queue.class(class).unwrap().bytes_in_disk, 0);
}

#[test]
fn the_time_that_a_limit_keeps_a_class_back_is_counted_for_it_alone() {
    for shards in [1, 2] {
        let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), shards);
        let classes = [100, 100].map(|shares| world.group.add_class(None, shares).unwrap());
        let limit = Limits { bytes_per_second: Some(1_000_000), ..Limits::default() };
        world.group.set_limits(classes[0], &limit).unwrap();
        for class in classes {
            for shard in 0..shards {
                world.clients(4, Client { shard, class, op: Op::Read, len: 4096, pause: 0 });
            }
        }
        world.run_until(4 * SECOND);
        let [limited, other] = classes.map(|class| {
            let counted = world.shards.iter().map(|shard| shard.queue.class(class).unwrap());
            counted.map(|class| class.limited_nanos).sum::<u64>() / shards as u64
        });
        assert!((3 * SECOND..=5 * SECOND).contains(&limited), "{shards} shards: {limited}");
        assert_eq!(other, 0, "{shards} shards");
    }
}

#[test]
fn a_shard_that_stalls_is_seen_meanwhile_where_others_expect_it() {
    for (shards, seen) in [(1, false), (2, true), (4, true)] {
        let mut world = World::new(model(10_000, 500_000_000), Policy::pace_window(), shards);
        let class = world.group.add_class(None, 100).unwrap();
        for shard in 0..shards {
            world.clients(40, Client { shard, class, op: Op::Read, len: 4096, pause: 0 });
        }
        let overdue = |world: &World| world.group.turn_overdue_nanos(Time::from_nanos(world.now));
        world.run_until(2 * SECOND);
        assert!(overdue(&world) < SECOND / 10, "{shards} shards: {}", overdue(&world));
        assert_eq!(world.group.queues(), shards as u64);
        world.stall = Some((1, 0, 100 * SECOND));
        world.run_until(6 * SECOND);
        assert_eq!(overdue(&world) > SECOND, seen, "{shards} shards: {}", overdue(&world));
    }
}
