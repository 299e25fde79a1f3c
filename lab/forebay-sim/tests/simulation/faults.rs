//! What others get while a part of the disk fails or hangs, in slices of time.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::Time;
use forebay_sim::simulation::{Outcome, Period, SchedulerConfig, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::fixture::{MILLI, jobs, run};

/// 8000 reads of 4 KiB per second, 300 MB/s.
const DISK: &str = include_str!("../../presets/four-channels.yaml");
const SLICE_MS: u64 = 100;
/// From here on the bad range fails or hangs.
const FAULT_MS: u64 = 500;
/// And so long later the others have their rate again.
const BACK_MS: u64 = 200;
const END_MS: u64 = 2_000;

/// Two classes of equal shares that read a file each, on all of this many shards.
struct Readers {
    shards: u32,
    /// Requests of each class at once, on all shards together.
    good: u32,
    bad: u32,
    size: &'static str,
}

impl Readers {
    fn text(&self) -> String {
        let job = |name: &str, depth: u32| {
            format!(
                "- {{name: {name}, type: randread, shards: all, data_size: 64MB, \
                 shard_info: {{parallelism: {}, reqsize: {}, shares: 100}}}}\n",
                depth.div_ceil(self.shards),
                self.size,
            )
        };
        job("good", self.good) + &job("bad", self.bad)
    }

    fn run(&self, faults: &str, schedule: Vec<Period>) -> Outcome {
        let disk = format!("{DISK}faults:\n{faults}");
        let disk = DiskSpec::parse(&Source::new("disk.yaml", &disk)).unwrap().build(1);
        run(SimulationConfig {
            warmup: Duration::ZERO,
            duration: Duration::from_millis(END_MS),
            schedule,
            trace_buckets: Some((END_MS / SLICE_MS) as usize),
            // a larger window holds more of what hangs, and takes longer to give it up
            scheduler: SchedulerConfig::by_figures(),
            ..SimulationConfig::new(jobs(&self.text(), self.shards), disk)
        })
    }
}

impl std::fmt::Display for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shards, good, bad, size } = self;
        write!(f, "{shards} shards, {good} good and {bad} bad reads of {size} at once")
    }
}

/// All loads, from a few requests that fit into the window to many windows.
fn all_readers() -> impl Iterator<Item = Readers> {
    let depths = [(16, 8), (16, 16), (16, 64), (64, 64), (16, 256)];
    [1, 2, 4, 8].into_iter().flat_map(move |shards| {
        depths.into_iter().flat_map(move |(good, bad)| {
            ["4kB", "128kB"].map(|size| Readers { shards, good, bad, size })
        })
    })
}

/// What the good class completed per slice: the mean before the fault, then
/// every slice from when it must be back.
fn before_and_after(outcome: &Outcome) -> (f64, Vec<u64>) {
    let samples = &outcome.trace.as_ref().unwrap().classes[0].samples;
    let slices: Vec<u64> = samples.iter().map(|sample| sample.operations).collect();
    let at = |ms: u64| (ms / SLICE_MS) as usize;
    let before = &slices[at(FAULT_MS / 2)..at(FAULT_MS)];
    let mean = before.iter().sum::<u64>() as f64 / before.len() as f64;
    (mean, slices[at(FAULT_MS + BACK_MS)..].to_vec())
}

/// The least that the good class gets in a slice, as a part of what it had.
fn least(readers: &Readers, outcome: &Outcome, had: impl Fn(f64) -> f64) -> f64 {
    let (before, after) = before_and_after(outcome);
    let least = *after.iter().min().unwrap() as f64 / had(before);
    println!("{readers}: {before:.0} per slice before, then at least {least:.2} of it, {after:?}");
    least
}

#[test]
fn others_have_their_rate_200_ms_after_a_range_hangs_however_many_requests_hang() {
    let hang = format!("- {{kind: hang, from: {FAULT_MS}ms, offset: 64MB, length: 64MB}}\n");
    for readers in all_readers() {
        let least = least(&readers, &readers.run(&hang, Vec::new()), |before| before);
        assert!(least >= 0.9, "{readers}: {least:.2}");
    }
}

/// The bad class begins with the fault, so it takes its half.
#[test]
fn errors_cost_others_no_more_than_what_succeeds() {
    let errors = "- {kind: error, offset: 64MB, length: 64MB}\n";
    let from = Time::from_nanos(FAULT_MS * MILLI);
    let storm = || vec![Period { job: "bad".into(), from, to: None }];
    for readers in all_readers() {
        let outcome = readers.run(errors, storm());
        let least = least(&readers, &outcome, |alone| alone / 2.0);
        assert!(least >= 0.9, "{readers}: {least:.2}");
    }
}

/// After a hang the disk is slow, but everything comes back: what was given up
/// must not let more and more into it.
#[test]
fn a_disk_at_a_twentieth_of_its_speed_after_a_hang_does_not_fill_up() {
    let faults =
        "- {kind: hang, from: 300ms, to: 450ms}\n- {kind: slow, from: 300ms, percent: 5}\n";
    let readers = Readers { shards: 1, good: 128, bad: 128, size: "4kB" };
    let outcome = readers.run(faults, Vec::new());
    let in_disk = |class: usize| {
        let samples = &outcome.trace.as_ref().unwrap().classes[class].samples;
        samples[(1_000 / SLICE_MS) as usize..].iter().map(|sample| sample.in_flight_max).max()
    };
    // the window takes 15
    let most = in_disk(0).unwrap() + in_disk(1).unwrap();
    assert!(most <= 2 * 15, "{most} in the disk");
}
