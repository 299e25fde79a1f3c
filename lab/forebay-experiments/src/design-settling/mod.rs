//! How long trials take to find the window after a change.

use core::time::Duration;

use forebay_core::{Control, DiskRates, FixedControl, GroupConfig, IoGroup, Policy, Time};
use forebay_report::Table;
use forebay_sim::disk::{Fault, SimDisk};
use forebay_sim::simulation::{Period, SchedulerConfig, Trace};
use forebay_sim::spec::DiskSpec;

use crate::experiment::{Experiment, Scale, Seed, Setting};
use crate::report::Report;
use crate::scenario::{jobs, millis, model, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "design-settling",
    alias: "D6-settling",
    title: "After a change: how long trials take to find the window",
    source: "docs/decisions/0007-window-by-trials.md",
    about: include_str!("about.txt"),
    known: "",
    run,
};

const SHARDS: u32 = 2;
const CHANGED_AT: Duration = Duration::from_millis(1500);
/// Of a shard, each with its part of the reads per second.
const FIBERS: u64 = 32;
const BIN: Duration = Duration::from_millis(100);
/// Rates and latencies of the new state are means over its last second.
const SETTLED_BINS: usize = 10;
/// Windows of the constants, in halves of an effective goal.
const HALF_GOALS: [u32; 5] = [1, 2, 4, 8, 16];

const DISKS: [&str; 6] = [
    "i3en.3xlarge",
    "gcp-pd-SSD-2TB",
    "samsung-970-pro",
    "nvme-2018",
    "nvme-2022",
    "four-channels",
];

/// What changes after 1.5 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    WritesJoin,
    WritesLeave,
    ManyMoreClients,
    DiskSlows,
    DiskIsBack,
}

const CHANGES: [(Change, &str); 5] = [
    (Change::WritesJoin, "writes join reads"),
    (Change::WritesLeave, "writes leave"),
    (Change::ManyMoreClients, "8 x the readers"),
    (Change::DiskSlows, "the disk has 30 % of its speed"),
    (Change::DiskIsBack, "the disk is as fast as before"),
];

impl Change {
    /// Reads at a part of what the disk does, and writes without bound; or readers without bound.
    fn load(self, rates: &DiskRates) -> String {
        let percent = match self {
            Self::DiskSlows | Self::DiskIsBack => 5,
            _ => 20,
        };
        let rps = rates.read_iops * percent / 100 / u64::from(SHARDS) / FIBERS;
        match self {
            Self::ManyMoreClients => String::from(
                "- {name: reads, type: randread, shards: all, data_size: 8GB, \
                 shard_info: {parallelism: 8, reqsize: 4kB, shares: 100}}\n\
                 - {name: more, type: randread, shards: all, data_size: 8GB, \
                 shard_info: {parallelism: 56, reqsize: 4kB, shares: 700}}\n",
            ),
            _ => format!(
                "- {{name: reads, type: randread, shards: all, data_size: 8GB, shard_info: \
                 {{parallelism: {FIBERS}, reqsize: 4kB, shares: 100, rps: {rps}}}}}\n\
                 - {{name: more, type: overwrite, shards: all, data_size: 8GB, shard_info: \
                 {{parallelism: 16, reqsize: 128kB, shares: 100}}}}\n"
            ),
        }
    }

    fn schedule(self) -> Vec<Period> {
        let at = Time::from_nanos(CHANGED_AT.as_nanos() as u64);
        let job = String::from("more");
        match self {
            Self::WritesJoin | Self::ManyMoreClients => vec![Period { job, from: at, to: None }],
            Self::WritesLeave => vec![Period { job, from: Time::ZERO, to: Some(at) }],
            Self::DiskSlows | Self::DiskIsBack => Vec::new(),
        }
    }

    fn faults(self) -> Vec<Fault> {
        match self {
            Self::DiskSlows => vec![Fault::Slow { from: CHANGED_AT, to: None, percent: 30 }],
            Self::DiskIsBack => {
                vec![Fault::Slow { from: Duration::ZERO, to: Some(CHANGED_AT), percent: 30 }]
            }
            _ => Vec::new(),
        }
    }
}

/// Disk time per second, and the mean latency of reads from enqueueing in microseconds, in each bin
/// after the change.
fn bins(trace: &Trace) -> Vec<(f64, f64)> {
    let changed = (CHANGED_AT.as_nanos() / BIN.as_nanos()) as usize;
    let slices = trace.classes.iter().map(|class| class.samples.len()).max().unwrap_or(0);
    let bin = |slice: usize| {
        let samples = trace.classes.iter().filter_map(|class| class.samples.get(slice));
        let disk_nanos: u64 = samples.map(|sample| sample.disk_time.as_nanos_ceil()).sum();
        let reads = trace.classes.first().and_then(|class| class.samples.get(slice));
        let micros = reads.map_or(0.0, |reads| (reads.queue.mean + reads.disk.mean) / 1e3);
        (disk_nanos as f64 / BIN.as_nanos() as f64, micros)
    };
    (changed..slices).map(bin).collect()
}

