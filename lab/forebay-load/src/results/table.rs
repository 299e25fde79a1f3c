//! Results as tables for people, at most 110 columns wide unless the names of jobs are long.

use forebay_report::aligned;

use super::figures::{change, duration, megabytes, percent, rate};
use super::model::{ClassResult, Comparison, FlushResult, RunResult};

const FIGURES: [&str; 6] = ["IOPS", "MB/s", "p50", "p99", "p99.9", "max"];
/// The 99th percentile, and where a request at it spent it: these add up.
const PARTS: [&str; 4] = ["p99", "= backlog", "+ queue", "+ disk"];

/// One line for each job, one for the flushes that follow its requests if it has some, and one for
/// all together.
///
/// `MB/s %` is the part of all bytes moved. Latencies count from the intended start. A second table
/// says where a request at the 99th percentile spent it.
pub fn run_table(run: &RunResult) -> String {
    let bandwidth = total_bandwidth(run);
    let mut rows = vec![header(&["class", "shares", "MB/s %"])];
    for class in &run.classes {
        let part = percent(class.bandwidth_bytes_per_second, bandwidth);
        rows.push(row([class.name.clone(), class.shares.to_string(), part], &figures(class)));
        if let Some(flushes) = &class.flushes {
            let labels = [class.flushes_name(), String::new(), String::new()];
            rows.push(row(labels, &flush_figures(flushes)));
        }
    }
    let labels = [String::from("total"), String::new(), percent(bandwidth, bandwidth)];
    rows.push(row(labels, &total_figures(run)));
    lines(&rows, 1) + &parts(&[("", run)]) + &notes("", run)
}

/// Three lines for each job, for the flushes that follow its requests, and for all together:
/// without the scheduler, with it, the change.
pub fn comparison_table(comparison: &Comparison) -> String {
    let [before, after] = &comparison.runs;
    let mut rows = vec![header(&["class (shares)", "run"])];
    for (then, now) in before.classes.iter().zip(&after.classes) {
        let name = format!("{} ({})", now.name, now.shares);
        rows.extend(compared(name, &figures(then), &figures(now)));
        if let (Some(before), Some(after)) = (&then.flushes, &now.flushes) {
            rows.extend(compared(
                now.flushes_name(),
                &flush_figures(before),
                &flush_figures(after),
            ));
        }
    }
    rows.extend(compared(String::from("total"), &total_figures(before), &total_figures(after)));
    let parts = parts(&[("unscheduled", before), ("scheduled", after)]);
    lines(&rows, 2) + &parts + &notes("unscheduled ", before) + &notes("scheduled ", after)
}

/// The bytes per second of all jobs.
pub(super) fn total_bandwidth(run: &RunResult) -> u64 {
    run.classes.iter().map(|class| class.bandwidth_bytes_per_second).sum()
}

/// The figures of a job in the order of [`FIGURES`]: per second, and in microseconds.
fn figures(class: &ClassResult) -> Vec<f64> {
    let all = &class.latency_us;
    let bandwidth = class.bandwidth_bytes_per_second as f64;
    vec![class.iops, bandwidth, all.p50, all.p99, all.p999, all.max]
}

/// The figures of the flushes of a job in the order of [`FIGURES`].
fn flush_figures(flushes: &FlushResult) -> Vec<f64> {
    let all = &flushes.latency_us;
    vec![flushes.iops, 0.0, all.p50, all.p99, all.p999, all.max]
}

