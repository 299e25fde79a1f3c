//! The window that is found by trials, alongside that of the figures and alongside no scheduler.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Control, DiskRates, Policy};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::{ClassResult, RunResult};
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

/// How a load is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Unscheduled,
    Figures,
    Knee,
    Target(&'static str),
}

fn job(name: &str, kind: &str, fibers: u32, size: &str, rest: &str) -> String {
    format!(
        "- {{name: {name}, type: {kind}, shards: all, shard_info: {{parallelism: {fibers}, \
         reqsize: {size}, shares: 100{rest}\n"
    )
}

/// Random reads at this part of what the disk does, in hundredths, in a Poisson process.
fn reads(rates: &DiskRates, percent: u64) -> String {
    let rps = rates.read_iops * percent / 100 / 400;
    let rest = format!(", rps: {rps}}}, options: {{pause_distribution: poisson}}}}");
    job("reads", "randread", 100, "4kB", &rest)
}

fn bulk(kind: &str) -> String {
    job("bulk", kind, 16, "128kB", "}}")
}

/// Both without bound.
fn saturated() -> String {
    job("reads", "randread", 64, "4kB", "}}") + &bulk("seqwrite")
}

fn run(disk: &str, how: How, jobs: impl Fn(&DiskRates) -> String) -> RunResult {
    run_for(&DiskSpec::resolve(disk).unwrap(), how, jobs, Duration::from_secs(1))
}

fn run_for(
    spec: &DiskSpec,
    how: How,
    jobs: impl Fn(&DiskRates) -> String,
    duration: Duration,
) -> RunResult {
    let disk = spec.build(1);
    let base_latency = Some(disk.base_latency());
    let text = jobs(&disk.rates());
    let jobs = JobFile::parse(&Source::new("jobs", &text), None, 4).unwrap();
    let mut config = SimulationConfig::new(jobs, disk);
    config.warmup = Duration::from_secs(1);
    config.duration = duration;
    config.capacity = Some(spec.capacity());
    config.scheduler.policy = Some(match how {
        How::Unscheduled => Policy::Unlimited,
        How::Figures | How::Knee | How::Target(_) => {
            Policy::PaceWindow { latency_goal: Duration::ZERO, base_latency }
        }
    });
    if how == How::Figures {
        config.scheduler.control = Control::Rates;
    }
    if let How::Target(target) = how {
        config.scheduler.latency_target = Some(target.parse().unwrap());
    }
    Simulation::new(config).unwrap().run().unwrap().result
}

fn class<'a>(result: &'a RunResult, name: &str) -> &'a ClassResult {
    result.classes.iter().find(|class| class.name == name).unwrap()
}

fn bulk_rate(result: &RunResult) -> f64 {
    class(result, "bulk").bandwidth_bytes_per_second as f64
}

/// The 99th percentile of reads, in microseconds.
fn p99(result: &RunResult) -> f64 {
    class(result, "reads").latency_us.p99
}

#[test]
fn a_disk_that_does_more_of_a_mix_than_its_figures_say_does_it_at_unchanged_shares() {
    for disk in ["i4i.2xlarge", "four-channels"] {
        let [figures, knee] = [How::Figures, How::Knee].map(|how| run(disk, how, |_| saturated()));
        let more = bulk_rate(&knee) / bulk_rate(&figures);
        assert!(more >= 1.2, "{disk}: {more}");
        let share = |result: &RunResult| bulk_rate(result) / class(result, "reads").iops;
        let bent = share(&knee) / share(&figures);
        assert!((0.97..1.03).contains(&bent), "{disk}: {bent}");
    }
}

#[test]
fn reads_during_bulk_writes_are_faster_and_writes_are_not_fewer() {
    for disk in ["nvme-2022", "samsung-970-pro", "i4i.2xlarge"] {
        let load = |rates: &DiskRates| reads(rates, 20) + &bulk("seqwrite");
        let [figures, knee] = [How::Figures, How::Knee].map(|how| run(disk, how, load));
        assert!(bulk_rate(&knee) >= 0.99 * bulk_rate(&figures), "{disk}");
        assert!(p99(&knee) <= p99(&figures), "{disk}: {} for {}", p99(&knee), p99(&figures));
    }
}

