//! Results for people: tables, and what stands below them.

use std::fmt::Write;

use super::model::{RegionInUse, Report, RunResult};
use super::table::{comparison_table, run_table};
use super::verdict::verdict;

/// What is printed of a run or a comparison, for people.
pub fn text(report: &Report) -> String {
    match report {
        Report::Run(run) => format!("{}\n{LEGEND}{}", run_table(run), lines(run)),
        Report::Comparison(comparison) => {
            let [_, scheduled] = &comparison.runs;
            let table = comparison_table(comparison);
            format!("{table}\n{LEGEND}{}\n{}", lines(scheduled), verdict(comparison))
        }
    }
}

const LEGEND: &str = "\
Latencies count from when a request should have begun. `queue` is the part before the scheduler
sent it to the disk, `disk` the part after that.
";

/// How requests got to the disk, and what the scheduler saw of it.
fn lines(run: &RunResult) -> String {
    let RunResult { topology, io_queues, .. } = run;
    let queues = if *io_queues == 1 { "queue" } else { "queues" };
    format!("Topology: {topology}, {io_queues} I/O {queues}.\n{}", disk_lines(run))
}

/// What the scheduler saw of the disk.
fn disk_lines(run: &RunResult) -> String {
    let Some(disk) = &run.disk else { return String::new() };
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let mut text = format!(
        "The scheduler spent {} of the disk's time ({} in the busiest second), with at most {} \
         requests in the disk.\n",
        percent(disk.consumption_mean),
        percent(disk.consumption_max),
        disk.in_flight_max
    );
    if let Some(RegionInUse { read_percentile, latency_us }) = run.properties.region {
        let _ = writeln!(
            text,
            "Mixes of reads and writes went by the region that keeps p{read_percentile} of reads \
             within {:.3} ms.",
            latency_us / 1e3
        );
    }
    let waits = disk.dispatch_blocked.iter().filter(|(reason, _)| *reason != "empty");
    let waits: Vec<String> =
        waits.map(|(reason, seconds)| format!("{reason} {seconds:.1}s")).collect();
    let _ = writeln!(text, "Requests waited, summed over shards, for\n{}.", waits.join(", "));
    text
}
