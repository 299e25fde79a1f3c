//! Classes get the disk time of their shares, with one shard and many, on a virtual clock.

use std::time::Duration;

use crate::world::{Client, Disk, MILLI, SECOND, World, consumption, model, share_error};
use forebay_core::{DiskTime, Op, Policy};

fn reads(shard: usize, class: forebay_core::ClassId, len: u64) -> Client {
    Client { shard, class, op: Op::Read, len, pause: 0 }
}

#[test]
fn four_classes_of_128_kib_reads_for_60_seconds() {
    let layouts = [[10, 20, 40, 80], [100, 10, 10, 10], [10; 4], [100; 4]];
    for shares in layouts {
        let mut world = World::new(model(5_000, 500_000_000), Policy::pace_window(), 1);
        let classes = shares.map(|shares| world.group.add_class(None, shares).unwrap());
        for class in classes {
            world.clients(32, reads(0, class, 131_072));
        }
        world.run_until(60 * SECOND);
        let used = classes.map(|class| world.consumption(class));
        let error = share_error(&used, &shares);
        assert!(error < 0.005, "{shares:?}: {error}");
        assert!(world.utilisation() > 0.999, "{}", world.utilisation());
    }
}

#[test]
fn classes_on_different_shards_share_as_if_on_one() {
    for (heavy, light) in [(5, 1), (80, 10), (100, 99)] {
        let mut world = World::new(model(5_000, 500_000_000), Policy::pace_window(), 2);
        let classes = [heavy, light].map(|shares| world.group.add_class(None, shares).unwrap());
        world.clients(32, reads(0, classes[0], 4096));
        world.clients(32, reads(1, classes[1], 4096));
        world.run_until(10 * SECOND);
        let used = classes.map(|class| world.consumption(class));
        let error = share_error(&used, &[heavy, light]);
        assert!(error < 0.01, "{heavy}:{light}: {error}");
        assert!(world.utilisation() > 0.998, "{}", world.utilisation());
    }
}

/// A heavy shard sleeps until several requests can be dispatched together. On such disks that is longer
/// than others wait for a late shard: they must not take it for one.
#[test]
fn prompt_shards_have_their_shares_on_disks_whose_requests_take_longer_than_a_tick() {
    for iops in [100, 200, 500, 1000, 5000] {
        for (heavy, light) in [(5, 1), (10, 1), (500, 100), (3, 2), (1, 1)] {
            for depth in [32, 128] {
                let mut world = World::new(model(iops, 150_000_000), Policy::pace_window(), 2);
                let classes = [heavy, light].map(|it| world.group.add_class(None, it).unwrap());
                world.clients(depth, reads(0, classes[0], 4096));
                world.clients(depth, reads(1, classes[1], 4096));
                world.run_until(20 * SECOND);
                let used = classes.map(|class| world.consumption(class));
                let error = share_error(&used, &[heavy, light]);
                let text = format!("{iops} IOPS, {heavy}:{light}, {depth} at a time: {error}");
                assert!(error < 0.01, "{text}");
                assert!(world.utilisation() > 0.98, "{text}, {}", world.utilisation());
            }
        }
    }
}

/// A shard that completes a request of several goals finds the whole budget unused, before waiting
/// shards are awake. It would otherwise take all of it again each time.
#[test]
fn requests_larger_than_the_window_do_not_keep_other_shards_out() {
    for kib in [128, 256, 384, 512, 2048] {
        for slow_percent in [100, 103, 110, 150] {
            for shards in [2, 4, 8] {
                for small in [4096, kib << 10] {
                    let model = model(3_000, 131_072_000);
                    let mut world = World::new(model, Policy::pace_window(), shards);
                    world.disk.slowness = slow_percent;
                    let [reads_class, bulk] =
                        [1000, 100].map(|it| world.group.add_class(None, it).unwrap());
                    for shard in 0..shards - 1 {
                        world.clients(64, reads(shard, reads_class, small));
                    }
                    world.clients(8, reads(shards - 1, bulk, kib << 10));
                    world.run_until(20 * SECOND);
                    let used = [reads_class, bulk].map(|it| world.consumption(it));
                    let error = share_error(&used, &[10, 1]);
                    let text = format!("{kib} KiB, {small}, {slow_percent} %, {shards}: {error}");
                    assert!(error < 0.03, "{text}");
                    let used = world.utilisation() * slow_percent as f64 / 100.0;
                    assert!(used > 0.97, "{text}, {used}");
                }
            }
        }
    }
}

#[test]
fn a_heavy_class_on_one_shard_of_eight_gets_its_share() {
    let mut world = World::new(model(100_000, 1_000_000_000), Policy::pace_window(), 8);
    let classes = [10, 1].map(|shares| world.group.add_class(None, shares).unwrap());
    // deep enough to keep its ten elevenths of the disk busy for a whole window
    world.clients(256, reads(3, classes[0], 4096));
    for shard in (0..8).filter(|&shard| shard != 3) {
        world.clients(64, reads(shard, classes[1], 4096));
    }
    world.run_until(3 * SECOND);
    let used = classes.map(|class| world.consumption(class));
    assert!(share_error(&used, &[10, 1]) < 0.01, "{used:?}");
    assert!(world.utilisation() > 0.999, "{}", world.utilisation());
}

