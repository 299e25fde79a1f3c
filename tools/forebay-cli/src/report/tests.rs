//! What runs that go wrong are said to be, alongside the stories of `tests/monitoring`, and what is
//! kept of runs over time.

use core::time::Duration;

use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::{Report, RunResult};
use forebay_report::verdict::FindingKind;
use forebay_sim::simulation::{SchedulerConfig, Simulation, SimulationConfig, Stalls};
use forebay_sim::spec::DiskSpec;

use super::{figures, html};

/// Queries alongside compaction on a disk of 10,000 small requests per second.
const JOBS: &str = "
- name: query
  type: randread
  shards: all
  data_size: 1GB
  shard_info: {parallelism: 32, reqsize: 4kB, shares: 100}
- name: compaction
  type: seqread
  shards: all
  data_size: 1GB
  shard_info: {parallelism: 32, reqsize: 4kB, shares: 100}
";
const DISK: &str = "kind: ideal
source: made up
channels: 4
read_latency: 400us
write_latency: 400us
bandwidth: 400M
";

/// The run of a story.
pub(super) fn run(change: impl FnOnce(&mut SimulationConfig)) -> RunResult {
    let jobs = JobFile::parse(&Source::new("jobs", JOBS), None, 2).unwrap();
    let disk = DiskSpec::parse(&Source::new("disk", DISK)).unwrap().build(1);
    let mut config = SimulationConfig::new(jobs, disk);
    config.series = true;
    config.duration = Duration::from_secs(6);
    change(&mut config);
    Simulation::new(config).and_then(Simulation::run).unwrap().result
}

fn kinds(run: &RunResult) -> Vec<FindingKind> {
    figures::of(run, None).iter().map(|finding| finding.kind).collect()
}

/// The model of the disk's rates, times this many percent.
fn stated(config: &SimulationConfig, percent: u64) -> SchedulerConfig {
    let rates = config.disk.rates();
    let stated = |rate: u64| rate * percent / 100;
    let rates = DiskRates {
        read_iops: stated(rates.read_iops),
        write_iops: stated(rates.write_iops),
        read_bandwidth: stated(rates.read_bandwidth),
        write_bandwidth: stated(rates.write_bandwidth),
    };
    let model = DiskModel::from_rates(&rates).unwrap();
    SchedulerConfig { model: Some(model), ..SchedulerConfig::default() }
}

#[test]
fn a_model_that_is_a_fifth_too_high_is_named() {
    for latency_target in [None, "p95=1500us".parse().ok()] {
        let run = run(|config| {
            config.scheduler = SchedulerConfig { latency_target, ..stated(config, 120) };
        });
        let found = figures::of(&run, None);
        assert_eq!(found[0].kind, FindingKind::ModelTooFast, "{found:?}");
        let says = |percent: u32| found[0].what.contains(&format!("{percent} % too high"));
        assert!((16..=24).any(says), "{found:?}");
    }
}

#[test]
fn a_shard_that_stands_still_is_named() {
    let stalls = Stalls { one_in: 4_000, length: Duration::from_millis(200), shards: vec![1] };
    let run = run(|config| config.stalls = Some(stalls));
    assert_eq!(kinds(&run)[0], FindingKind::ShardStalled, "{:?}", figures::of(&run, None));
}

#[test]
fn a_run_over_time_is_as_many_requests_as_the_run() {
    let run = run(|config| config.warmup = Duration::ZERO);
    let series = run.series.as_ref().unwrap();
    assert!((20..=101).contains(&series.ends_seconds.len()), "{:?}", series.ends_seconds);
    let begins = std::iter::once(0.0).chain(series.ends_seconds.iter().copied());
    let lengths: Vec<f64> = series.ends_seconds.iter().zip(begins).map(|(e, b)| e - b).collect();
    for (job, result) in series.jobs.iter().zip(&run.classes) {
        let done: f64 = job.iops.iter().zip(&lengths).map(|(rate, length)| rate * length).sum();
        let requests = result.requests as f64;
        assert!((done / requests - 1.0).abs() < 0.001, "{done} of {requests}");
        assert!(!job.slowest.is_empty());
    }
    // and is written down and read again as it is
    let report = Report::Run(Box::new(run));
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    assert!(html("x", &report, None).unwrap().contains("Pending requests"));
}