/// Means of the last bins.
fn settled(bins: &[(f64, f64)]) -> (f64, f64) {
    let last = &bins[bins.len().saturating_sub(SETTLED_BINS)..];
    let count = last.len().max(1) as f64;
    let sum = last.iter().fold((0.0, 0.0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
    (sum.0 / count, sum.1 / count)
}

/// Trials or constants, without a stated latency goal.
fn policy(disk: &dyn SimDisk) -> Policy {
    Policy::PaceWindow { latency_goal: Duration::ZERO, base_latency: Some(disk.base_latency()) }
}

/// The bins of a run.
fn run_of(
    seed: Seed,
    disk: &str,
    change: Change,
    control: Control,
    bins_after: u64,
) -> Result<Vec<(f64, f64)>, String> {
    let spec = DiskSpec::resolve(disk).map_err(|error| error.to_string())?;
    let disk = spec.with_faults(change.faults()).build(seed.0);
    let scheduler =
        SchedulerConfig { policy: Some(policy(&*disk)), control, ..SchedulerConfig::default() };
    let length = CHANGED_AT + BIN * bins_after as u32;
    let load = jobs(&change.load(&disk.rates()), SHARDS)?;
    let mut config = seed.config(load, disk, length.as_millis() as u64);
    config.warmup = Duration::ZERO;
    config.schedule = change.schedule();
    config.trace_buckets = Some((length.as_nanos() / BIN.as_nanos()) as usize);
    config.scheduler = scheduler;
    let outcome = simulate(config)?;
    Ok(bins(outcome.trace.as_ref().ok_or("the run was not traced")?))
}

/// Rate and latency of the best constant window after the change.
fn best_constant(
    seed: Seed,
    disk: &str,
    change: Change,
    bins_after: u64,
) -> Result<(f64, f64), String> {
    let built = seed.preset(disk)?;
    let group = IoGroup::new(GroupConfig::new(model(&built.rates())?, policy(&*built)));
    let goal = Duration::from_nanos(group.effective_goal().as_nanos_ceil());
    let mut seen = Vec::new();
    for halves in HALF_GOALS {
        let window = goal * halves / 2;
        let control = Control::Fixed(FixedControl { window, pace_permille: None });
        seen.push(settled(&run_of(seed, disk, change, control, bins_after)?));
    }
    let most = seen.iter().map(|seen| seen.0).fold(0.0, f64::max);
    let near = seen.into_iter().filter(|seen| seen.0 >= 0.97 * most);
    near.min_by(|a, b| a.1.total_cmp(&b.1)).ok_or_else(|| String::from("no constant ran"))
}

/// After how many milliseconds two bins in a row are as good as `best`; `None` if none are.
fn settles_after(bins: &[(f64, f64)], best: (f64, f64)) -> Option<u64> {
    let is_good = |bin: &(f64, f64)| bin.0 >= 0.9 * best.0 && bin.1 <= 1.2 * best.1;
    let first = bins.windows(2).position(|two| two.iter().all(is_good))?;
    Some(first as u64 * BIN.as_millis() as u64)
}

/// Makes all changes on all disks.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let bins_after = match scale {
        Scale::Short => 15,
        Scale::Full => 25,
    };
    let (disks, seeds) = match scale {
        // one of few requests per second
        Scale::Short => (&DISKS[3..4], 1),
        Scale::Full => (&DISKS[..], 3),
    };
    let mut report = Report::default();
    report.parameter("reads", "4 KiB at 20 % of what the disk does, 5 % where its speed changes");
    report.parameter("writes", "128 KiB, 16 in flight per shard; 2 shards");
    report.parameter("seeds", seeds);
    let mut table = Table::new(
        "From the change until two bins in a row are near the best constant",
        &["disk", "change", "median", "longest", "rate", "reads' mean", "best constant's"],
    );
    for disk in disks {
        for (index, &(change, name)) in CHANGES.iter().enumerate() {
            let best = best_constant(seed, disk, change, bins_after)?;
            let mut after = Vec::new();
            let mut last = (0.0, 0.0);
            for seed in seed.and_following(seeds) {
                let bins = run_of(seed, disk, change, Control::Adaptive, bins_after)?;
                last = settled(&bins);
                after.push(settles_after(&bins, best).unwrap_or(u64::MAX));
            }
            after.sort_unstable();
            let in_words = |millis: u64| match millis {
                u64::MAX => String::from("never"),
                millis => format!("{millis} ms"),
            };
            table.row([
                if index == 0 { (*disk).to_owned() } else { String::new() },
                name.to_owned(),
                in_words(after[after.len() / 2]),
                in_words(after[after.len() - 1]),
                format!("{:.2}", last.0 / best.0),
                millis(last.1),
                millis(best.1),
            ]);
        }
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn on_a_fast_disk_the_window_is_found_within_a_fifth_of_a_second() {
        for seed in seeds() {
            for change in [Change::WritesJoin, Change::DiskSlows] {
                let best = best_constant(seed, DISKS[2], change, 15).unwrap();
                let bins = run_of(seed, DISKS[2], change, Control::Adaptive, 15).unwrap();
                let after = settles_after(&bins, best);
                assert!(after.is_some_and(|millis| millis <= 200), "{change:?}: {after:?}");
            }
        }
    }
}
