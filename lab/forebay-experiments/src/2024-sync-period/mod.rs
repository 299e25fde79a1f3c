//! Tables 4 and 5: 200,000 reads per second, and how often the log is written.

use core::time::Duration;

use forebay_core::Time;
use forebay_report::Table;
use forebay_sim::simulation::Period;

use crate::articles::y2024::deletes::{Run, disk_spec, file_system};
use crate::articles::y2024::tables::low_extents;
use crate::articles::y2024::{DISK, SOURCE};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;
use crate::scenario::{job, millis, run as simulate, side_by_side};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-sync-period",
    alias: "S4-8",
    title: "Reads alongside deletes, by how often the log is written",
    source: SOURCE,
};

/// A row's unlinks per second, and the published 95th and 99.9th percentiles and maxima in us: with
/// the log each 30 s, and each second.
type Row = (u64, [[u32; 3]; 2]);
const ROWS: [Row; 6] = [
    (0, [[516, 1017, 1605], [679, 993, 1502]]),
    (4, [[441, 23_934, 50_168], [450, 2727, 6193]]),
    (8, [[810, 122_310, 166_656], [787, 6872, 11_765]]),
    (16, [[541, 158_441, 186_335], [476, 8943, 12_384]]),
    (32, [[542, 236_702, 281_954], [463, 17_455, 23_028]]),
    (64, [[435, 165_573, 183_962], [10_733, 32_930, 39_354]]),
];
const PERIODS: [&str; 2] = ["30 s", "1 s"];
const READS: u64 = 200_000;
/// Not published: fitted to the last row.
const FIBERS: u64 = 11_610;
/// The reads about the second burst, and when the run ends.
const WINDOW: (u64, u64) = (31, 34);
const SECONDS_OF_EACH_SECOND: u64 = 4;

/// The 95th and 99.9th percentile and the maximum of reads in microseconds; with the log each 30 s
/// the first is of those about a burst alone.
fn reads_during_writes(seed: Seed, files: u64, sync_seconds: u64) -> Result<[f64; 3], String> {
    let long = sync_seconds == 30;
    let seconds = if long { 62 } else { SECONDS_OF_EACH_SECOND };
    let file_system = file_system(Duration::from_secs(sync_seconds))?;
    let run = Run {
        deletes: low_extents(files),
        file_system,
        reads: READS,
        waiting_fibers: Some(FIBERS),
        seconds,
        seed,
    };
    let mut config = run.config(disk_spec()?.build(seed.0))?;
    if long {
        let at = |second: u64| Time::from_nanos(second * 1_000_000_000);
        let (from, to) = (at(WINDOW.0), Some(at(WINDOW.1)));
        config.schedule = vec![Period { job: String::from("reads"), from, to }];
    }
    let outcome = simulate(config)?;
    let reads = &job(&outcome, "reads")?.latency_us;
    let p999 = if long { reads.p99 } else { reads.p999 };
    Ok([reads.p95, p999, reads.max])
}

fn measured(seed: Seed, rows: &[Row]) -> Result<Vec<[f64; 3]>, String> {
    let runs: Vec<(u64, u64)> = rows.iter().flat_map(|row| [(row.0, 30), (row.0, 1)]).collect();
    side_by_side(&runs, |&(files, sync_seconds)| reads_during_writes(seed, files, sync_seconds))
}

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    let mut report = Report::default();
    report.parameter("disk", DISK);
    report.parameter("load", "reads of 512 bytes, 200,000/s; files of 128 MB (32 MB extents)");
    report.parameter(
        "measured",
        format!("62 s with the log each 30 s; {SECONDS_OF_EACH_SECOND} s with the log each second"),
    );
    report.parameter("reads' fibers", "11,610, each of which waits for its read: fitted");
    let columns =
        ["unlinks/s", "log each", "p95, published", "p95", "p99.9, published", "p99.9", "max"];
    let mut table = Table::new("Reads alongside unlinked files", &columns);
    for (at, [p95, p999, max]) in measured(seed, &ROWS)?.iter().enumerate() {
        let Some((files, published)) = ROWS.get(at / 2) else { continue };
        let period = at % 2;
        let [published_p95, published_p999, _] = published[period].map(f64::from);
        let mut figure = |of: &str, published: f64, ours: f64| {
            let name = format!("{files} unlinks/s, log each {}: {of}", PERIODS[period]);
            let figure = Figure::new(name, "ms", published / 1e3, ours / 1e3);
            let column = format!("{} {of}", PERIODS[period]);
            report.figures.push(figure.at(column, at / 2, ROWS.len()));
        };
        if period == 1 {
            figure("p95", published_p95, *p95);
        }
        figure("p99.9", published_p999, *p999);
        table.row([
            files.to_string(),
            PERIODS[period].to_owned(),
            millis(published_p95),
            if period == 0 { String::from("-") } else { millis(*p95) },
            millis(published_p999),
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
    use crate::tests::SEED;

    #[test]
    fn late_reads_are_as_late_as_published_however_long_a_burst_is() {
        let rows = [ROWS[1], ROWS[5]];
        let all = measured(SEED, &rows).unwrap();
        for (at, ours) in all.iter().enumerate() {
            let (files, published) = rows[at / 2];
            let [_, p999, max] = published[at % 2].map(f64::from);
            for (published, ours) in [(p999, ours[1]), (max, ours[2])] {
                let off = (ours / published).max(published / ours);
                assert!(off <= 2.5, "{files}, period {}: {ours} of {published}", at % 2);
            }
        }
        // with the log each second it is many deletes that most percentiles see
        assert!(all[3][0] > 4.0 * all[1][0], "{all:?}");
    }
}