#[test]
fn shards_of_one_class_get_equal_disk_time_whatever_their_request_size() {
    let mut world = World::new(model(134_608, 605_000_000), Policy::pace_window(), 4);
    let class = world.group.add_class(None, 100).unwrap();
    world.clients(64, reads(0, class, 1024));
    for shard in 1..4 {
        world.clients(64, reads(shard, class, 131_072));
    }
    world.run_until(3 * SECOND);
    let used: Vec<f64> = world.shards.iter().map(|shard| consumption(shard, class)).collect();
    assert!(share_error(&used, &[1; 4]) < 0.01, "{used:?}");
    assert!(world.utilisation() > 0.998, "{}", world.utilisation());
}

#[test]
fn a_heavy_class_at_low_depth_leaves_nothing_unused() {
    for depth in [1, 2, 4] {
        let mut world = World::new(model(20_000, 500_000_000), Policy::pace_window(), 2);
        let classes = [500, 100].map(|shares| world.group.add_class(None, shares).unwrap());
        world.clients(depth, reads(0, classes[0], 4096));
        world.clients(64, reads(1, classes[1], 4096));
        world.run_until(3 * SECOND);
        assert!(world.utilisation() > 0.99, "depth {depth}: {}", world.utilisation());
    }
}

#[test]
fn one_class_at_depths_1_and_64_leaves_nothing_unused() {
    let mut world = World::new(model(20_000, 500_000_000), Policy::pace_window(), 2);
    let class = world.group.add_class(None, 100).unwrap();
    world.clients(1, reads(0, class, 4096));
    world.clients(64, reads(1, class, 4096));
    world.run_until(3 * SECOND);
    assert!(world.utilisation() > 0.99, "{}", world.utilisation());
}

#[test]
fn a_slow_disk_still_serves_shards_by_shares() {
    let mut world = World::new(model(100, 20_000_000), Policy::pace_window(), 2);
    world.disk.latency = 8 * MILLI;
    let classes = [5, 1].map(|shares| world.group.add_class(None, shares).unwrap());
    world.clients(32, reads(0, classes[0], 4096));
    world.clients(32, reads(1, classes[1], 4096));
    world.run_until(60 * SECOND);
    let used = classes.map(|class| world.consumption(class));
    assert!(share_error(&used, &[5, 1]) < 0.01, "{used:?}");
    assert!(world.utilisation() > 0.99, "{}", world.utilisation());
}

#[test]
fn shares_hold_when_the_disk_is_slower_than_its_model() {
    let mut world = World::new(model(20_000, 500_000_000), Policy::pace_window(), 2);
    world.disk.slowness = 120;
    let classes = [5, 1].map(|shares| world.group.add_class(None, shares).unwrap());
    world.clients(64, reads(0, classes[0], 4096));
    world.clients(64, reads(1, classes[1], 4096));
    world.run_until(3 * SECOND);
    let used = classes.map(|class| world.consumption(class));
    assert!(share_error(&used, &[5, 1]) < 0.03, "{used:?}");
    assert!(world.utilisation() > 0.99 / 1.2, "{}", world.utilisation());
}

/// Reads of 4 KiB and writes of `len` bytes, backlogged on each of `shards`, on a disk half as fast as
/// its model, so that the window is always full. Returns the disk time of each shard in the second
/// second.
fn behind_a_full_window(shards: usize, len: u64) -> (World, Vec<f64>) {
    let policy = Policy::PaceWindow {
        latency_goal: Duration::from_millis(1),
        base_latency: Some(Duration::from_micros(100)),
    };
    let mut world = World::new(model(3_000, 131_072_000), policy, shards);
    world.disk.slowness = 200;
    let [small, large] = [500; 2].map(|shares| world.group.add_class(None, shares).unwrap());
    for shard in 0..shards {
        world.clients(64, reads(shard, small, 4096));
        world.clients(16, Client { op: Op::Write, ..reads(shard, large, len) });
    }
    let had = |world: &World| -> Vec<_> {
        let all = |shard| consumption(shard, small) + consumption(shard, large);
        world.shards.iter().map(all).collect()
    };
    world.run_until(SECOND);
    let before = had(&world);
    world.run_until(2 * SECOND);
    let used = had(&world).iter().zip(before).map(|(after, before)| after - before).collect();
    (world, used)
}

