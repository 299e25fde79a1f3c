//! Whether it matters on which member of an array files begin.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2025::SOURCE;
use crate::articles::y2025::placement::{Placement, measure, report};
use crate::experiment::{Experiment, Setting};
use crate::report::Report;
use crate::scenario::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2025-raid0-placement",
    alias: "S3-15",
    title: "RAID0: where files begin",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::Same, "all on one member"),
    (Placement::Random, "at random"),
    (Placement::InTurn, "in turn"),
];

fn run(Setting { scale, seed }: Setting) -> Result<Report, String> {
    let (mut report, measured) = report(scale);
    let mut table = Table::new(
        "GB/s (the members together: 12.9), and the busiest member's part of the requests in flight",
        &["files begin", "scheduler", "8 shards", "busiest", "64 shards", "busiest"],
    );
    for (placement, name) in PLACEMENTS {
        for (scheduler, open) in [("none", true), ("pace+window", false)] {
            let run = |shards| measure(seed, placement, shards, open, measured);
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
        let figures = measure(seed, placement, 64, true, measured)?;
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
    use crate::tests::seeds;

    const ALL_GB: f64 = 4.0 * 3.22;

    #[test]
    fn files_at_random_are_nearly_even() {
        for seed in seeds() {
            let figures = measure(seed, Placement::Random, 64, true, 100).unwrap();
            // a quarter is even
            let busiest = figures.busiest_mean(0.1, 1.0);
            assert!(busiest < 0.42, "{busiest}");
            assert!(figures.gb_per_second > 0.99 * ALL_GB, "{}", figures.gb_per_second);
        }
    }

    #[test]
    fn a_window_can_wait_for_one_member() {
        for seed in seeds() {
            let gb = |placement| measure(seed, placement, 64, false, 100).unwrap().gb_per_second;
            assert!(gb(Placement::Random) > 0.99 * ALL_GB);
            assert!(gb(Placement::Same) < 0.43 * ALL_GB);
        }
    }
}
