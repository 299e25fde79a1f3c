//! Whether shards that write at the same pace hit the same member of an array.

use std::sync::PoisonError;

use forebay_core::Policy;
use forebay_load::Rng;

use super::watched::{CHUNK, MEMBERS, Watched};
use super::{Report, Scale};
use crate::experiments::scenario::{
    SEED, config, disk, job, jobs, pace_window, percent, run as simulate,
};
use crate::experiments::{Chart, Mark, Table};
use crate::simulation::SchedulerConfig;

/// The published 3.22 GB/s of one disk.
const MEMBER: &str = "
kind: ideal
channels: 16
read_latency: 60us
write_latency: 20us
bandwidth: 3220000000
";
const LOAD: &str = "
- {name: load, type: append, shards: all, shard_info: {parallelism: 8, reqsize: 128kB}}
";
const SLICE_NANOS: u64 = 100_000;

/// Where files begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// All on the first member: the article's theory.
    Same,
    /// At random multiples of 1 MiB, as a filesystem puts them.
    Random,
    /// On the members in turn.
    InTurn,
}

const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::Same, "all on one member"),
    (Placement::Random, "at random"),
    (Placement::InTurn, "in turn"),
];

impl Placement {
    /// The first byte of the file of each shard.
    pub(super) fn starts(self, shards: u32) -> Vec<u64> {
        let mut random = Rng::new(SEED, &[]);
        let chunk = |shard: u32| match self {
            Self::Same => 0,
            Self::Random => random.below(MEMBERS as u64),
            Self::InTurn => u64::from(shard) % MEMBERS as u64,
        };
        (0..shards).map(chunk).map(|chunk| chunk * CHUNK).collect()
    }
}

/// What one run gave.
struct Figures {
    gb_per_second: f64,
    /// The busiest member's part of what is under way, over time in seconds.
    busiest: Vec<(f64, f64)>,
}

