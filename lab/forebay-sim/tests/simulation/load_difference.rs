//! Two runs of a load compared: what is found of a disk that has lost something, and of one that
//! has not.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Control, DiskModel, LATENCY_GOAL_DEFAULT, Policy};
use forebay_load::Rng;
use forebay_load::job_file::JobFile;
use forebay_load::results::difference::{Difference, Figure, Outcome, difference};
use forebay_load::results::model::{Comparison, Report, RunResult, VERSION};
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

const JOBS: &str = "
- name: reads
  type: randread
  shards: all
  data_size: 1GB
  shard_info: {parallelism: 8, rps: 90, reqsize: 4kB, shares: 1000}
  options: {pause_distribution: poisson}
- name: bulk
  type: seqwrite
  shards: all
  data_size: 1GB
  shard_info: {parallelism: 16, reqsize: 128kB, shares: 100}
- name: rare
  type: randread
  shards: [0]
  data_size: 1GB
  shard_info: {parallelism: 1, rps: 20, reqsize: 4kB, shares: 200}
";

const DISK: &str = "kind: flash\nread_command: 50us\nwrite_command: 60us\nbandwidth: 500000000\n\
                    read_latency: 20us\nread_jitter: 200us\nwrite_latency: 10us\ndies: 32\n\
                    page: 16kB\npage_read: 60us\nprogram_bandwidth: 300000000\nsuspend: 50us\n\
                    write_buffer: 4MB\n";

/// What a disk may have lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Nothing,
    /// A tenth of the bytes that it writes.
    Writes,
    /// Reads take 300 us more.
    Latency,
    /// The p99 of reads is some percent higher, and little else: they vary by more, and where the
    /// disk stands still, it does so for longer.
    Tail(u64),
}

/// How much longer a p99 may be, in percent.
const TAILS: [u64; 3] = [10, 20, 50];
/// What raises the p99 by a percent on the even disk, in microseconds.
const JITTER_PER_PERCENT_US: u64 = 8;

/// A run of ten seconds; where the disk is uneven, its speed changes by some percent every 0.3 s,
/// and it stands still now and then.
fn run(loss: Loss, uneven: bool, policy: Policy, seed: u64) -> RunResult {
    let mut chance = Rng::new(seed, &[5]);
    let longer = if let Loss::Tail(percent) = loss { percent } else { 0 };
    let mut faults = String::from("faults:\n");
    for step in 0..(if uneven { 40 } else { 0 }) {
        let (from, to, percent) = (step * 300, step * 300 + 300, 85 + chance.below(9));
        faults += &format!("- {{kind: slow, from: {from}ms, to: {to}ms, percent: {percent}}}\n");
        let stop = (10 + chance.below(20)) * (100 + longer) / 100;
        let (from, to) = (from + 50, from + 50 + stop);
        faults += &format!("- {{kind: hang, from: {from}ms, to: {to}ms}}\n");
    }
    let disk = match loss {
        Loss::Nothing => DISK.to_owned(),
        Loss::Writes => {
            DISK.replace("program_bandwidth: 300000000", "program_bandwidth: 270000000")
        }
        Loss::Tail(percent) => {
            let us = 200 + percent * JITTER_PER_PERCENT_US;
            DISK.replace("read_jitter: 200us", &format!("read_jitter: {us}us"))
        }
        Loss::Latency => DISK.replace("read_latency: 20us", "read_latency: 320us"),
    };
    let disk = if uneven { disk + &faults } else { disk };
    let spec = DiskSpec::parse(&Source::new("disk.yaml", &disk)).unwrap();
    let jobs = JobFile::parse(&Source::new("jobs.yaml", JOBS), None, 2).unwrap();
    let disk = spec.build(seed);
    let model = DiskModel::from_rates(&disk.rates()).unwrap();
    let mut config = SimulationConfig::new(jobs, disk);
    config.scheduler.model = Some(model);
    config.scheduler.control = Control::Rates;
    config.scheduler.policy = Some(policy);
    config.warmup = Duration::from_millis(500);
    config.duration = Duration::from_secs(10);
    config.seed = seed;
    config.capacity = Some(spec.capacity());
    Simulation::new(config).and_then(Simulation::run).unwrap().result
}

fn scheduled(loss: Loss, uneven: bool, seed: u64) -> Report {
    let base_latency = Some(Duration::from_micros(280));
    let policy = Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency };
    Report::Run(Box::new(run(loss, uneven, policy, seed)))
}

