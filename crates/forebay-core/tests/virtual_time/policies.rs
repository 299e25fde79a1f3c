//! The earlier policies behave as they did then, so that experiments can show it.

use forebay_core::{LATENCY_GOAL_DEFAULT, Op, Policy, ServiceOrder};

use crate::world::{Client, SECOND, World, by_figures, model, share_error};

const TAU_2016: ServiceOrder = ServiceOrder::ExponentialDecay { tau_nanos: 100_000_000 };

#[test]
fn the_2016_queue_shares_128_kib_reads_by_weight() {
    for shares in [[10, 20, 40, 80], [100, 10, 10, 10], [10; 4]] {
        let mut config =
            by_figures(model(100_000, 550_000_000), Policy::Concurrency { requests: 30 });
        config.order = TAU_2016;
        let mut world = World::with_config(config, 1);
        let classes = shares.map(|shares| world.group.add_class(None, shares).unwrap());
        for class in classes {
            world.clients(40, Client { shard: 0, class, op: Op::Read, len: 131_072, pause: 0 });
        }
        world.run_until(20 * SECOND);
        let used = classes.map(|class| world.consumption(class));
        // the published table is within 2 %
        assert!(share_error(&used, &shares) < 0.02, "{shares:?}: {used:?}");
        assert_eq!(world.shards[0].queue.counters().in_disk_max, 30);
    }
}

#[test]
fn every_policy_keeps_the_disk_busy() {
    let latency_goal = LATENCY_GOAL_DEFAULT;
    for policy in [
        Policy::Concurrency { requests: 30 },
        Policy::LittlesLaw { latency_goal },
        Policy::TokenBucket { latency_goal },
        Policy::TwoLevelBucket { latency_goal },
        Policy::FlowRatio { latency_goal },
        Policy::pace_window(),
    ] {
        let mut world = World::new(model(50_000, 1_000_000_000), policy, 2);
        let classes = [5, 1].map(|shares| world.group.add_class(None, shares).unwrap());
        for (shard, class) in classes.into_iter().enumerate() {
            let client = Client { shard, class, op: Op::Read, len: 4096, pause: 0 };
            world.clients(200, client);
        }
        world.run_until(3 * SECOND);
        let used = classes.map(|class| world.consumption(class));
        println!("{}: {:.4} used, {used:?}", policy.name(), world.utilisation());
        assert!(world.utilisation() > 0.95, "{policy:?}: {}", world.utilisation());
    }
}

const FAIR_POLICIES: [Policy; 8] = [
    Policy::Concurrency { requests: 1 },
    Policy::Concurrency { requests: 6 },
    Policy::Concurrency { requests: 30 },
    Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT },
    Policy::TokenBucket { latency_goal: LATENCY_GOAL_DEFAULT },
    Policy::TwoLevelBucket { latency_goal: LATENCY_GOAL_DEFAULT },
    Policy::FlowRatio { latency_goal: LATENCY_GOAL_DEFAULT },
    Policy::pace_window(),
];

fn world_of_2016(policy: Policy, iops: u64, shards: usize) -> World {
    let mut config = by_figures(model(iops, 550_000_000), policy);
    config.order = TAU_2016;
    let mut world = World::with_config(config, shards);
    // One request at a time keeps the disk busy, too.
    world.disk.latency = 100;
    world
}

/// The disk time of each shard between two times.
fn by_shard(world: &mut World, from: u64, to: u64) -> Vec<u64> {
    let used = |world: &World| -> Vec<u64> {
        let used = world.shards.iter().map(|shard| shard.queue.counters().consumption.units());
        used.collect()
    };
    world.run_until(from);
    let before = used(world);
    world.run_until(to);
    used(world).iter().zip(before).map(|(used, before)| used - before).collect()
}

/// The shard that polled first once took all freed room, and the others starved.
#[test]
fn shards_take_turns_in_the_order_of_2016_whatever_their_classes() {
    for policy in FAIR_POLICIES {
        for classes in [1, 8] {
            let mut world = world_of_2016(policy, 40_000, 8);
            let classes: Vec<_> =
                (0..classes).map(|_| world.group.add_class(None, 10).unwrap()).collect();
            for shard in 0..8 {
                let class = classes[shard % classes.len()];
                world.clients(40, Client { shard, class, op: Op::Read, len: 4096, pause: 0 });
            }
            let used = by_shard(&mut world, SECOND, 4 * SECOND);
            let (least, most) = (used.iter().min().unwrap(), used.iter().max().unwrap());
            assert!(least * 100 >= most * 99, "{policy:?}, {} classes: {used:?}", classes.len());
            assert!(world.utilisation() > 0.95, "{policy:?}: {}", world.utilisation());
        }
    }
}

#[test]
fn classes_on_each_of_eight_shards_have_their_shares_in_the_order_of_2016() {
    for policy in FAIR_POLICIES {
        let mut world = world_of_2016(policy, 100_000, 8);
        let shares = [10, 20, 40, 80];
        let classes = shares.map(|shares| world.group.add_class(None, shares).unwrap());
        for shard in 0..8 {
            for class in classes {
                world.clients(40, Client { shard, class, op: Op::Read, len: 4096, pause: 0 });
            }
        }
        world.run_until(4 * SECOND);
        let used = classes.map(|class| world.consumption(class));
        assert!(share_error(&used, &shares) < 0.02, "{policy:?}: {used:?}");
    }
}

/// A turn that is not used is not kept.
#[test]
fn a_shard_that_was_idle_has_its_turns_again_and_no_more_in_the_order_of_2016() {
    let mut world = world_of_2016(Policy::Concurrency { requests: 30 }, 100_000, 2);
    let class = world.group.add_class(None, 10).unwrap();
    let client = |shard| Client { shard, class, op: Op::Read, len: 4096, pause: 0 };
    world.clients(40, client(0));
    let alone = by_shard(&mut world, SECOND, 4 * SECOND);
    assert_eq!(alone[1], 0, "{alone:?}");
    assert!(world.utilisation() > 0.95, "{}", world.utilisation());
    world.clients(40, client(1));
    let both = by_shard(&mut world, 4 * SECOND, 4 * SECOND + SECOND / 10);
    assert!(both[1] * 100 <= both[0] * 105 && both[0] * 100 <= both[1] * 105, "{both:?}");
}
