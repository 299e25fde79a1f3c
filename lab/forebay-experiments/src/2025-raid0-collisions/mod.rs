//! Whether shards that write at the same pace hit the same member of an array.

use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2025::SOURCE;
use crate::articles::y2025::placement::{ArrayLoad, MEMBER, Placement, measure, report};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::{job, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2025-raid0-collisions",
    alias: "S3-14",
    title: "RAID0: do requests collide on members?",
    source: SOURCE,
};

/// GB/s of one member alone under the load of eight shards.
fn one_disk(seed: Seed, millis: u64) -> Result<f64, String> {
    let mut config = seed.config(ArrayLoad::published(8).jobs()?, seed.disk(MEMBER)?, millis);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    Ok(job(&simulate(config)?, "load")?.bandwidth_bytes_per_second as f64 / 1e9)
}

/// Requests under way on each member while all files begin on the same one.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let (mut report, measured) = report(scale, ArrayLoad::published(8));
    let mut table = Table::new(
        "Files of all shards begin on the same member, no scheduler (published: one disk 3.220 GB/s, \
         the array 10.9)",
        &["shards", "GB/s", "one disk", "busiest: first ms", "first 10 ms", "later"],
    );
    let mut chart = Chart::new("The busiest member's part of the requests under way", "ms", "%");
    let one_disk = one_disk(seed, measured)?;
    report.figures.push(Figure::new("one disk", "GB/s", 3.22, one_disk));
    for shards in [8, 64] {
        let load = ArrayLoad::published(shards);
        let figures = measure(seed, Placement::Same, load, true, measured)?;
        report.figures.push(
            Figure::new(format!("the array, {shards} shards"), "GB/s", 10.9, figures.gb_per_second)
                .compared_with("four times one disk", 4.0 * one_disk),
        );
        table.row([
            shards.to_string(),
            format!("{:.1}", figures.gb_per_second),
            format!("{one_disk:.2}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    const ALL_GB: f64 = 4.0 * 3.22;

    #[test]
    fn files_that_begin_on_one_member_collide_there_and_yet_use_all() {
        for seed in seeds() {
            for seed in seeds() {
                let figures =
                    measure(seed, Placement::Same, ArrayLoad::published(64), true, 100).unwrap();
                assert!(figures.busiest_mean(0.0, 0.001) > 0.98);
                assert!(figures.gb_per_second > 0.995 * ALL_GB, "{}", figures.gb_per_second);
            }
            let one = one_disk(seed, 100).unwrap();
            assert!((one / 3.22 - 1.0).abs() < 0.001, "{one}");
        }
    }
}
