//! Sequential streams on a disk that seeks: what goes on where another ended is priced by its
//! bytes, and shares hold alongside random reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_core::{Control, DiskRates, Op, Policy, Time};
use forebay_sim::disk::{Command, Completion, SimDisk};
use forebay_sim::simulation::{Outcome, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::fixture::{jobs, run};

/// A disk that serves one command at a time, and how long it spends on reads, and on the rest.
struct Metered {
    disk: Box<dyn SimDisk>,
    spent: Arc<[AtomicU64; 2]>,
    /// Under way, with when they came.
    commands: Vec<(u64, Time, Op)>,
    free_at: Time,
}

impl Metered {
    fn hard_disk() -> Self {
        let disk = DiskSpec::resolve("hdd-7200rpm").unwrap().build(1);
        Self { disk, spent: Arc::default(), commands: Vec::new(), free_at: Time::ZERO }
    }
}

impl SimDisk for Metered {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.commands.push((id, now, command.op));
        self.disk.submit(now, id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        let done = self.disk.poll_completion(now)?;
        let place = self.commands.iter().position(|&(id, ..)| id == done.id).unwrap();
        let (_, came, op) = self.commands.swap_remove(place);
        let nanos = done.at.nanos_since(self.free_at.max(came));
        self.spent[usize::from(op != Op::Read)].fetch_add(nanos, Ordering::Relaxed);
        self.free_at = done.at;
        Some(done)
    }

    fn next_event(&self) -> Option<Time> {
        self.disk.next_event()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn seeks(&self) -> bool {
        self.disk.seeks()
    }

    fn flush(&self) -> Option<Duration> {
        self.disk.flush()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}

/// What comes of it, and which part of its time the disk spent on writes, and on reads.
fn on_a_hard_disk(text: &str, shards: u32, policy: Option<Policy>) -> (Outcome, [f64; 2]) {
    let disk = Metered::hard_disk();
    let spent = Arc::clone(&disk.spent);
    let mut config = SimulationConfig {
        warmup: Duration::from_secs(1),
        duration: Duration::from_secs(20),
        check_invariants: true,
        trace_buckets: Some(21),
        capacity: Some(1862 << 30),
        ..SimulationConfig::new(jobs(text, shards), Box::new(disk))
    };
    config.scheduler.policy = policy;
    config.scheduler.control = Control::Rates;
    let outcome = run(config);
    let [reads, writes] = &*spent;
    let part = |spent: &AtomicU64| spent.load(Ordering::Relaxed) as f64 / 21e9;
    (outcome, [part(writes), part(reads)])
}

fn appends(shards: &str, depth: u32, size: &str, shares: u32) -> String {
    format!(
        "- name: appends\n  type: append\n  shards: {shards}\n  \
         shard_info: {{parallelism: {depth}, reqsize: {size}, shares: {shares}}}\n"
    )
}

fn reads(depth: u32, range: &str, shares: u32) -> String {
    format!(
        "- name: reads\n  type: randread\n  shards: [0]\n  data_size: {range}\n  \
         shard_info: {{parallelism: {depth}, reqsize: 4kB, shares: {shares}}}\n"
    )
}

fn bandwidth(outcome: &Outcome) -> f64 {
    outcome.result.classes.iter().map(|class| class.bandwidth_bytes_per_second as f64).sum()
}

#[test]
fn streams_alone_have_the_bandwidth_of_a_hard_disk() {
    for (shards, count) in [("[0]", 1), ("[0, 1]", 2), ("[0, 1, 2, 3]", 4)] {
        for (size, depth) in [("4kB", 1), ("128kB", 1), ("128kB", 8), ("128kB", 64), ("2MB", 4)] {
            let text = appends(shards, depth, size, 100);
            let (free, _) = on_a_hard_disk(&text, count, Some(Policy::Unlimited));
            let (held, _) = on_a_hard_disk(&text, count, None);
            let part = bandwidth(&held) / bandwidth(&free);
            println!(
                "{size} x {depth} on {shards}: {part:.3} of {:.1} MB/s",
                bandwidth(&free) / 1e6
            );
            // several of which each fills the window take turns in it: what the disk has of
            // one is done before it gets more
            let take_turns = count > 1 && (size == "2MB" || depth == 64);
            assert!(part >= if take_turns { 0.40 } else { 0.95 }, "{size} x {depth} on {shards}");
        }
    }
}

#[test]
fn an_appender_and_random_reads_share_a_hard_disk_by_its_time() {
    for (depth, size) in [(8, "128kB"), (64, "128kB"), (8, "4kB"), (4, "2MB")] {
        for (range, reads_depth) in [("500GB", 8), ("500GB", 64), ("10GB", 8)] {
            for shares in [[100, 100], [300, 100], [100, 300]] {
                let text =
                    appends("[0]", depth, size, shares[0]) + &reads(reads_depth, range, shares[1]);
                let (outcome, spent) = on_a_hard_disk(&text, 1, None);
                let charged = charged(&outcome);
                let part = f64::from(shares[0]) / f64::from(shares[0] + shares[1]);
                let got = charged[0] / (charged[0] + charged[1]);
                println!(
                    "{size} x {depth} alongside {reads_depth} reads in {range}, {shares:?}: {:.1} MB/s \
                     and {:.0} reads/s, charged {charged:.3?}, the disk spent {spent:.3?}",
                    outcome.result.classes[0].bandwidth_bytes_per_second as f64 / 1e6,
                    outcome.result.classes[1].iops,
                );
                assert!((got - part).abs() <= 0.02, "{got} of {part}");
                // reads of a small range take less than their figure, by which the pace goes
                assert!(spent[0] + spent[1] > 0.9, "{spent:?}");
                assert!((charged[0] + charged[1]) > 0.6, "{charged:?}");
            }
        }
    }
}

/// The part of the disk's time that each class was charged.
fn charged(outcome: &Outcome) -> [f64; 2] {
    let classes = &outcome.trace.as_ref().unwrap().classes;
    [0, 1].map(|class: usize| {
        let samples = classes[class].samples.iter().skip(1);
        samples.map(|sample| sample.disk_time.units() as f64).sum::<f64>() / 64e9 / 20.0
    })
}
