//! Results for people: tables, and what stands below them.

use std::fmt::Write;

use forebay_report::paragraph;
use forebay_report::verdict::StallFigures;

use super::advice::{answer, busy_machine, surety, topology};
use super::figures::{duration, rate};
use super::members::MembersResult;
use super::model::{
    DiskResult, LatencyTargetResult, PropertiesSource, Report, RunResult, StallsResult,
};
use super::table::{comparison_table, run_table};
use super::verdict::verdict;

/// What is printed of a run or a comparison, for people: of a comparison first what it comes to.
pub fn text(report: &Report) -> String {
    match report {
        Report::Run(run) => {
            let busy = busy_machine(std::slice::from_ref(run));
            let warnings = warnings(run);
            format!("{warnings}{}\n{LEGEND}{busy}{}", run_table(run), lines(run))
        }
        Report::Comparison(comparison) => {
            let [_, scheduled] = &comparison.runs;
            let verdict = verdict(comparison);
            let (answer, table) = (answer(comparison, &verdict), comparison_table(comparison));
            let busy = busy_machine(&comparison.runs);
            let warnings = warnings(scheduled);
            format!("{warnings}{answer}{busy}\n{table}\n{LEGEND}{}", lines(scheduled))
        }
    }
}

/// What looks wrong with the figures of the disk, and with all that follows from them.
fn warnings(run: &RunResult) -> String {
    let mut text = String::new();
    for warning in &run.properties.warnings {
        paragraph(&mut text, "Warning: ", &format!("{warning}."));
    }
    text
}

const LEGEND: &str = "\
Latencies count from when a request should have begun. At the p99 a request was
in the backlog until the load generator sent it (it had as many under way as it
may), in the queue until the scheduler let it go, and then in the disk.
";

/// What the words for waiting mean.
const WAITS: [(&str, &str); 5] = [
    ("pace", "the disk's rate was used up"),
    ("pace_disk_idle", "the same, while the disk was nearly empty"),
    ("window", "the window was full"),
    ("class_limit", "the limit of their class"),
    ("ahead", "other queues were behind and went first"),
];

/// How requests got to the disk, and what the scheduler saw of it.
fn lines(run: &RunResult) -> String {
    let RunResult { topology: name, io_queues, .. } = run;
    let queues = if *io_queues == 1 { "queue" } else { "queues" };
    let fits = topology(run);
    let disk = disk_lines(run);
    format!("Topology: {name}, {io_queues} I/O {queues}.\n{fits}{disk}{}", surety(run))
}

/// What the scheduler saw of the disk.
fn disk_lines(run: &RunResult) -> String {
    let Some(disk) = &run.disk else { return String::new() };
    let percent = |part: f64| format!("{:.0}%", part * 100.0);
    let mut text = format!(
        "The scheduler spent {} of the disk's time ({} in the busiest second),\nwith at most {} \
         requests in the disk.\n",
        percent(disk.consumption_mean),
        percent(disk.consumption_max),
        disk.in_flight_max
    );
    text += &disk.wake_ups.map(|count| wake_ups(run, count)).unwrap_or_default();
    for line in disk.members.iter().flat_map(MembersResult::lines) {
        paragraph(&mut text, "", &format!("Of the array {line}."));
    }
    if let Some(region) = &run.properties.region {
        let _ = writeln!(text, "Mixes of reads and writes went by the region that keeps {region}.");
    }
    text += &waits(disk);
    text += &disk.stalls.as_ref().map(stall_lines).unwrap_or_default();
    text + &speed_lines(run, disk)
        + &disk.latency_target.as_ref().map(|of| target_lines(of, disk)).unwrap_or_default()
}

/// How often threads and tasks were woken.
fn wake_ups(run: &RunResult, count: u64) -> String {
    let requests: u64 = run.classes.iter().map(|class| class.requests).sum();
    let each = count as f64 / requests.max(1) as f64;
    format!("Its wake-ups of threads and tasks: {count}, {each:.2} for each request.\n")
}

/// For what requests waited, and what that means; nothing of what held none back.
fn waits(disk: &DiskResult) -> String {
    let waited = disk
        .dispatch_blocked
        .iter()
        .filter(|(reason, seconds)| *reason != "empty" && **seconds >= WAITED_MIN);
    let mut text = String::new();
    for (reason, seconds) in waited {
        let meaning = WAITS.iter().find(|(name, _)| name == reason);
        let meaning = meaning.map_or_else(String::new, |(_, meaning)| format!(": {meaning}"));
        let _ = writeln!(text, "  {seconds:>6.1}s  {reason}{meaning}");
    }
    if text.is_empty() {
        return format!("The scheduler held requests back for less than {WAITED_MIN} s.\n");
    }
    format!("Requests waited, summed over shards, for\n{text}")
}

/// Less is not told.
const WAITED_MIN: f64 = 0.05;

/// When the disk stood still, and what to do.
fn stall_lines(of: &StallsResult) -> String {
    let (spans, overdue) = (StallFigures::from(*of), of.overdue);
    let requests = if overdue == 1 { "request was" } else { "requests were" };
    format!(
        "The disk stalled: {spans};\n{overdue} {requests} overdue. Look for errors of the device \
         in the system's log,\nand check the device (`smartctl`).\n"
    )
}

