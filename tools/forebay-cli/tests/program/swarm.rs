//! `forebay sim swarm` and `forebay sim replay`.

use std::process::Command;

use crate::loop_mount::Lab;
use crate::process::run;

/// What `swarm` prints of a scenario that fails, in short.
const CASE: &str = "
seed: 3
shards: 1
settings:
  millis: 20
  model_percent: 100
  policy: {pace-window: {latency_goal_micros: 750}}
  duplex: false
  wake_up_micros: 0
  changes: [{at_millis: 10, what: {shares: {class: reads, shares: 50}}}]
disk: |
  kind: ideal
  channels: 4
  read_latency: 500us
  write_latency: 250us
  bandwidth: 300M
jobs: |
  - {name: reads, type: randread, shards: all, shard_info: {parallelism: 8}}
";

fn sim(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("sim").args(arguments);
    command
}

#[test]
fn a_swarm_counts_what_it_did_and_repeats() {
    let one = run(&mut sim(&["swarm", "20", "--seed", "5"]));
    // as it was once spelled
    let mut once = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let other = run(once.args(["simulate", "--swarm", "20", "--seed", "5"]));
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(one.stdout.starts_with("20 scenarios, "), "{}", one.stdout);
    assert!(one.stderr.contains("20 of 20 scenarios"), "{}", one.stderr);
    assert_eq!(one.stdout, other.stdout);
}

#[test]
fn a_case_runs_again() {
    let lab = Lab::new();
    let replay = |text: &str| {
        let file = lab.file("case.yaml", text);
        run(&mut sim(&["replay", file.to_str().unwrap(), "--format", "json"]))
    };
    let ended = replay(CASE);
    assert!(ended.stderr.contains("every invariant held"), "{}", ended.stderr);
    assert!(ended.results()["classes"][0]["requests"].as_u64().unwrap() > 0);
    replay(&CASE.replace("model_percent: 100", "model_percent: 0"))
        .complains(1, &["model_percent"]);
    replay(&CASE.replace("channels: 4", "channels: 0")).complains(1, &["disk:2:", "channels"]);
    replay(&CASE.replace("wake_up_micros", "wake_up")).complains(2, &["case.yaml:9:", "wake_up"]);
}
