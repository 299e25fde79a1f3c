//! The earlier policies do what they did, so that experiments can show it.

use forebay_core::{GroupConfig, LATENCY_GOAL_DEFAULT, Op, Policy, QueueDiscipline};

use crate::world::{Client, SECOND, World, model, share_error};

const TAU_2016: QueueDiscipline = QueueDiscipline::ExponentialDecay { tau_nanos: 100_000_000 };

#[test]
fn the_2016_queue_shares_128_kib_reads_by_weight() {
    for shares in [[10, 20, 40, 80], [100, 10, 10, 10], [10; 4]] {
        let mut config =
            GroupConfig::new(model(100_000, 550_000_000), Policy::Concurrency { requests: 30 });
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