#[test]
fn a_disk_that_serves_all_that_is_asked_is_not_felt_to_be_scheduled() {
    let rated = |rates: &DiskRates| {
        let rps = rates.write_bandwidth * 3 / 10 / 131_072 / 64;
        let writes = job("bulk", "seqwrite", 16, "128kB", &format!(", rps: {rps}}}}}"));
        reads(rates, 40) + &writes
    };
    for disk in ["i4i.2xlarge", "gp3", "nvme-2018"] {
        let [unscheduled, knee] = [How::Unscheduled, How::Knee].map(|how| run(disk, how, rated));
        for name in ["reads", "bulk"] {
            let of = |result: &RunResult| class(result, name).latency_us.p99;
            let (with, without) = (of(&knee), of(&unscheduled));
            assert!(with <= 1.05 * without, "{disk}, {name}: {with} for {without}");
        }
    }
}

#[test]
fn few_requests_of_several_classes_stay_in_order() {
    let few = |_: &DiskRates| {
        job("reads", "randread", 2, "4kB", "}}") + &job("bulk", "seqwrite", 1, "128kB", "}}")
    };
    let [figures, knee] = [How::Figures, How::Knee].map(|how| run("nvme-2022", how, few));
    assert!(class(&knee, "reads").iops >= 0.95 * class(&figures, "reads").iops);
}

/// With all requests of both classes in the disk, which knows no shares, the reads get half of what
/// they ask for, and none of them waits for room: no smaller window is felt unless that ends.
#[test]
fn a_heavy_class_does_not_stay_with_all_of_its_requests_in_the_disk() {
    let load = |_: &DiskRates| {
        let rated = ", rps: 100}, options: {pause_distribution: poisson}}";
        let reads =
            job("reads", "randread", 10, "4kB", rated).replace("shares: 100", "shares: 1000");
        reads + &job("bulk", "overwrite", 8, "128kB", "}}")
    };
    let spec = DiskSpec::resolve("azure-p30").unwrap();
    let [unscheduled, knee] =
        [How::Unscheduled, How::Knee].map(|how| run_for(&spec, how, load, Duration::from_secs(8)));
    let of = |result: &RunResult| class(result, "reads").iops;
    assert!(of(&knee) >= 1.3 * of(&unscheduled), "{} alongside {}", of(&knee), of(&unscheduled));
}

#[test]
fn members_of_an_array_are_all_busy() {
    let [unscheduled, knee] = [How::Unscheduled, How::Knee]
        .map(|how| run("raid0-4-nvme", how, |_| job("bulk", "seqwrite", 64, "128kB", "}}")));
    assert!(bulk_rate(&knee) >= 0.97 * bulk_rate(&unscheduled));
}

#[test]
fn a_class_that_its_limit_holds_back_does_not_keep_the_window_small_for_others() {
    let load = |_: &DiskRates| {
        let limited = ", bandwidth: 100kB}}";
        job("reads", "randread", 16, "4kB", "}}") + &job("bulk", "randwrite", 16, "4kB", limited)
    };
    let [unscheduled, knee] = [How::Unscheduled, How::Knee].map(|how| run("azure-p30", how, load));
    let of = |result: &RunResult| class(result, "reads").iops;
    assert!(of(&knee) >= 0.95 * of(&unscheduled), "{} of {}", of(&knee), of(&unscheduled));
}

/// The scan reads too, and waits for itself: what it takes is not counted.
#[test]
fn a_latency_target_is_kept_by_a_smaller_window_and_no_smaller_one_than_needed() {
    for (scan, percent, text, target) in
        [("seqwrite", 20, "p95=200us", 200.0), ("seqread", 5, "p95=140us", 140.0)]
    {
        let load = |rates: &DiskRates| reads(rates, percent) + &bulk(scan);
        let [without, with] =
            [How::Knee, How::Target(text)].map(|how| run("i4i.2xlarge", how, load));
        let p95 = |result: &RunResult| class(result, "reads").latency_us.p95;
        assert!(p95(&without) > 1.1 * target, "{scan}: {} without", p95(&without));
        assert!(p95(&with) <= 1.05 * target, "{scan}: {}", p95(&with));
        let kept = bulk_rate(&with) / bulk_rate(&without);
        assert!((0.65..0.99).contains(&kept), "{scan}: {kept}");
        assert!(class(&with, "reads").iops >= 0.99 * class(&without, "reads").iops, "{scan}");
        let status = with.disk.unwrap().latency_target.unwrap();
        assert!(status.attainable && status.measured > 10_000, "{scan}: {status:?}");
    }
}

