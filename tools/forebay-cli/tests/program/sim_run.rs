//! `forebay sim run`.

use std::process::Command;

use serde_json::Value;

use crate::loop_mount::Lab;
use crate::process::{Ended, run};

/// Reads, writes, flushes, removals, random times, all on small files.
const JOBS: &str = "
- name: reads
  type: randread
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 4, rps: 200, reqsize: 4kB, shares: 1000}
  options: {pause_distribution: poisson}
- name: bulk
  type: overwrite
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 8, reqsize: 128kB, shares: 100}
- name: log
  type: append
  shards: [0]
  shard_info: {parallelism: 2, reqsize: 16kB, rps: 100, shares: 200}
  options: {fsync_every: 4}
- name: removals
  type: unlink
  shards: [1]
  data_size: 64MB
  files_count: 16
  shard_info: {parallelism: 1, rps: 20}
";

const IDEAL: &str = "kind: ideal\nchannels: 4\nread_latency: 500us\nwrite_latency: 250us\n\
                     bandwidth: 300000000\n";

const FAULTS: &str = "faults:
  - {kind: slow, from: 10ms, to: 30ms, percent: 30}
  - {kind: error, offset: 4MB, length: 1MB}
  - {kind: hang, from: 40ms, to: 45ms}
  - {kind: hang, from: 50ms, to: 70ms, offset: 8MB, length: 1MB}
  - {kind: reorder, spread: 50us}
";

fn simulate(lab: &Lab, jobs: &str, disk: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(["sim", "run"]).arg(lab.file("jobs.yaml", jobs)).args(["--disk", disk]);
    command
}

/// What comes of half a second.
fn results(lab: &Lab, disk: &str, arguments: &[&str]) -> Ended {
    let mut command = simulate(lab, JOBS, disk);
    command.args(["--duration", "500ms", "--warmup", "300ms", "--format", "json"]);
    let ended = run(command.args(arguments));
    assert_eq!(ended.code, Some(0), "{disk}: {}", ended.stderr);
    ended
}

/// The presets, as the message about an unknown one lists them.
fn presets(lab: &Lab) -> Vec<String> {
    let ended = run(&mut simulate(lab, JOBS, "nothing"));
    let (_, names) = ended.stderr.trim().split_once("presets: ").unwrap();
    names.split(", ").map(str::to_owned).collect()
}

#[test]
fn one_seed_is_one_result_to_the_byte_on_every_disk() {
    let lab = Lab::new();
    let faulty = lab.file("faulty.yaml", &format!("{IDEAL}{FAULTS}"));
    let disks = presets(&lab).into_iter().chain([faulty.to_str().unwrap().to_owned()]);
    for disk in disks {
        // some of the disks do a million requests per second
        let json = |seed| {
            let arguments = ["--seed", seed, "--warmup", "0s", "--duration", "100ms"];
            results(&lab, &disk, &arguments).stdout
        };
        let one = json("7");
        assert_eq!(one, json("7"), "{disk}");
        assert_ne!(one, json("8"), "{disk}");
    }
}

#[test]
fn faults_of_the_disk_file_are_in_the_results() {
    let lab = Lab::new();
    let faulty = lab.file("faulty.yaml", &format!("{IDEAL}{FAULTS}"));
    let run = results(&lab, faulty.to_str().unwrap(), &[]).results();
    let errors: u64 = run["classes"].as_array().unwrap().iter().map(errors).sum();
    assert!(errors > 0, "{run}");
}

fn errors(class: &Value) -> u64 {
    class["errors"].as_u64().unwrap()
}

#[test]
fn every_policy_and_order_runs_and_is_named() {
    let lab = Lab::new();
    for (arguments, policy, order) in [
        (&["--policy", "none"][..], "none", "start-time"),
        (&["--policy", "concurrency"], "concurrency", "start-time"),
        (&["--policy", "2016"], "concurrency", "exponential-decay"),
        (&["--policy", "littles-law"], "littles-law", "start-time"),
        (&["--policy", "token-bucket"], "token-bucket", "start-time"),
        (&["--policy", "two-level-bucket"], "two-level-bucket", "start-time"),
        (&["--policy", "flow-ratio"], "flow-ratio", "start-time"),
        (&[], "pace+window", "start-time"),
        (&["--order", "exponential-decay"], "pace+window", "exponential-decay"),
        (&["--policy", "2016", "--order", "start-time"], "concurrency", "start-time"),
    ] {
        let run = results(&lab, "four-channels", arguments).results();
        assert_eq!(run["policy"], policy);
        assert_eq!(run["order"], order);
        assert!(run["classes"][0]["requests"].as_u64().unwrap() > 0);
    }
}

/// The order of 2016 favours large requests, and it is this queue that says so.
#[test]
fn the_order_changes_who_gets_what() {
    let lab = Lab::new();
    let bulk = |policy| {
        let arguments = ["--policy", policy, "--concurrency", "4"];
        let run = results(&lab, "four-channels", &arguments).results();
        run["classes"][1]["requests"].as_u64().unwrap()
    };
    assert_ne!(bulk("2016"), bulk("concurrency"));
}