fn finds(difference: &Difference, job: &str, figure: Figure) -> bool {
    let of = |change: &&forebay_load::results::difference::Change| {
        change.job == job && change.figure == figure
    };
    difference.changes.iter().filter(of).any(|change| change.loss().is_some())
}

/// Of this many seeds: in how many anything is found on the same disk, the writes lost, and the
/// reads slower; and in how many there is no answer on the same disk.
fn compare(uneven: bool, seeds: std::ops::Range<u64>) -> [u32; 4] {
    let mut found = [0; 4];
    for seed in seeds {
        let old = scheduled(Loss::Nothing, uneven, 1000 + seed);
        let diff = |loss, seed| difference(&old, &scheduled(loss, uneven, seed)).unwrap();
        let same = diff(Loss::Nothing, 2000 + seed);
        let is_wrong = same.changes.iter().any(|change| {
            let wrong = change.judged.is_some_and(|judged| judged.significant);
            if wrong {
                eprintln!("{uneven} {seed}: {change:?}");
            }
            wrong
        });
        found[0] += u32::from(is_wrong);
        if let Outcome::Undecided(why) = same.outcome(0.0) {
            eprintln!("{uneven} {seed}: {why}");
            found[3] += 1;
        }
        found[1] += u32::from(finds(&diff(Loss::Writes, 3000 + seed), "bulk", Figure::Throughput));
        found[2] += u32::from(finds(&diff(Loss::Latency, 4000 + seed), "reads", Figure::P50));
    }
    found
}

#[test]
fn a_loss_of_a_disk_is_found_and_none_on_the_same_disk() {
    for uneven in [false, true] {
        let [wrong, writes, latency, none] = compare(uneven, 0..4);
        assert!(wrong <= 1 && none <= 1, "{uneven}: {wrong} and {none} of 4");
        assert!(writes >= 3 && latency >= 3, "{uneven}: {writes} and {latency} of 4");
    }
}

#[test]
fn a_percentile_of_few_requests_is_not_judged_and_says_how_many_it_needs() {
    let old = scheduled(Loss::Nothing, false, 1);
    let same = difference(&old, &scheduled(Loss::Nothing, false, 2)).unwrap();
    let rare =
        same.changes.iter().find(|change| change.job == "rare" && change.figure == Figure::P99);
    let rare = rare.unwrap();
    assert!(rare.judged.is_none() && rare.loss().is_none(), "{rare:?}");
    assert_eq!(rare.requests, [200, 1000]);
    let text = forebay_load::results::difference::text(&same);
    assert!(text.contains("not judged: 200 of 1000 needed"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_change_that_unscheduled_runs_have_too_is_the_disks() {
    let comparison = |loss, seed| {
        let scheduled = |loss, seed| match scheduled(loss, false, seed) {
            Report::Run(run) => *run,
            Report::Comparison(_) => unreachable!("one run"),
        };
        let unscheduled = run(loss, false, Policy::Unlimited, seed);
        let runs = [unscheduled, scheduled(Loss::Writes, seed)];
        Report::Comparison(Box::new(Comparison { version: VERSION, runs }))
    };
    let alone = |report: &Report| match report {
        Report::Comparison(both) => Report::Run(Box::new(both.runs[1].clone())),
        Report::Run(run) => Report::Run(run.clone()),
    };
    let [old, new] =
        [(Loss::Nothing, 11), (Loss::Writes, 12)].map(|(loss, seed)| comparison(loss, seed));
    let with = difference(&old, &new).unwrap();
    let margin = |difference: &Difference| {
        let of = difference
            .changes
            .iter()
            .find(|change| change.job == "bulk" && change.figure == Figure::Throughput);
        of.unwrap().judged.unwrap().margin.unwrap()
    };
    let without = difference(&alone(&old), &alone(&new)).unwrap();
    assert!(without.control.is_empty() && !with.control.is_empty());
    assert!(margin(&with) > 2.0 * margin(&without), "{} {}", margin(&with), margin(&without));
}

#[test]
fn another_load_is_not_comparable() {
    let old = scheduled(Loss::Nothing, false, 1);
    let changed = |change: fn(&mut RunResult)| {
        let Report::Run(mut run) = scheduled(Loss::Nothing, false, 1) else { return String::new() };
        change(&mut run);
        difference(&old, &Report::Run(run)).unwrap_err()
    };
    for (change, words) in [
        (
            (|run| run.classes[0].name = String::from("other")) as fn(&mut RunResult),
            "the jobs were",
        ),
        (|run| run.backend = String::from("io_uring"), "I/O was"),
        (|run| run.duration_seconds = 5.0, "the run took"),
        (|run| run.classes[1].intervals.clear(), "no `intervals`"),
    ] {
        let said = changed(change);
        assert!(said.starts_with("not comparable: ") && said.contains(words), "{said}");
    }
}

/// All of it:
/// `SEEDS=100 cargo test -p forebay-sim --test simulation load_difference -- --ignored
/// --nocapture`.
#[test]
#[ignore = "takes some minutes"]
fn table_of_power_and_false_alarms() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    println!(
        "| disk | same: anything found | no answer | a tenth of writes lost | reads 0.3 ms slower |"
    );
    println!("|---|---|---|---|---|");
    for uneven in [false, true] {
        let [wrong, writes, latency, none] = compare(uneven, 0..seeds);
        let name = if uneven { "uneven by 9 % and with stalls" } else { "even" };
        println!(
            "| {name} | {wrong}/{seeds} | {none}/{seeds} | {writes}/{seeds} | {latency}/{seeds} |"
        );
    }
}

/// By how many percent the p99 of reads rises with each of [`TAILS`] in the mean, and with how many
/// of the seeds that is found.
fn compare_tails(uneven: bool, seeds: std::ops::Range<u64>) -> [(f64, u32); 3] {
    let count = (seeds.end - seeds.start) as f64;
    TAILS.map(|percent| {
        let (mut rise, mut found) = (0.0, 0);
        for seed in seeds.clone() {
            let [old, new] = [(Loss::Nothing, 5000), (Loss::Tail(percent), 6000)]
                .map(|(loss, from)| scheduled(loss, uneven, from + seed));
            let p99 = |report: &Report| match report {
                Report::Run(run) => run.classes[0].latency_us.p99,
                Report::Comparison(_) => unreachable!("one run"),
            };
            rise += (p99(&new) / p99(&old) - 1.0) * 100.0 / count;
            let difference = difference(&old, &new).unwrap();
            found += u32::from(finds(&difference, "reads", Figure::P99));
        }
        (rise, found)
    })
}

/// `SEEDS=20 cargo test -p forebay-sim --test simulation of_a_lost_p99 -- --ignored --nocapture`.
#[test]
#[ignore = "takes some minutes"]
fn table_of_a_lost_p99() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20);
    for uneven in [false, true] {
        for (rise, found) in compare_tails(uneven, 0..seeds) {
            println!("| uneven {uneven} | p99 of reads {rise:+.1} % | {found}/{seeds} |");
        }
    }
}

