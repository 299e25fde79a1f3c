//! What Prometheus would have scraped of a simulated run, every few seconds of virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay::metrics::{
    ClassSnapshot, Discards, DiskSnapshot, Engines, PageCacheReads, Snapshot, open_metrics,
};
use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates, Op};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::RunResult;
use forebay_sim::simulation::{Observation, Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

/// How often is scraped, in seconds.
pub(crate) const SCRAPE_SECONDS: u64 = 5;
/// How long a story is, in seconds: twice what the slowest rule wants to see, and to wait.
pub(crate) const STORY_SECONDS: u64 = 480;
/// When it goes wrong, in stories in which all is well at first.
pub(crate) const TROUBLE_SECONDS: u64 = 120;

/// 500 requests of 4 KiB per second.
pub(crate) const DISK: &str =
    "kind: ideal\nchannels: 1\nread_latency: 2ms\nwrite_latency: 2ms\nbandwidth: 100M\n";
const SHARDS: u32 = 2;
/// Bounds of histograms, from 16 us on.
const DOUBLINGS: u32 = 20;

/// A run, and what is wrong with it.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    /// What is to be said of it: the alerts that fire.
    pub(crate) fires: &'static [&'static str],
    /// The first verdict on it, if there is one in words: its kind, and some of them.
    pub(crate) says: Option<(&'static str, &'static str)>,
    /// The load, where it is not the usual one.
    pub(crate) jobs: Option<&'static str>,
    /// What goes wrong with the disk, in its file: from `TROUBLE` on.
    pub(crate) faults: &'static str,
    /// The rates for the scheduler, in hundredths of the disk's.
    pub(crate) figures_percent: u64,
    /// What else is wrong with the run,
    pub(crate) config: fn(&mut SimulationConfig),
    /// and with what is counted of it, at this second.
    pub(crate) counted: fn(&mut Snapshot, u64),
}

/// All is well.
pub(crate) const HEALTHY: Story = Story {
    name: "healthy",
    fires: &[],
    says: Some(("healthy", "")),
    jobs: None,
    faults: "",
    figures_percent: 100,
    config: |_| (),
    counted: |_, _| (),
};

/// A run in a story.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// Its file.
    pub(crate) disk: &'a str,
    pub(crate) seed: u64,
    /// Requests at a time of a class on a shard.
    pub(crate) parallelism: u32,
    /// When it goes wrong, if all is well at first,
    pub(crate) trouble_seconds: u64,
    /// and when it ends.
    pub(crate) seconds: u64,
}

/// The run that alerts are tried on.
pub(crate) const LONG: Run<'static> = Run {
    disk: DISK,
    seed: 1,
    parallelism: 4,
    trouble_seconds: TROUBLE_SECONDS,
    seconds: STORY_SECONDS,
};

/// More than the disk can do, by two classes on two shards.
const JOBS: &str = "
- {name: query, type: randread, shards: all, shard_info: {parallelism: ALL, shares: 300}}
- {name: bulk, type: randwrite, shards: all, shard_info: {parallelism: ALL, shares: 100}}
";

/// Values over time by series, as `promtool` reads them.
pub(crate) type Series = BTreeMap<String, Vec<String>>;

impl Story {
    /// Runs it for what Prometheus would have.
    pub(crate) fn series(&self) -> Series {
        let mut series = Series::new();
        let mut scrapes = 0;
        self.run(LONG, &mut |_, text| {
            add(&mut series, scrapes, text);
            scrapes += 1;
        });
        series
    }

    /// Runs it, and shows the text of each scrape with its second; the result, over time.
    pub(crate) fn run(&self, run: Run<'_>, scraped: &mut dyn FnMut(u64, &str)) -> RunResult {
        let simulation = Simulation::new(self.simulated(run)).unwrap();
        let period = Duration::from_secs(SCRAPE_SECONDS.min(run.trouble_seconds));
        let outcome = simulation.run_observed(period, &mut |observation| {
            let second = observation.at.as_nanos() / 1_000_000_000;
            let latencies = buckets(&observation);
            let mut snapshot = self.snapshot(run.disk, observation);
            (self.counted)(&mut snapshot, second);
            let text = open_metrics(snapshot);
            // those of a snapshot that nobody measured are empty
            let lines = text.lines().filter(|line| !line.contains("_latency_seconds_"));
            let text: String = lines.map(|line| format!("{line}\n")).collect();
            scraped(second, &text.replace("# EOF", &format!("{latencies}# EOF")));
        });
        outcome.unwrap().result
    }