/// Four reads or writes at a time: 80,000 requests per second.
const FAST: &str = "kind: ideal\nchannels: 4\nread_latency: 50us\nwrite_latency: 50us\n\
                    bandwidth: 1G\n";

/// Requests of each job, on eight shards.
fn by_job(lab: &Lab, jobs: &str, arguments: &[&str]) -> Vec<u64> {
    let disk = lab.file("disk.yaml", FAST);
    let mut command = simulate(lab, jobs, disk.to_str().unwrap());
    command.args(["--shards", "8", "--warmup", "500ms", "--duration", "2s", "--format", "json"]);
    let run = run(command.args(arguments)).results();
    let classes = run["classes"].as_array().unwrap().iter();
    classes.map(|class| class["requests"].as_u64().unwrap()).collect()
}

const ORDERS_OF_2016: [&[&str]; 5] = [
    &["--policy", "2016"],
    &["--policy", "2016", "--concurrency", "8"],
    &["--policy", "2016", "--concurrency", "3"],
    &["--policy", "littles-law", "--order", "exponential-decay"],
    &["--order", "exponential-decay"],
];

/// The shard that polled first had all of the disk.
#[test]
fn eight_equal_shards_have_equal_parts_of_the_disk_in_the_order_of_2016() {
    let lab = Lab::new();
    let job = |shard: u32, class: u32| {
        format!(
            "- {{name: shard-{shard}, type: randread, shards: [{shard}], \
             shard_info: {{parallelism: 32, reqsize: 4kB, class: class-{class}}}}}\n"
        )
    };
    for classes in [1, 8] {
        let jobs: String = (0..8).map(|shard| job(shard, shard % classes)).collect();
        let groups: String =
            (0..classes).map(|class| format!("- {{name: class-{class}, shares: 100}}\n")).collect();
        let groups = lab.file("groups.yaml", &groups);
        for order in ORDERS_OF_2016 {
            let arguments = [order, &["--sched-groups", groups.to_str().unwrap()]].concat();
            let requests = by_job(&lab, &jobs, &arguments);
            let (least, most) = (requests.iter().min().unwrap(), requests.iter().max().unwrap());
            assert_eq!(requests.len(), 8);
            assert!(least * 100 >= most * 99, "{order:?}, {classes} classes: {requests:?}");
        }
    }
}

#[test]
fn classes_on_eight_shards_have_their_shares_in_the_order_of_2016() {
    let lab = Lab::new();
    let job = |shares: u64| {
        format!(
            "- {{name: shares-{shares}, type: randread, shards: all, \
             shard_info: {{parallelism: 32, reqsize: 4kB, shares: {shares}}}}}\n"
        )
    };
    let shares = [100, 200, 400, 800];
    let jobs: String = shares.map(job).concat();
    for order in ORDERS_OF_2016 {
        let requests = by_job(&lab, &jobs, order);
        let all: u64 = requests.iter().sum();
        for (requests, shares) in requests.iter().zip(shares) {
            let right = all * shares / 1500;
            assert!(requests.abs_diff(right) * 50 <= right, "{order:?}: {requests}, not {right}");
        }
    }
}

#[test]
fn an_impossible_disk_is_told_by_file_line_field_and_bound() {
    let lab = Lab::new();
    for (wrong, words) in [
        (IDEAL.replace("channels: 4", "channels: 0"), ["disk.yaml:2:", "channels", "1 to"]),
        (IDEAL.replace("500us", "2m"), ["disk.yaml:3:", "read_latency", "60s"]),
        (
            IDEAL.replace("bandwidth: 300000000", "bandwidth: 0"),
            ["disk.yaml:5:", "bandwidth", "1 to"],
        ),
        (
            format!("{IDEAL}faults: [{{kind: slow, percent: 100}}]"),
            ["disk.yaml:6:", "percent", "1 to 99"],
        ),
    ] {
        let disk = lab.file("disk.yaml", &wrong);
        run(&mut simulate(&lab, JOBS, disk.to_str().unwrap())).complains(2, &words);
    }
}

/// A measured surface of four by `reads` loads.
fn surface(reads: u32) -> String {
    let loads = (0..4_u32).flat_map(|write| (0..reads).map(move |read| (write, read)));
    let cell = |(write, read): (u32, u32)| {
        format!("{write}00e6,{read}0000,0.1,0.{}2,0\n", 1 + write + read)
    };
    String::from("w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped\n")
        + &loads.map(cell).collect::<String>()
}

#[test]
fn a_measured_surface_and_a_region_are_disks() {
    let lab = Lab::new();
    let region = "kind: surface\nread_iops: 100000\nwrite_bandwidth: 500000000\nexponent: 0.7\n\
                  read_latency: 100us\nwrite_latency: 30us\n";
    for (name, text) in [("disk.csv", surface(4)), ("disk.yaml", region.to_owned())] {
        let disk = lab.file(name, &text);
        let run = results(&lab, disk.to_str().unwrap(), &[]).results();
        assert!(run["classes"][0]["requests"].as_u64().unwrap() > 0, "{name}: {run}");
    }
}

