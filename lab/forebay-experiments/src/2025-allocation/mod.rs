//! What appends get where a file system allocates their extents one after the other.

mod groups;

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2025;
use crate::articles::y2025::placement::{ArrayLoad, MEMBER, Placement};
use crate::articles::y2025::traced_array::{CHUNK, MEMBERS, TracedArray};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::report::Report;
use crate::scenario::{job, run as simulate};
use groups::{Allocating, Allocation};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-allocation",
    alias: "S3-11",
    title: "Appends in busy allocation groups",
    source: y2025::SOURCE,
};

const SHARDS: u32 = 64;
/// Groups that the files of all shards are in.
const GROUPS: [u64; 4] = [1, 4, 16, 32];
/// What an allocation takes in microseconds: measured, and chosen.
const ALLOCATIONS: [(&str, u64); 2] = [("quiet", 18), ("busy", 90)];
/// KiB of an extent: that of an append, and of `extent_allocation_size_hint`.
const EXTENTS: [u64; 3] = [128, 1024, 32 << 10];
const SLICE_NANOS: u64 = 1_000_000;

/// GB/s of appends of 128 KiB.
fn gb_per_second(seed: Seed, allocation: Allocation, millis: u64) -> Result<f64, String> {
    let members = (0..MEMBERS).map(|_| seed.disk(MEMBER)).collect::<Result<Vec<_>, _>>()?;
    let load = ArrayLoad::published(SHARDS);
    let starts = Placement::Random.starts(seed, load);
    let (array, _) = TracedArray::new(CHUNK, members, starts, SLICE_NANOS)?;
    let disk = Box::new(Allocating::new(array, allocation));
    let mut config = seed.config(load.jobs()?, disk, millis);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    Ok(job(&simulate(config)?, "load")?.bandwidth_bytes_per_second as f64 / 1e9)
}

/// Extents of this size, in this number of groups.
fn allocation(extent_kib: u64, groups: u64, takes_us: u64) -> Allocation {
    Allocation { groups, takes_nanos: takes_us * 1000, extent: extent_kib << 10 }
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let measured = scale.seconds(50, 2000);
    let mut report = Report::default();
    report.parameter("disk", "RAID0 of 4, chunk 1 MB, 3.22 GB/s each (published for one disk)");
    report.parameter("load", "128 KiB appends, 64 shards x 8 fibers, no scheduler");
    for (name, takes) in ALLOCATIONS {
        report.parameter(&format!("an allocation in a {name} group"), format!("{takes} us"));
    }
    report.parameter("measured", format!("{measured} ms after 100 ms"));
    let title = "GB/s by the number of groups that the files are in (the members together: 12.9)";
    let mut table = Table::new(title, &["group", "extents, KiB", "1", "4", "16", "32"]);
    let mut chart = Chart::new("Appends by allocation groups", "groups", "GB/s");
    for (name, takes) in ALLOCATIONS {
        for extent in EXTENTS {
            let each = GROUPS.map(|groups| allocation(extent, groups, takes));
            let each = each.map(|allocation| gb_per_second(seed, allocation, measured));
            let each = each.into_iter().collect::<Result<Vec<_>, _>>()?;
            let mut row = vec![name.to_owned(), extent.to_string()];
            row.extend(each.iter().map(|gb| format!("{gb:.2}")));
            table.rows.push(row);
            let points = GROUPS.map(|groups| groups as f64).into_iter().zip(each).collect();
            chart = chart.with(&format!("{name}, {extent} KiB"), Mark::Line, points);
        }
    }
    report.tables.push(table);
    report.charts.push(chart);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn a_busy_group_limits_appends_and_large_extents_or_more_groups_do_not() {
        for seed in seeds() {
            let gb = |extent, groups, takes| {
                gb_per_second(seed, allocation(extent, groups, takes), 100).unwrap()
            };
            for (_, takes) in ALLOCATIONS {
                // one request of 128 KiB for each allocation
                let bound = 131.072 / takes as f64;
                let one = gb(128, 1, takes);
                assert!((one / bound - 1.0).abs() < 0.02, "{one}, {bound}");
                assert!(gb(32 << 10, 1, takes) > 12.7);
                assert!(gb(128, 16, takes) > 12.7);
            }
        }
    }
}