impl Figures {
    /// The mean of the busiest member's part from one time to another, in seconds.
    fn busiest_mean(&self, from: f64, to: f64) -> f64 {
        let within = self.busiest.iter().filter(|(at, _)| (from..to).contains(at));
        let (sum, count) =
            within.fold((0.0, 0.0), |(sum, count), (_, part)| (sum + part, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    }
}

fn figures(
    placement: Placement,
    (shards, open): (u32, bool),
    millis: u64,
) -> Result<Figures, String> {
    let members = (0..MEMBERS).map(|_| disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let (array, seen) = Watched::new(members, placement.starts(shards), SLICE_NANOS)?;
    let policy = if open { Policy::Open } else { pace_window(&array) };
    let mut config = config(jobs(LOAD, shards)?, Box::new(array), millis);
    config.scheduler = SchedulerConfig { policy: Some(policy), ..Default::default() };
    let outcome = simulate(config)?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let gb_per_second = job(&outcome, "load")?.bandwidth_bytes_per_second as f64 / 1e9;
    Ok(Figures { gb_per_second, busiest: seen.busiest_over_time() })
}

/// GB/s of one member alone under the load of eight shards.
fn one_disk(millis: u64) -> Result<f64, String> {
    let mut config = config(jobs(LOAD, 8)?, disk(MEMBER)?, millis);
    config.scheduler = SchedulerConfig { policy: Some(Policy::Open), ..Default::default() };
    Ok(job(&simulate(config)?, "load")?.bandwidth_bytes_per_second as f64 / 1e9)
}

fn report(scale: Scale, shows: &str, differs: &str) -> (Report, u64) {
    let measured = scale.seconds(200, 2000);
    let mut report =
        Report { shows: shows.to_owned(), differs: differs.to_owned(), ..Report::default() };
    report.parameter("disk", "RAID0 of 4, chunk 1 MB, 3.22 GB/s each (published for one disk)");
    report.parameter("load", "128 KiB appends, 8 fibers per shard");
    report.parameter("measured", format!("{measured} ms after 100 ms; members from the start"));
    (report, measured)
}

/// S3-14: requests under way on each member while all files begin on the same one.
pub(super) fn collisions(scale: Scale) -> Result<Report, String> {
    let (mut report, measured) = report(
        scale,
        "Shards that begin on the same member do collide, and most of what waits keeps waiting for \
         that member; but what it finishes keeps the others busy, so the bandwidth is that of all.",
        "The article's own simulator found requests shuffled evenly; members that all take exactly \
         as long keep the queue where it began. Its array reached 10.9 GB/s for another reason: \
         writes not aligned to the physical sector.",
    );
    let mut table = Table::new(
        "Files of all shards begin on the same member, no scheduler (published for one disk: 3.220)",
        &[
            "shards",
            "published GB/s",
            "GB/s",
            "one disk",
            "busiest: first ms",
            "first 10 ms",
            "later",
        ],
    );
    let mut chart = Chart::new("The busiest member's part of the requests under way", "ms", "%");
    for (shards, published) in [(8, "-"), (64, "10.9")] {
        let figures = figures(Placement::Same, (shards, true), measured)?;
        table.row([
            shards.to_string(),
            published.to_owned(),
            format!("{:.1}", figures.gb_per_second),
            format!("{:.2}", one_disk(measured)?),
            percent(figures.busiest_mean(0.0, 0.001)),
            percent(figures.busiest_mean(0.0, 0.01)),
            percent(figures.busiest_mean(0.1, 1.0)),
        ]);
        let shown = figures.busiest.iter().filter(|(at, _)| *at < 0.1);
        let points = shown.map(|(at, part)| (at * 1e3, part * 100.0)).collect();
        chart = chart.with(&format!("{shards} shards"), Mark::Line, points);
    }
    report.tables.push(table);
    report.charts.push(chart.with("evenly", Mark::Dashed, vec![(0.0, 25.0), (100.0, 25.0)]));
    Ok(report)
}

/// S3-15: the same for other places of the files.
pub(super) fn run(scale: Scale) -> Result<Report, String> {
    let (mut report, measured) = report(
        scale,
        "Where files begin does not matter while enough is in flight: the theory that shards favour \
         one member does not explain a loss. It does once a scheduler bounds what is in flight, \
         which then waits for one member while others idle.",
        "Published: 3.2 GB/s if the theory held, 10.9 GB/s measured, requests shuffled evenly in \
         a simulator. All members are equal here and all shards go at the same pace, so nothing \
         but their starts sets them apart; filesystems place files at random, where little is lost.",
    );
    let mut table = Table::new(
        "GB/s (the members together: 12.9), and the busiest member's part of what is in flight",
        &["files begin", "scheduler", "8 shards", "busiest", "64 shards", "busiest"],
    );
    for (placement, name) in PLACEMENTS {
        for (scheduler, open) in [("none", true), ("pace+window", false)] {
            let run = |shards| figures(placement, (shards, open), measured);
            let (few, many) = (run(8)?, run(64)?);
            table.row([
                name.to_owned(),
                scheduler.to_owned(),
                format!("{:.1}", few.gb_per_second),
                percent(few.busiest_mean(0.1, 1.0)),
                format!("{:.1}", many.gb_per_second),
                percent(many.busiest_mean(0.1, 1.0)),
            ]);
        }
    }
    report.tables.push(table);
    let mut chart = Chart::new("64 shards, no scheduler: the busiest member's part", "ms", "%");
    for (placement, name) in PLACEMENTS {
        let figures = figures(placement, (64, true), measured)?;
        let shown = figures.busiest.iter().filter(|(at, _)| *at < 0.05);
        let points = shown.map(|(at, part)| (at * 1e3, part * 100.0)).collect();
        chart = chart.with(name, Mark::Line, points);
    }
    report.charts.push(chart);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_GB: f64 = 4.0 * 3.22;

    #[test]
    fn files_that_begin_on_one_member_collide_there_and_yet_use_all() {
        let figures = figures(Placement::Same, (64, true), 100).unwrap();
        assert!(figures.busiest_mean(0.0, 0.001) > 0.9);
        assert!(figures.gb_per_second > 0.99 * ALL_GB, "{}", figures.gb_per_second);
        let one = one_disk(100).unwrap();
        assert!((one / 3.22 - 1.0).abs() < 0.01, "{one}");
    }

    #[test]
    fn files_at_random_are_nearly_even() {
        let figures = figures(Placement::Random, (64, true), 100).unwrap();
        // a quarter is even
        assert!(figures.busiest_mean(0.1, 1.0) < 0.35);
        assert!(figures.gb_per_second > 0.99 * ALL_GB, "{}", figures.gb_per_second);
    }

    #[test]
    fn a_window_can_wait_for_one_member() {
        let gb = |placement| figures(placement, (64, false), 100).unwrap().gb_per_second;
        assert!(gb(Placement::Random) > 0.97 * ALL_GB);
        assert!(gb(Placement::Same) < 0.7 * ALL_GB);
    }
}
