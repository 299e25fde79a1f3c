//! Runs whose scheduler breaks its word: the watch expects another scheduler than there is.

use core::num::NonZeroU64;
use core::time::Duration;

use forebay_config::Source;
use forebay_core::{DiskModel, Policy, Time};
use forebay_load::job_file::JobFile;

use super::setup::invariants;
use super::{LongTurns, Outcome, Polling, Simulation, SimulationConfig, SimulationError};
use crate::invariants::Violation;
use crate::spec::DiskSpec;

const DISK: &str = "
kind: ideal
channels: 1
read_latency: 100us
write_latency: 100us
bandwidth: 1G
";

/// Two jobs of small reads, both on all of this many shards.
fn config(shards: u32, [a, b]: [u32; 2]) -> SimulationConfig {
    let job = |name, shares| {
        format!(
            "- {{name: {name}, type: randread, shards: all, \
             shard_info: {{parallelism: 16, shares: {shares}}}}}\n"
        )
    };
    let jobs = job("a", a) + &job("b", b);
    let jobs = JobFile::parse(&Source::new("jobs.yaml", &jobs), None, shards).unwrap();
    let disk = DiskSpec::parse(&Source::new("disk.yaml", DISK)).unwrap().build(1);
    SimulationConfig {
        warmup: Duration::ZERO,
        duration: Duration::from_millis(300),
        ..SimulationConfig::new(jobs, disk)
    }
}

/// Runs `actual` under the eyes of a watch that expects `expected`.
fn run(actual: SimulationConfig, expected: &SimulationConfig) -> Result<Outcome, SimulationError> {
    let model = DiskModel::from_rates(&expected.disk.rates()).unwrap();
    let mut simulation = Simulation::new(actual).unwrap();
    let groups = simulation.scheduler.io_groups();
    simulation.env.invariants = Some(invariants(expected, &model, groups));
    simulation.run()
}

fn violation(actual: SimulationConfig, expected: &SimulationConfig) -> Violation {
    match run(actual, expected) {
        Err(SimulationError::Invariant(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scheduler_that_keeps_its_word_passes() {
    for shards in [1, 2] {
        assert!(run(config(shards, [100, 300]), &config(shards, [100, 300])).is_ok());
    }
}

#[test]
fn other_shares_than_promised_let_a_class_lag() {
    let seen = violation(config(1, [100, 300]), &config(1, [300, 100]));
    assert!(seen.what.contains("it lags by"), "{seen}");
    assert_eq!((seen.class.as_deref(), seen.shard), (Some("a"), Some(0)));
}

#[test]
fn a_class_that_is_passed_over_on_two_shards_starves() {
    let seen = violation(config(2, [1, 10_000]), &config(2, [100, 100]));
    assert!(seen.what.contains("it has waited while"), "{seen}");
    assert_eq!(seen.class.as_deref(), Some("a"));
}

#[test]
fn a_class_that_is_passed_over_on_shards_that_turn_rarely_starves() {
    let rare = |shares| {
        let turn = Duration::from_millis(2);
        let long = LongTurns { one_in: 1, shortest: turn, longest: turn, shards: vec![0, 1] };
        SimulationConfig { long_turns: Some(long), ..config(2, shares) }
    };
    let seen = violation(rare([1, 10_000]), &rare([100, 100]));
    assert!(seen.what.contains("it has waited while"), "{seen}");
    assert_eq!(seen.class.as_deref(), Some("a"));
}

#[test]
fn a_limit_that_should_be_gone_lets_a_class_lag() {
    let mut limited = config(1, [100, 100]);
    limited.jobs.classes[0].bandwidth_max = NonZeroU64::new(1);
    let seen = violation(limited, &config(1, [100, 100]));
    assert!(seen.what.contains("it lags by"), "{seen}");
    assert_eq!(seen.class.as_deref(), Some("a"));
}

#[test]
fn a_shard_that_holds_what_is_finished_while_it_computes_leaves_the_disk_empty() {
    let computes = |policy| {
        let turn = Duration::from_millis(200);
        let long = LongTurns { one_in: 1, shortest: turn, longest: turn, shards: vec![0] };
        let mut config = SimulationConfig { long_turns: Some(long), ..config(2, [100, 100]) };
        config.scheduler.policy = policy;
        config
    };
    let held = computes(Some(Policy::Concurrency { requests: 1 }));
    let seen = violation(held, &computes(None));
    assert!(seen.what.contains("while the disk had none"), "{seen}");
}

#[test]
fn a_shard_that_sends_too_rarely_lets_the_disk_idle() {
    let mut rare = config(1, [100, 100]);
    rare.polling = Polling::Tick(20_000_000);
    let seen = violation(rare, &config(1, [100, 100]));
    assert!(seen.what.contains("while the budget was unused"), "{seen}");
}

#[test]
fn requests_that_cost_another_price_do_not_add_up() {
    let mut dear = config(1, [100, 100]);
    let mut rates = dear.disk.rates();
    rates.read_iops /= 2;
    dear.scheduler.model = Some(DiskModel::from_rates(&rates).unwrap());
    let seen = violation(dear, &config(1, [100, 100]));
    assert!(seen.what.contains("and goes for"), "{seen}");
    assert_eq!(seen.at, Time::ZERO);
}