#[test]
fn a_surface_that_no_disk_can_be_fitted_to_is_told_by_file_field_and_bound() {
    let lab = Lab::new();
    for (wrong, words) in [
        (surface(3), ["disk.csv:", "w_bw_Bps, r_iops", "12 cells", "at least 16"]),
        (surface(33), ["disk.csv:", "r_iops", "33 different loads", "3 to 32"]),
        (surface(4).replace("0.42", "x"), ["disk.csv:5:", "p95_ms", "`x`", "from 0 to 60000"]),
        ("not,a,surface\n".to_owned(), ["disk.csv:1:", "`not,a,surface`", "write", "w_bw_Bps"]),
    ] {
        let disk = lab.file("disk.csv", &wrong);
        run(&mut simulate(&lab, JOBS, disk.to_str().unwrap())).complains(2, &words);
    }
}

#[test]
fn a_disk_that_nobody_knows_is_told_with_the_nearest() {
    let lab = Lab::new();
    run(&mut simulate(&lab, JOBS, "for-channels"))
        .complains(2, &["for-channels", "did you mean `four-channels`"]);
    run(&mut simulate(&lab, JOBS, "/nowhere/disk.yaml")).complains(2, &["/nowhere/disk.yaml"]);
}

#[test]
fn a_job_that_can_never_run_is_told_by_file_field_and_bound() {
    let lab = Lab::new();
    let disk =
        |more: &str| lab.file("disk.yaml", &format!("{IDEAL}{more}")).to_str().unwrap().to_owned();
    let small = disk("capacity: 100MB\n");
    run(&mut simulate(&lab, JOBS, &small))
        .complains(2, &["jobs.yaml", "bulk", "data_size", "104857600", "disk.yaml"]);
    let coarse = disk("sector: 4096\n");
    let odd = JOBS.replace("reqsize: 4kB", "reqsize: 512");
    run(&mut simulate(&lab, &odd, &coarse))
        .complains(2, &["jobs.yaml", "reads", "reqsize", "4096", "disk.yaml"]);
    let nowhere = JOBS.replace("shards: [1]", "shards: [2]");
    run(&mut simulate(&lab, &nowhere, "gp3")).complains(2, &["jobs.yaml:20:", "shard 2", "0 to 1"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    for (option, value, bound) in [
        ("--seed", "-1", "from 0 to 18446744073709551615"),
        ("--seed", "x", "from 0 to 18446744073709551615"),
        ("--seed", "18446744073709551616", "from 0 to 18446744073709551615"),
        ("--tick", "0s", "more than zero"),
        ("--shards", "257", "from 1 to 256"),
        ("--policy", "2015", "2016"),
        ("--order", "none", "start-time"),
        ("--swarm", "1", "unexpected argument"),
    ] {
        let mut command = simulate(&lab, JOBS, "gp3");
        run(command.arg(format!("{option}={value}"))).complains(2, &[option, bound]);
    }
    let mut alone = Command::new(env!("CARGO_BIN_EXE_forebay"));
    run(alone.args(["sim", "run"])).complains(2, &["--disk", "JOBS.yaml", "sim run"]);
}

#[test]
fn a_latency_target_is_kept_and_said_and_drawn_over_time() {
    let lab = Lab::new();
    let page = lab.file("loop.html", "");
    let page = page.to_str().unwrap();
    let disk = lab.file("disk.yaml", IDEAL);
    let disk = disk.to_str().unwrap();
    let said = results(&lab, disk, &["--latency-target", "p99=3ms", "--page", page]).results();
    let target = &said["disk"]["latency_target"];
    assert_eq!((&target["target"], &target["latency_us"]), (&"p99=3ms".into(), &3000.0.into()));
    assert_eq!(target["attainable"], true);
    let html = std::fs::read_to_string(page).unwrap();
    for word in ["The loop at work", "measured (p99)", "delivered while work waited", "Throughput"]
    {
        assert!(html.contains(word), "{word}");
    }
    let off = results(&lab, disk, &["--latency-target", "off"]).results();
    assert!(off["disk"].get("latency_target").is_none());
}

#[test]
fn a_latency_target_that_is_none_or_below_the_base_latency_or_for_nobody_is_refused() {
    let lab = Lab::new();
    for (arguments, words) in [
        (&["--latency-target", "p95=1"][..], &["p95=1ms", "writes:p95=5ms", "`off`"][..]),
        (&["--latency-target", "p100=1ms"], &["from 50 to 99.9"]),
        (&["--latency-target", "p95=0ms"], &["a latency above zero"]),
        (&["--latency-target", "p95=100us"], &["base latency", "forebay explore DIR"]),
        (&["--latency-target", "p95=1ms", "--policy", "token-bucket"], &["pace+window"]),
    ] {
        run(simulate(&lab, JOBS, "gp3").args(arguments)).complains(2, words);
    }
}