/// Where a request at the 99th percentile of each job spent it, in each of the runs; nothing for
/// results that do not say so.
fn parts(runs: &[(&str, &RunResult)]) -> String {
    let is_comparison = runs.len() > 1;
    let labels: &[&str] = if is_comparison { &["", ""] } else { &[""] };
    let head = labels.iter().chain(&PARTS).map(|&name| name.to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![head];
    let jobs = runs.iter().map(|(_, run)| run.classes.len()).max().unwrap_or_default();
    for job in 0..jobs {
        for (index, (name, run)) in runs.iter().enumerate() {
            let Some(class) = run.classes.get(job) else { continue };
            let Some(spent) = class.p99_parts_us else { continue };
            let label = if index == 0 { class.name.clone() } else { String::new() };
            let labels = [label, (*name).to_owned()].into_iter().take(labels.len());
            let figures = [class.latency_us.p99, spent.backlog, spent.queue, spent.disk];
            rows.push(labels.chain(figures.map(duration)).collect());
        }
    }
    if rows.len() == 1 { String::new() } else { String::from("\n") + &lines(&rows, labels.len()) }
}

/// The first two of [`FIGURES`]; the latencies of different jobs have nothing in common.
fn total_figures(run: &RunResult) -> Vec<f64> {
    vec![run.classes.iter().map(|class| class.iops).sum(), total_bandwidth(run) as f64]
}

fn header(labels: &[&str]) -> Vec<String> {
    labels.iter().chain(&FIGURES).map(|&name| name.to_owned()).collect()
}

fn row<const N: usize>(labels: [String; N], figures: &[f64]) -> Vec<String> {
    let cells = figures.iter().enumerate().map(|(column, &figure)| match column {
        0 => rate(figure),
        1 => megabytes(figure),
        _ if figure > 0.0 => duration(figure),
        _ => String::from("-"),
    });
    labels.into_iter().chain(cells).collect()
}

fn compared(name: String, before: &[f64], after: &[f64]) -> [Vec<String>; 3] {
    let changes = before.iter().zip(after).map(|(&before, &after)| change(before, after));
    [
        row([name, String::from("unscheduled")], before),
        row([String::new(), String::from("scheduled")], after),
        [String::new(), String::from("change")].into_iter().chain(changes).collect(),
    ]
}

/// Lines about requests that the figures above do not show.
fn notes(run_name: &str, run: &RunResult) -> String {
    let mut notes = String::new();
    for class in &run.classes {
        let name = &class.name;
        if class.errors > 0 {
            notes += &format!("{run_name}{name}: {} requests failed\n", class.errors);
        }
        if class.unfinished > class.requests / 100 {
            let unfinished = class.unfinished;
            notes += &format!(
                "{run_name}{name}: {unfinished} requests were due and unfinished at the end\n"
            );
        }
    }
    notes
}

/// Rows as lines; the first `left` columns are aligned to the left, the others to the right.
fn lines(rows: &[Vec<String>], left: usize) -> String {
    aligned(rows, left).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::LatencyResult;

    fn run() -> RunResult {
        serde_json::from_str(include_str!("../../tests/golden/run.json")).unwrap()
    }

    fn with_flushes(p99: f64) -> RunResult {
        let mut run = run();
        let latency_us = LatencyResult { p50: 8300.0, p99, ..LatencyResult::default() };
        run.classes[0].flushes = Some(FlushResult { requests: 1190, iops: 119.0, latency_us });
        run
    }

    #[test]
    fn flushes_have_a_row_below_that_of_their_job() {
        let table = run_table(&with_flushes(16_600.0));
        let mut lines = table.lines().skip(1);
        let [job, flushes] = [lines.next().unwrap(), lines.next().unwrap()];
        let name = job.split_whitespace().next().unwrap();
        let cells: Vec<&str> = flushes.split_whitespace().collect();
        assert_eq!(cells[..3], [name, "flushes", "119"], "{table}");
        assert_eq!(cells[cells.len() - 4..], ["8.30ms", "16.6ms", "-", "-"], "{table}");
        assert_eq!(run_table(&run()).matches("flushes").count(), 0);
    }

    #[test]
    fn the_flushes_of_two_runs_are_compared() {
        let runs = [with_flushes(20_000.0), with_flushes(10_000.0)];
        let table = comparison_table(&Comparison { version: 1, runs });
        let rows: Vec<&str> = table.lines().skip_while(|line| !line.contains("flushes")).collect();
        assert!(rows[0].contains("20.0ms") && rows[1].contains("10.0ms"), "{table}");
        assert!(rows[2].contains("-50%"), "{table}");
    }
}
