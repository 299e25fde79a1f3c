//! Trials of the window where completions say little: a process that nobody schedules uses the same
//! disk, or the disk acknowledges writes that it has yet to program.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Ceiling, Control, DiskRates, Op, Policy, Time};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::{ClassResult, RunResult};
use forebay_sim::disk::{Command, Completion, SimDisk};
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

/// Commands with this bit in their number are the neighbour's.
const NEIGHBOUR: u64 = 1 << 63;

/// A disk on which another process always has the same number of commands unfinished.
struct Shared {
    disk: Box<dyn SimDisk>,
    command: Command,
    /// The neighbour's commands that are yet to be submitted first.
    idle: u64,
    next: u64,
}

impl Shared {
    fn submit_neighbour(&mut self, now: Time) {
        self.next += 1;
        // Steps that are no power of two, so that all parts of the disk have the same load.
        let offset = self.next * 7_919 * self.command.len % (64 << 30);
        self.disk.submit(now, NEIGHBOUR | self.next, Command { offset, ..self.command });
    }
}

impl SimDisk for Shared {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        for _ in 0..std::mem::take(&mut self.idle) {
            self.submit_neighbour(now);
        }
        self.disk.submit(now, id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        loop {
            let completion = self.disk.poll_completion(now)?;
            if completion.id & NEIGHBOUR == 0 {
                return Some(completion);
            }
            self.submit_neighbour(now);
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.disk.next_event()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}

/// Random reads in a Poisson process at this part of what the disk does, in hundredths, and appends
/// without bound.
fn load(rates: &DiskRates, percent: u64) -> String {
    let rps = rates.read_iops * percent / 100 / 400;
    format!(
        "- {{name: reads, type: randread, shards: all, shard_info: {{parallelism: 100, reqsize: 4kB, shares: 100, \
         rps: {rps}}}, options: {{pause_distribution: poisson}}}}\n\
         - {{name: bulk, type: seqwrite, shards: all, shard_info: {{parallelism: 16, reqsize: 128kB, shares: 100}}}}\n"
    )
}

fn run(disk: Box<dyn SimDisk>, control: Control, percent: u64) -> RunResult {
    run_under(Ceiling::Never, disk, control, percent)
}

fn run_under(
    ceiling: Ceiling,
    disk: Box<dyn SimDisk>,
    control: Control,
    percent: u64,
) -> RunResult {
    let base_latency = Some(disk.base_latency());
    let jobs = load(&disk.rates(), percent);
    let jobs = JobFile::parse(&Source::new("jobs", &jobs), None, 4).unwrap();
    let mut config = SimulationConfig::new(jobs, disk);
    (config.warmup, config.duration) = (Duration::from_secs(4), Duration::from_secs(4));
    config.scheduler.policy =
        Some(Policy::PaceWindow { latency_goal: Duration::ZERO, base_latency });
    config.scheduler.control = control;
    config.scheduler.ceiling = ceiling;
    Simulation::new(config).unwrap().run().unwrap().result
}

fn class<'a>(result: &'a RunResult, name: &str) -> &'a ClassResult {
    result.classes.iter().find(|class| class.name == name).unwrap()
}

/// How much more the appends get by trials than by the figures, and how much longer the reads' 99th
/// percentile is.
fn gain(disk: impl Fn() -> Box<dyn SimDisk>) -> (f64, f64) {
    let [figures, trials] =
        [Control::Rates, Control::Adaptive].map(|control| run(disk(), control, 10));
    let bulk = |result: &RunResult| class(result, "bulk").bandwidth_bytes_per_second as f64;
    let p99 = |result: &RunResult| class(result, "reads").latency_us.p99;
    let reads = |result: &RunResult| class(result, "reads").iops;
    assert!(reads(&trials) >= 0.98 * reads(&figures));
    (bulk(&trials) / bulk(&figures), p99(&trials) / p99(&figures))
}

/// A larger window wins throughput from the neighbour, who has no window. It is still judged by what
/// that costs: 4.5 % of latency for 1 % of throughput, and a third more for noise.
#[test]
fn throughput_that_is_won_from_a_neighbour_costs_no_more_latency_than_other_throughput() {
    for name in ["i4i.2xlarge", "nvme-2022", "nvme-2018"] {
        for (op, len, depth) in [(Op::Read, 4 << 10, 16), (Op::Write, 128 << 10, 4)] {
            let (rate, p99) = gain(|| {
                let disk = DiskSpec::resolve(name).unwrap().build(1);
                let command = Command { op, offset: 0, len };
                Box::new(Shared { disk, command, idle: depth, next: 0 })
            });
            let most = 1.0 + 6.0 * (rate - 1.0).max(0.0);
            assert!(p99 <= most && rate >= 0.6, "{name}, {op:?}: rate {rate}, p99 {p99}");
        }
    }
}

/// The buffer takes writes faster than the dies program them: a larger window looks better until it
/// is full, and reads wait for the dies afterwards.
#[test]
fn writes_that_are_acknowledged_early_do_not_make_reads_slower() {
    for buffer in ["8MB", "256MB", "1GB"] {
        let text = format!(
            "kind: flash\ncapacity: 512GB\nread_command: 0\nwrite_command: 0\nbandwidth: \
             2000000000\ndies: 24\npage: 16kB\npage_read: 100us\nprogram_bandwidth: 400000000\n\
             suspend: 100us\nwrite_buffer: {buffer}\n"
        );
        let disk = || DiskSpec::parse(&Source::new("disk", &text)).unwrap().build(1);
        let (rate, p99) = gain(disk);
        assert!(rate >= 0.98 && p99 <= 0.4, "{buffer}: rate {rate}, p99 {p99}");
    }
}

/// Reads wait for whole programs of the dies while the buffer is full, and it is full for good where
/// writes come as fast as the dies program them. Once the disk is found to do no more than its figures
/// they bind, and the buffer drains.
#[test]
fn sustained_figures_during_a_burst_keep_reads_from_waiting_behind_a_full_write_buffer() {
    let text = "kind: flash\ncapacity: 64GB\nread_command: 2us\nwrite_command: 3us\nbandwidth: \
                3000000000\ndies: 64\npage: 16kB\npage_read: 60us\nprogram_bandwidth: 1000000000\n\
                program: 128kB\nwrite_buffer: 64MB\n";
    let disk = || DiskSpec::parse(&Source::new("disk", text)).unwrap().build(1);
    let [never, after_burst] = [Ceiling::Never, Ceiling::AfterBurst]
        .map(|ceiling| run_under(ceiling, disk(), Control::Adaptive, 1));
    let p99 = |result: &RunResult| class(result, "reads").latency_us.p99;
    let bulk = |result: &RunResult| class(result, "bulk").bandwidth_bytes_per_second as f64;
    let (latency, rate) = (p99(&after_burst) / p99(&never), bulk(&after_burst) / bulk(&never));
    assert!(latency <= 0.25 && rate >= 0.94, "p99 {latency}, rate {rate}");
}