/// The disk's throughput as a part of its figures, with advice if it differs from them.
fn speed_lines(run: &RunResult, disk: &DiskResult) -> String {
    let (Some(speed), Some(waited)) = (disk.speed, disk.waited_seconds) else {
        return String::new();
    };
    let (percent, waited) = (speed * 100.0, duration(waited * 1e6));
    if let (Some(target), true) = (&disk.latency_target, speed < SPEED_HEALTHY) {
        return format!(
            "Within its latency target this disk does {percent:.0} % of its figures for this \
             mix:\n{} costs {:.0} %, unless the disk is slower than its figures \
             anyway;\n`--latency-target off` shows which (work waited for {waited}).\n",
            target.target,
            100.0 - percent
        );
    }
    if !run.properties.warnings.is_empty() {
        return format!(
            "The load got {percent:.0} % of what these figures allow. As they look wrong, \
             that\ndoes not judge the disk (work waited for {waited}).\n"
        );
    }
    let is_probed = run.properties.source == PropertiesSource::Probe;
    let running = disk.running_speed(run.duration_seconds);
    let advice = match running {
        // the advice states the uncertainty of a probe
        _ if is_probed => "",
        Some(..SPEED_OFF) => {
            ":\nrun `forebay tune DIR`, and where it stays so `forebay explore DIR`"
        }
        Some(..SPEED_HEALTHY) => ":\nrun `forebay explore DIR`",
        Some(judged) if judged > SPEED_ABOVE => ",\nwhich are too low: run `forebay tune DIR`",
        _ => "",
    };
    let besides = match (&disk.stalls, running) {
        (None, _) => String::new(),
        (Some(_), Some(running)) => {
            format!("; outside of stalls it did {:.0} %", running * 100.0)
        }
        (Some(_), None) => String::from(", nearly all of it while the disk stalled"),
    };
    format!(
        "This disk does {percent:.0} % of its figures for this mix{advice}\n(work waited for \
         {waited}{besides}).\n"
    )
}

/// Whether the latency target held, and if not, why not.
fn target_lines(of: &LatencyTargetResult, disk: &DiskResult) -> String {
    let LatencyTargetResult { measured, over, below_base, .. } = *of;
    let (target, latency) = (&of.target, duration(of.latency_us));
    let part = 100.0 - over as f64 / measured.max(1) as f64 * 100.0;
    let met = format!("{part:.1} of 100 of {} requests took no longer", rate(measured as f64));
    let said = match of.holds {
        None => String::from("was not tested: no request of its kind met a loaded disk"),
        _ if below_base => {
            format!("cannot be kept, as it is below the latency of the idle disk: {met}")
        }
        Some(true) => format!("holds: {met}"),
        Some(false) if disk.stalls.is_some() => {
            format!("does not hold, and the disk stalled; of the completed requests\n{met}")
        }
        Some(false) if of.attainable => format!("does not hold: only {met}"),
        Some(false) => format!("cannot be kept: only {met}, and a smaller window does not help"),
    };
    let window = duration(of.window_us);
    format!("Latency target {target} ({latency})\n{said}.\nIn the end the window was {window}.\n")
}

/// A disk that does less of what its figures say does not do what they say,
const SPEED_HEALTHY: f64 = 0.9;
/// and one that does more neither.
const SPEED_ABOVE: f64 = 1.15;
/// One that does so little may have got slower altogether.
const SPEED_OFF: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_runs_for_a_moment_between_stops_is_not_judged() {
        let golden = include_str!("../../tests/golden/run.json");
        let mut run: RunResult = serde_json::from_str(golden).unwrap();
        let mut disk = run.disk.take().unwrap();
        let of =
            |waited| StallsResult { count: 1, seconds: waited, longest_seconds: 6.0, overdue: 1 };
        (disk.speed, disk.waited_seconds, disk.stalls) = (Some(0.0), Some(6.01), Some(of(6.0)));
        let text = speed_lines(&run, &disk);
        assert!(text.contains("while the disk stalled") && !text.contains("tune"), "{text}");
        (disk.speed, disk.waited_seconds, disk.stalls) = (Some(0.3), Some(10.0), Some(of(4.0)));
        let text = speed_lines(&run, &disk);
        assert!(text.contains("it did 50 %") && text.contains("forebay tune DIR"), "{text}");
    }

    #[test]
    fn figures_that_look_wrong_are_no_measure_of_the_disk() {
        let golden = include_str!("../../tests/golden/run.json");
        let mut run: RunResult = serde_json::from_str(golden).unwrap();
        let mut disk = run.disk.take().unwrap();
        (disk.speed, disk.waited_seconds) = (Some(1.0), Some(3.0));
        assert!(speed_lines(&run, &disk).starts_with("This disk does 100 %"));
        run.properties.warnings.push(String::from("read_iops looks wrong"));
        let text = speed_lines(&run, &disk);
        assert!(text.contains("100 % of what these figures allow. As they look wrong"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