#[test]
fn shards_share_alike_where_requests_leave_one_unit_of_the_window_free() {
    let (world, _) = behind_a_full_window(2, 131_072);
    let cost = |op, len| world.group.model().cost(op, len).units();
    let together = 3 * cost(Op::Read, 4096) + cost(Op::Write, 131_072);
    assert_eq!(world.group.window(), DiskTime::from_units(together + 1));
    for shards in [2, 4, 16] {
        for len in [65_536, 98_304, 131_072, 196_608] {
            let (world, used) = behind_a_full_window(shards, len);
            let large = world.group.model().cost(Op::Write, len).units() as f64;
            let most = used.iter().fold(0.0, |most: f64, used| most.max(*used));
            let behind = used.iter().map(|used| (most - used) / large).fold(0.0, f64::max);
            assert!(behind < 4.0, "{shards} shards, {len} bytes: {behind} writes, {used:?}");
            let half = world.utilisation();
            assert!((0.49..0.52).contains(&half), "{shards} shards, {len} bytes: {half}");
        }
    }
}

#[test]
fn a_rare_request_of_a_heavy_class_overtakes_seven_busy_shards() {
    for (tick, bound) in [(None, 400_000), (Some(500_000), 1_500_000)] {
        let mut world = World::new(model(100_000, 1_000_000_000), Policy::pace_window(), 8);
        world.tick = tick;
        let classes = [1000, 100].map(|shares| world.group.add_class(None, shares).unwrap());
        world.clients(1, Client { pause: 4 * MILLI, ..reads(0, classes[0], 4096) });
        for shard in 0..8 {
            world.clients(64, reads(shard, classes[1], 131_072));
        }
        world.watched = Some((0, Vec::new()));
        world.run_until(4 * SECOND);
        let (_, mut waits) = world.watched.take().unwrap();
        waits.sort_unstable();
        let p99 = waits[waits.len() * 99 / 100];
        println!("tick {tick:?}: p99 {p99} ns of {} requests", waits.len());
        assert!(p99 <= bound, "tick {tick:?}: {p99} ns");
    }
}

#[test]
fn a_shard_that_stalls_does_not_hold_up_the_others() {
    let mut world = World::new(model(100_000, 1_000_000_000), Policy::pace_window(), 8);
    world.stall = Some((100, 0, 10 * MILLI));
    let class = world.group.add_class(None, 100).unwrap();
    for shard in 0..8 {
        world.clients(64, reads(shard, class, 4096));
    }
    world.run_until(5 * SECOND);
    assert!(world.utilisation() > 0.999, "{}", world.utilisation());
}

#[test]
fn groups_of_classes_share_as_one_across_shards() {
    let mut world = World::new(model(20_000, 500_000_000), Policy::pace_window(), 2);
    let group = world.group.add_class_group(None, 30).unwrap();
    let inside = [10, 20].map(|shares| world.group.add_class(Some(group), shares).unwrap());
    let outside = world.group.add_class(None, 10).unwrap();
    world.clients(32, reads(0, inside[0], 4096));
    world.clients(32, reads(1, inside[1], 4096));
    world.clients(32, reads(0, outside, 4096));
    world.clients(32, reads(1, outside, 4096));
    world.run_until(5 * SECOND);
    let used = [inside[0], inside[1], outside].map(|class| world.consumption(class));
    assert!(share_error(&used, &[10, 20, 10]) < 0.01, "{used:?}");
    let used: Vec<f64> = world.shards.iter().map(|shard| consumption(shard, outside)).collect();
    assert!(share_error(&used, &[1, 1]) < 0.01, "{used:?}");
}

/// Small requests that come and go on some of the shards, and large ones on others. Some small ones are
/// always queued on a shard, so their class is never idle, but never has enough work for its shares.
/// All shards poll on the tick alone, on a disk that is faster than its model.
fn light_and_heavy_load(shards: usize, pause: u64) -> (World, Vec<f64>) {
    let mut world = World::new(model(768_000, 3_145_728_000), Policy::pace_window(), shards);
    world.tick = Some(500_000);
    world.disk = Disk { slowness: 20, latency: 20_000 };
    let [little, large] = [100, 200].map(|shares| world.group.add_class(None, shares).unwrap());
    let large_on = (0..shards).filter(|shard| shards == 2 || ![2, 5].contains(shard));
    for shard in (0..shards).filter(|shard| shards == 2 || [0, 2, 5, 7].contains(shard)) {
        world.clients(32, Client { pause, ..reads(shard, little, 512) });
    }
    for shard in large_on.clone() {
        world.clients(2, reads(shard, large, 512 << 10));
    }
    world.run_until(2 * SECOND);
    let used = large_on.map(|shard| consumption(&world.shards[shard], large)).collect();
    (world, used)
}

#[test]
fn a_class_that_asks_for_little_earns_no_credit_that_starves_a_shard() {
    let (world, used) = light_and_heavy_load(8, 500_000);
    assert!(share_error(&used, &[1; 6]) < 0.03, "{used:?}");
    assert!(world.utilisation() > 0.999, "{}", world.utilisation());
}

#[test]
fn a_class_that_asks_for_little_earns_no_credit_that_idles_the_disk() {
    let (world, used) = light_and_heavy_load(2, 0);
    assert!(share_error(&used, &[1; 2]) < 0.03, "{used:?}");
    assert!(world.utilisation() > 0.999, "{}", world.utilisation());
}