/// A log that flushes after each write, on a hard disk that turns so fast.
fn log_on(rpm: u32) -> RunResult {
    let disk = format!(
        "kind: hdd\nrpm: {rpm}\nseek_min: 1ms\nseek_max: 18ms\nbandwidth: 182000000\n\
         capacity: 1TB\n"
    );
    let jobs = "- {name: log, type: append, shards: [0], shard_info: {parallelism: 1, reqsize: \
                4kB}, options: {fsync_every: 1}}\n";
    let spec = DiskSpec::parse(&Source::new("disk.yaml", &disk)).unwrap();
    let jobs = JobFile::parse(&Source::new("jobs.yaml", jobs), None, 1).unwrap();
    let config = SimulationConfig {
        warmup: Duration::from_secs(1),
        duration: Duration::from_secs(20),
        capacity: Some(spec.capacity()),
        ..SimulationConfig::new(jobs, spec.build(1))
    };
    Simulation::new(config).and_then(Simulation::run).unwrap().result
}

#[test]
fn flushes_that_take_longer_are_found_apart_from_their_writes() {
    let (fast, slow) = (log_on(7200), log_on(5400));
    let [old, new] = [&fast, &slow].map(|run| Report::Run(Box::new(run.clone())));
    let found = difference(&old, &new).unwrap();
    assert!(finds(&found, "log flushes", Figure::P50), "{found:?}");
    assert!(!finds(&found, "log", Figure::P50), "{found:?}");
    let outcome = found.outcome(0.0);
    let is_named = |lost: &[String]| lost.iter().any(|lost| lost.contains("log flushes"));
    assert!(matches!(&outcome, Outcome::Lost(lost) if is_named(lost)), "{outcome:?}");
    assert_eq!(difference(&old, &old).unwrap().outcome(0.0), Outcome::Passed);
    // as older files have it, where flushes are among the writes
    let mut mixed = fast;
    mixed.classes[0].flushes = None;
    let refusal = difference(&Report::Run(Box::new(mixed)), &new).unwrap_err();
    assert!(refusal.contains("the jobs were log before, log, log flushes now"), "{refusal}");
}