#[test]
fn a_latency_target_that_no_window_keeps_costs_nothing() {
    for (disk, target) in [("nvme-2022", "p95=120us"), ("gp3", "p95=1060us")] {
        let load = |rates: &DiskRates| reads(rates, 20) + &bulk("seqwrite");
        let [without, with] = [How::Knee, How::Target(target)].map(|how| run(disk, how, load));
        assert!(bulk_rate(&with) >= 0.95 * bulk_rate(&without), "{disk}");
        let p95 = |result: &RunResult| class(result, "reads").latency_us.p95;
        let (with_p95, without_p95) = (p95(&with), p95(&without));
        assert!(with_p95 <= 1.1 * without_p95, "{disk}: {with_p95} for {without_p95}");
        let status = with.disk.unwrap().latency_target.unwrap();
        assert!(!status.attainable && status.holds == Some(false), "{disk}: {status:?}");
    }
}

#[test]
fn a_latency_target_does_not_bend_shares() {
    let of = |how| run("i4i.2xlarge", how, |_| saturated());
    let [without, with] = [How::Knee, How::Target("disk:p95=150us")].map(of);
    let share = |result: &RunResult| bulk_rate(result) / class(result, "reads").iops;
    let bent = share(&with) / share(&without);
    assert!((0.97..1.03).contains(&bent), "{bent}");
    let kept = bulk_rate(&with) / bulk_rate(&without);
    assert!(kept < 0.97, "the target binds: {kept}");
}

/// Reads and writes without bound on an ideal disk, measured for 1.5 times `warmup`.
fn on_ideal(channels: u32, micros: u64, bandwidth: u64, warmup: Duration) -> RunResult {
    let text = format!(
        "kind: ideal\nchannels: {channels}\nread_latency: {micros}us\nwrite_latency: {micros}us\n\
         bandwidth: {bandwidth}\n"
    );
    let disk = DiskSpec::parse(&Source::new("disk", &text)).unwrap().build(1);
    let base_latency = Some(disk.base_latency());
    let load = job("reads", "randread", 32, "4kB", "}}") + &bulk("overwrite");
    let jobs = JobFile::parse(&Source::new("jobs", &load), None, 2).unwrap();
    let mut config = SimulationConfig::new(jobs, disk);
    (config.warmup, config.duration) = (warmup, warmup * 3 / 2);
    config.scheduler.policy =
        Some(Policy::PaceWindow { latency_goal: Duration::ZERO, base_latency });
    Simulation::new(config).unwrap().run().unwrap().result
}

/// The law knows no length of time: a disk that takes twice as long for all has half of the rates.
#[test]
fn a_disk_of_half_the_speed_does_half_in_twice_the_time() {
    for (channels, micros, bandwidth) in [
        (4, 200, 1_000_000_000),
        (16, 400, 600_000_000),
        (8, 300, 2_000_000_000),
        (2, 50, 300_000_000),
        (4, 100, 2_000_000_000),
        (16, 80, 3_000_000_000),
        (64, 200, 2_000_000_000),
        (8, 60, 500_000_000),
    ] {
        let warmup = Duration::from_secs(1);
        let fast = on_ideal(channels, micros, bandwidth, warmup);
        let slow = on_ideal(channels, 2 * micros, bandwidth / 2, 2 * warmup);
        for name in ["reads", "bulk"] {
            let of = |result: &RunResult| {
                let class = class(result, name);
                [class.iops, 1e6 / class.latency_us.mean]
            };
            let (fast, slow) = (of(&fast), of(&slow));
            for (fast, slow) in fast.into_iter().zip(slow) {
                let ratio = fast / slow / 2.0;
                assert!((ratio - 1.0).abs() <= 0.03, "{channels} x {micros} us, {name}: {ratio}");
            }
        }
    }
}
