//! What the counters of queues say of a disk and of its model.

use forebay_core::{Blocked, Op, Policy, QueueCounters};

use crate::world::{Client, MILLI, SECOND, World, model};

fn merged(world: &World) -> QueueCounters {
    let mut totals = QueueCounters::default();
    world.shards.iter().for_each(|shard| totals.merge(&shard.queue.counters()));
    totals
}

/// The part of the time in which the rate was used up and the disk nearly empty,
/// as its queues saw it, with a backlog on a disk of so many percent of its model's
/// service times.
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
fn a_model_that_is_too_slow_shows_as_a_used_up_rate_beside_an_empty_disk() {
    for shards in [1, 2, 4] {
        for (iops, latency) in [(100_000, 50_000), (10_000, MILLI / 10), (200, MILLI / 10)] {
            // of several shards one is ahead of the others for a part of the time
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
