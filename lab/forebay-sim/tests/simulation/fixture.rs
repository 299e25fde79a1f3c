//! A small disk for tests, and how to run a job file on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates, Time};
use forebay_load::job_file::JobFile;
use forebay_sim::disk::{Command, Completion, SimDisk, Status};
use forebay_sim::simulation::{Outcome, Simulation, SimulationConfig};

pub(crate) const MILLI: u64 = 1_000_000;

/// Serves one command after the other in what it costs, and answers `latency` later.
pub(crate) struct TestDisk {
    pub(crate) rates: DiskRates,
    pub(crate) latency: u64,
    /// From, to, and the percentage of its time that a command takes then.
    pub(crate) slow: Option<(u64, u64, u64)>,
    /// It stands still for the first, at the end of each time of the second length.
    pub(crate) stops: Option<(u64, u64)>,
    /// Nanoseconds in which it served something.
    pub(crate) busy: Arc<AtomicU64>,
    model: DiskModel,
    free_at: u64,
    finished: BinaryHeap<Reverse<(u64, u64)>>,
}

impl TestDisk {
    pub(crate) fn new(iops: u64, bandwidth: u64) -> Self {
        let rates = DiskRates {
            read_iops: iops,
            write_iops: iops,
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
        };
        Self {
            rates,
            latency: 50_000,
            slow: None,
            stops: None,
            busy: Arc::default(),
            model: DiskModel::from_rates(&rates).unwrap(),
            free_at: 0,
            finished: BinaryHeap::new(),
        }
    }
}

impl SimDisk for TestDisk {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let mut service = self.model.cost(command.op, command.len).units();
        let begin = self.free_at.max(now.as_nanos() * 64);
        if let Some((from, to, percent)) = self.slow
            && (from..to).contains(&(begin / 64))
        {
            service = service * percent / 100;
        }
        if let Some((still, each)) = self.stops
            && begin / 64 % each >= each - still
        {
            service += (each - begin / 64 % each) * 64;
        }
        self.free_at = begin + service;
        self.busy.fetch_add(service, Ordering::Relaxed);
        self.finished.push(Reverse((self.free_at.div_ceil(64) + self.latency, id)));
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        let &Reverse((at, id)) = self.finished.peek()?;
        let at = Time::from_nanos(at);
        (at <= now).then(|| self.finished.pop())?;
        Some(Completion { id, at, status: Status::Done })
    }

    fn next_event(&self) -> Option<Time> {
        self.finished.peek().map(|Reverse((at, _))| Time::from_nanos(*at))
    }

    fn rates(&self) -> DiskRates {
        self.rates
    }

    fn base_latency(&self) -> Duration {
        Duration::from_nanos(self.latency)
    }
}

pub(crate) fn jobs(text: &str, shards: u32) -> JobFile {
    JobFile::parse(&Source::new("jobs.yaml", text), None, shards).unwrap()
}

/// A second of `jobs` on `disk`, after a tenth of warm-up, with the invariants checked.
pub(crate) fn config(text: &str, shards: u32, disk: TestDisk) -> SimulationConfig {
    SimulationConfig {
        warmup: Duration::from_millis(100),
        duration: Duration::from_secs(1),
        check_invariants: true,
        ..SimulationConfig::new(jobs(text, shards), Box::new(disk))
    }
}

pub(crate) fn run(config: SimulationConfig) -> Outcome {
    Simulation::new(config).and_then(Simulation::run).unwrap_or_else(|error| panic!("{error}"))
}

/// One job of random reads.
pub(crate) fn reads(name: &str, shards: &str, depth: u32, size: &str, shares: u32) -> String {
    format!(
        "- name: {name}\n  type: randread\n  shards: {shards}\n  data_size: 1GB\n  \
         shard_info: {{parallelism: {depth}, reqsize: {size}, shares: {shares}}}\n"
    )
}
