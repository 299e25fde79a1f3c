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

/// What is simulated of the reads, from when to when: what a log of 30 s sends after 32.5 s, and of
/// one of each second two bursts, at 1.5 and 2.5 s. The reads are undisturbed otherwise.
fn window_millis(files: u64, sync_seconds: u64) -> (u64, u64) {
    match (files, sync_seconds) {
        (0, _) => (0, 1000),
        (..=8, 30) => (32_400, 33_000),
        (_, 30) => (31_000, 34_000),
        _ => (1000, 3000),
    }
}

/// The 95th and 99.9th percentile and the maximum of reads in microseconds; with the log each 30 s
/// the first is of those about a burst alone.
fn reads_during_writes(
    seed: Seed,
    files: u64,
    sync_seconds: u64,
    fibers: u64,
) -> Result<[f64; 3], String> {
    let (from, to) = window_millis(files, sync_seconds);
    let run = Run {
        deletes: low_extents(files),
        file_system: file_system(Duration::from_secs(sync_seconds))?,
        reads: READS,
        waiting_fibers: Some(fibers),
        seconds: to.div_ceil(1000),
        seed,
    };
    let mut config = run.config(disk_spec()?.build(seed.0))?;
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    config.schedule = vec![Period { job: String::from("reads"), from: at(from), to: Some(at(to)) }];
    let outcome = simulate(config)?;
    let reads = &job(&outcome, "reads")?.latency_us;
    // one in a thousand of 30 s, of what is simulated of them
    let p999 = match to - from {
        600 => reads.p95,
        3000 => reads.p99,
        _ => reads.p999,
    };
    Ok([reads.p95, p999, reads.max])
}

fn measured(seed: Seed, rows: &[Row]) -> Result<Vec<[f64; 3]>, String> {
    let runs: Vec<(u64, u64)> = rows.iter().flat_map(|row| [(row.0, 30), (row.0, 1)]).collect();
    side_by_side(&runs, |&(files, sync_seconds)| {
        reads_during_writes(seed, files, sync_seconds, FIBERS)
    })
}

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    let mut report = Report::default();
    report.parameter("disk", DISK);
    report.parameter("load", "reads of 512 bytes, 200,000/s; files of 128 MB (32 MB extents)");
    report.parameter(
        "measured",
        "of the log each 30 s the second burst, of the log each second two of them",
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
    use crate::tests::{SEED, seeds};

    #[test]
    fn of_a_log_of_each_second_reads_do_not_depend_on_their_fibers() {
        for seed in seeds() {
            let [half, all, twice] = [FIBERS / 2, FIBERS, 2 * FIBERS]
                .map(|fibers| reads_during_writes(seed, 32, 1, fibers).unwrap()[1]);
            for other in [half, twice] {
                assert!((other / all - 1.0).abs() < 0.08, "{half} {all} {twice}");
            }
        }
    }

    #[test]
    fn late_reads_are_as_late_as_published_however_long_a_burst_is() {
        let rows = [ROWS[1], ROWS[5]];
        let all = measured(SEED, &rows).unwrap();
        for (at, ours) in all.iter().enumerate() {
            let (files, published) = rows[at / 2];
            let [_, p999, max] = published[at % 2].map(f64::from);
            for (published, ours) in [(p999, ours[1]), (max, ours[2])] {
                let off = (ours / published).max(published / ours);
                assert!(off <= 2.6, "{files}, period {}: {ours} of {published}", at % 2);
            }
        }
        // with the log each second it is many deletes that most percentiles see
        assert!(all[3][0] > 4.0 * all[1][0], "{all:?}");
    }
}
