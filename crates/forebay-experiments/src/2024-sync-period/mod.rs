//! Tables 4 and 5: 200,000 reads per second, and how often the log is written.

use core::time::Duration;

use forebay_core::Time;
use forebay_report::Table;
use forebay_sim::simulation::Period;

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::deletes::{Run, disk_spec, file_system, side_by_side};
use crate::articles::y2024::tables::low_extents;
use crate::experiment::{Experiment, Scale};
use crate::report::Report;
use crate::scenario::{SEED, job, millis, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2024-sync-period",
    alias: "S4-8",
    title: "Reads beside deletes, by how often the log is written",
    source: SOURCE,
    about: include_str!("about.txt"),
    run,
};

/// Unlinks per second, and the published 99.9th percentiles in us: each 30 s, each second.
const ROWS: [(u64, [u32; 2]); 6] = [
    (0, [1017, 993]),
    (4, [23_934, 2727]),
    (8, [122_310, 6872]),
    (16, [158_441, 8943]),
    (32, [236_702, 17_455]),
    (64, [165_573, 32_930]),
];
/// Without deletes, few, and many.
const SHORT: [usize; 3] = [0, 1, 5];
const READS: u64 = 200_000;
/// The reads about the second burst, and when the run ends.
const WINDOW: (u64, u64) = (31, 34);
const SECONDS_OF_EACH_SECOND: u64 = 4;

/// The 99.9th percentile and the maximum of reads in microseconds.
fn reads_beside(files: u64, sync_seconds: u64) -> Result<[f64; 2], String> {
    let long = sync_seconds == 30;
    let seconds = if long { 62 } else { SECONDS_OF_EACH_SECOND };
    let file_system = file_system(Duration::from_secs(sync_seconds))?;
    let run = Run { deletes: low_extents(files), file_system, reads: READS, seconds, seed: SEED };
    let mut config = run.config(disk_spec()?.build(SEED))?;
    if long {
        let at = |second: u64| Time::from_nanos(second * 1_000_000_000);
        let (from, to) = (at(WINDOW.0), Some(at(WINDOW.1)));
        config.schedule = vec![Period { job: String::from("reads"), from, to }];
    }
    let outcome = simulate(config)?;
    let reads = &job(&outcome, "reads")?.latency_us;
    Ok([if long { reads.p99 } else { reads.p999 }, reads.max])
}

fn measured(rows: &[(u64, [u32; 2])]) -> Result<Vec<[f64; 2]>, String> {
    let runs: Vec<(u64, u64)> = rows.iter().flat_map(|row| [(row.0, 30), (row.0, 1)]).collect();
    side_by_side(&runs, |&(files, sync_seconds)| reads_beside(files, sync_seconds))
}

fn run(scale: Scale) -> Result<Report, String> {
    let rows: Vec<_> = match scale {
        Scale::Short => SHORT.iter().filter_map(|&row| ROWS.get(row)).copied().collect(),
        Scale::Full => ROWS.to_vec(),
    };
    let mut report = Report::default();
    report.parameter("disk", "examples/i3-xfs.yaml");
    report.parameter("load", "reads of 512 bytes, 200,000/s; files of 128 MB (32 MB extents)");
    report.parameter(
        "measured",
        format!("62 s with the log each 30 s; {SECONDS_OF_EACH_SECOND} s with the log each second"),
    );
    let columns = ["unlinks/s", "log each", "published p99.9", "p99.9", "max"];
    let mut table = Table::new("Reads beside unlinked files", &columns);
    for (at, [p999, max]) in measured(&rows)?.iter().enumerate() {
        let Some((files, published)) = rows.get(at / 2) else { continue };
        let period = at % 2;
        table.row([
            files.to_string(),
            if period == 0 { "30 s" } else { "1 s" }.to_owned(),
            millis(f64::from(published[period])),
            millis(*p999),
            millis(*max),
        ]);
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_each_half_minute_is_felt_more_than_one_each_second() {
        let [long, short] = [30, 1].map(|seconds| reads_beside(4, seconds).unwrap()[0]);
        assert!(long > 3.0 * short, "{long} and {short}");
        assert!(long > 10_000.0, "{long}");
    }
}
