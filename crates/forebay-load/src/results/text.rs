//! Results for people: tables, and what stands below them.

use std::fmt::Write;

use super::figures::{duration, rate};
use super::model::{DiskResult, LatencyTargetResult, Report, RunResult};
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
    if let Some(region) = &run.properties.region {
        let _ = writeln!(text, "Mixes of reads and writes went by the region that keeps {region}.");
    }
    let waits = disk.dispatch_blocked.iter().filter(|(reason, _)| *reason != "empty");
    let waits: Vec<String> =
        waits.map(|(reason, seconds)| format!("{reason} {seconds:.1}s")).collect();
    let _ = writeln!(text, "Requests waited, summed over shards, for\n{}.", waits.join(", "));
    text + &speed_lines(disk) + &disk.latency_target.as_ref().map(target_lines).unwrap_or_default()
}

/// What the disk does of what is said of it, with what to do where that is something else.
fn speed_lines(disk: &DiskResult) -> String {
    let (Some(speed), Some(waited)) = (disk.speed, disk.waited_seconds) else {
        return String::new();
    };
    let (percent, waited) = (speed * 100.0, duration(waited * 1e6));
    let held_back = disk.latency_target.as_ref().filter(|target| target.pace < SPEED_HEALTHY);
    if let (Some(target), true) = (held_back, speed < SPEED_HEALTHY) {
        return format!(
            "Within its latency target this disk does {percent:.0} % of what its figures say for \
             this mix:\n{} costs {:.0} %, unless the disk is slower than its figures anyway; \
             `--latency-target off`\nshows which (work waited for {waited}).\n",
            target.target,
            100.0 - percent
        );
    }
    let advice = match speed {
        _ if speed < SPEED_HEALTHY => ":\nrun `forebay explore DIR`",
        _ if speed > SPEED_ABOVE => ",\nwhich are too low: run `forebay tune DIR`",
        _ => "",
    };
    format!(
        "This disk does {percent:.0} % of what its figures say for this mix{advice} (work waited \
         for {waited}).\n"
    )
}

/// Whether the latency target held, and if not, why not.
fn target_lines(of: &LatencyTargetResult) -> String {
    let LatencyTargetResult { measured, over, below_base, .. } = *of;
    let (target, latency) = (&of.target, duration(of.latency_us));
    let part = 100.0 - over as f64 / measured.max(1) as f64 * 100.0;
    let met = format!("{part:.1} of 100 of {} requests took no longer", rate(measured as f64));
    let said = match of.holds {
        None => String::from("was not put to the test: nothing of its kind met a loaded disk"),
        _ if below_base => format!(
            "cannot be held, for it is below the latency of the idle disk;\ntwo effective goals are \
             held instead: {met}"
        ),
        Some(true) => format!("holds: {met}"),
        Some(false) if of.attainable => format!("does not hold: only {met}"),
        Some(false) => format!("cannot be kept: only {met}, and sending less does not help"),
    };
    format!(
        "Latency target {target} ({latency} in the disk) {said}.\nIn the end the pace was {:.0} % \
         of the disk's rate, the window {}.\n",
        of.pace * 100.0,
        duration(of.window_us)
    )
}

/// A disk that does less of what its figures say does not do what they say,
const SPEED_HEALTHY: f64 = 0.9;
/// and one that does more neither.
const SPEED_ABOVE: f64 = 1.15;
