//! A stream of one request size gets the rate that was measured with it.

use forebay_core::{Op, Policy, Time};

use crate::world::{Client, MILLI, SECOND, World, model};

/// The completed requests per second of two classes with shares 10:1, all of one size.
fn rate(iops: u64, bandwidth: u64, op: Op, len: u64) -> f64 {
    let mut world = World::new(model(iops, bandwidth), Policy::pace_window(), 1);
    for shares in [1000, 100] {
        let class = world.group.add_class(None, shares).unwrap();
        world.clients(128, Client { shard: 0, class, op, len, pause: 0 });
    }
    world.run_until(10 * SECOND);
    world.shards[0].queue.counters().completed as f64 / 10.0
}

#[test]
fn full_iops_at_4_kib_and_full_bandwidth_at_128_kib() {
    let disks = [
        (5_000, 500_000_000),
        (16_000, 1_000_000_000),
        (3_000, 125_000_000),
        (134_608, 605_000_000),
    ];
    for (iops, bandwidth) in disks {
        for op in [Op::Read, Op::Write] {
            for len in [4096, 131_072] {
                let best = (iops as f64).min(bandwidth as f64 / len as f64);
                let reached = rate(iops, bandwidth, op, len) / best;
                println!("{iops} IOPS, {bandwidth} B/s: {op:?} of {len}: {reached:.4}");
                assert!((0.97..1.005).contains(&reached), "{iops} {op:?} {len}: {reached}");
            }
        }
    }
}

/// The longest time of a request in a disk that is slower than its model, less the latency of the disk,
/// after the run has settled.
fn longest_wait_in_disk(slowness: u64) -> (u64, f64) {
    let mut world = World::new(model(50_000, 1_000_000_000), Policy::pace_window(), 4);
    world.disk.slowness = slowness;
    let class = world.group.add_class(None, 100).unwrap();
    for shard in 0..4 {
        let client = Client { shard, class, op: Op::Read, len: 4096, pause: 0 };
        world.clients(256, client);
    }
    world.run_until(3 * SECOND);
    let longest = world.shards.iter().filter_map(|shard| shard.queue.class(class));
    let longest = longest.map(|counters| counters.disk_nanos_max).max().unwrap();
    (longest - world.disk.latency, world.utilisation() * slowness as f64 / 100.0)
}

#[test]
fn the_window_bounds_the_queue_inside_a_disk_slower_than_its_model() {
    let goal = 750_000;
    for (slowness, bound) in [(100, 3 * goal), (105, 3 * goal), (120, 3 * goal)] {
        let (longest, used) = longest_wait_in_disk(slowness);
        println!("{slowness} %: {longest} ns in the disk, {used:.4} of it used");
        assert!(longest <= bound, "{slowness} %: {longest} ns");
        assert!(used > 0.995, "{slowness} %: {used}");
    }
}

#[test]
fn a_lone_request_goes_at_once() {
    let mut world = World::new(model(100, 10_000_000), Policy::pace_window(), 2);
    let class = world.group.add_class(None, 1).unwrap();
    let now = Time::from_nanos(5 * MILLI);
    let queue = &mut world.shards[1].queue;
    let ticket = queue.enqueue(now, class, Op::Write, 8 << 20).unwrap();
    assert_eq!(queue.poll_dispatch(now), Some(ticket));
}