    fn simulated(&self, run: Run<'_>) -> SimulationConfig {
        let jobs = self.jobs.unwrap_or(JOBS).replace("ALL", &run.parallelism.to_string());
        let jobs = JobFile::parse(&Source::new("jobs.yaml", &jobs), None, SHARDS).unwrap();
        let faults = self.faults.replace("TROUBLE", &format!("{}s", run.trouble_seconds));
        let disk = format!("{}{faults}", run.disk);
        let disk = DiskSpec::parse(&Source::new("disk.yaml", &disk)).unwrap().build(run.seed);
        let model = DiskModel::from_rates(&self.figures(disk.rates())).unwrap();
        let mut config = SimulationConfig {
            warmup: Duration::ZERO,
            duration: Duration::from_secs(run.seconds + 1),
            seed: run.seed,
            series: true,
            trace_buckets: Some(1),
            ..SimulationConfig::new(jobs, disk)
        };
        config.scheduler.model = Some(model);
        (self.config)(&mut config);
        config
    }

    /// The scheduler's figures for a disk with these rates.
    fn figures(&self, true_rates: DiskRates) -> DiskRates {
        let stated = |rate: u64| rate * self.figures_percent / 100;
        DiskRates {
            read_iops: stated(true_rates.read_iops),
            write_iops: stated(true_rates.write_iops),
            read_bandwidth: stated(true_rates.read_bandwidth),
            write_bandwidth: stated(true_rates.write_bandwidth),
        }
    }

    fn snapshot(&self, disk: &str, observed: Observation) -> Snapshot {
        let disk = DiskSpec::parse(&Source::new("disk.yaml", disk)).unwrap().build(1);
        let class = |(name, shares, counters)| ClassSnapshot {
            name,
            shares,
            counters,
            ..ClassSnapshot::default()
        };
        let mut disk = DiskSnapshot {
            name: "/data".into(),
            rates: Some(self.figures(disk.rates())),
            effective_goal_nanos: Some(observed.effective_goal.as_nanos_ceil()),
            window_nanos: Some(observed.window.as_nanos_ceil()),
            base_latency_nanos: u64::try_from(disk.base_latency().as_nanos()).ok(),
            load: observed.load,
            in_flight_nanos: observed.in_flight.as_nanos_ceil(),
            queues: observed.queues,
            turn_overdue_nanos: observed.turn_overdue_nanos,
            totals: observed.totals,
            engines: Engines { io_uring: observed.queues, ..Engines::default() },
            classes: observed.classes.into_iter().map(class).collect(),
            ..DiskSnapshot::default()
        };
        disk.traffic.device = "sim0".into();
        for (op, traffic) in
            [(Op::Read, &mut disk.traffic.read), (Op::Write, &mut disk.traffic.written)]
        {
            traffic.done = disk.classes.iter().map(|class| class.counters.bytes[op.index()]).sum();
            traffic.admitted = traffic.done;
        }
        let mut page_cache = PageCacheReads { class: "query".into(), ..Default::default() };
        page_cache.counters.hits = observed.at.as_nanos() / 1_000_000;
        page_cache.counters.misses = page_cache.counters.hits / 10;
        let mut discards = Discards::default();
        (discards.class, discards.files) = ("bulk".into(), 1);
        Snapshot {
            disks: vec![disk],
            page_cache: vec![page_cache],
            discards: vec![discards],
            uptime_nanos: observed.at.as_nanos(),
            ..Snapshot::default()
        }
    }
}

/// The histograms of a run, which the library counts otherwise than the simulator.
fn buckets(observed: &Observation) -> String {
    let mut text = String::new();
    for ((class, ..), latencies) in observed.classes.iter().zip(&observed.latencies) {
        for (place, latencies) in ["queue", "disk"].iter().zip(latencies) {
            let labels = format!("mountpoint=\"/data\",class=\"{class}\"");
            for doublings in 0..DOUBLINGS {
                let bound = 16_384 << doublings;
                let (le, count) = (bound as f64 / 1e9, latencies.count_within(bound));
                text += &format!(
                    "forebay_io_queue_{place}_latency_seconds_bucket{{le=\"{le}\",{labels}}} {count}\n"
                );
            }
            let all = latencies.count();
            text += &format!(
                "forebay_io_queue_{place}_latency_seconds_bucket{{le=\"+Inf\",{labels}}} {all}\n"
            );
        }
    }
    text
}

/// Adds what a scrape says.
fn add(series: &mut Series, scrapes: usize, text: &str) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (named, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = named.split_once('{').unwrap_or((named, "}"));
        let comma = if labels == "}" { "" } else { "," };
        let named = format!("{name}{{instance=\"sim\",job=\"forebay\"{comma}{labels}");
        let values = series.entry(named).or_default();
        values.resize(scrapes, String::from("_"));
        values.push(value.to_owned());
    }
}
