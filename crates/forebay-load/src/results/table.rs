//! Results as tables for people, at most 110 columns wide unless the names of jobs are long.

use forebay_report::aligned;

use super::figures::{change, duration, megabytes, percent, rate};
use super::model::{ClassResult, Comparison, RunResult};

const FIGURES: [&str; 9] =
    ["IOPS", "MB/s", "mean", "p50", "p99", "p99.9", "max", "queue p99", "disk p99"];

/// One line for each job, and one for all together.
///
/// `MB/s %` is the part of all bytes moved. Latencies count from the intended start; the last two
/// columns are what of them is spent in the queue and in the disk.
pub fn run_table(run: &RunResult) -> String {
    let bandwidth = total_bandwidth(run);
    let mut rows = vec![header(&["class", "shares", "MB/s %"])];
    for class in &run.classes {
        let part = percent(class.bandwidth_bytes_per_second, bandwidth);
        rows.push(row([class.name.clone(), class.shares.to_string(), part], &figures(class)));
    }
    let labels = [String::from("total"), String::new(), percent(bandwidth, bandwidth)];
    rows.push(row(labels, &total_figures(run)));
    lines(&rows, 1) + &notes("", run)
}

/// Three lines for each job and for all together: without the scheduler, with it, the change.
pub fn comparison_table(comparison: &Comparison) -> String {
    let [before, after] = &comparison.runs;
    let mut rows = vec![header(&["class (shares)", "run"])];
    for (then, now) in before.classes.iter().zip(&after.classes) {
        let name = format!("{} ({})", now.name, now.shares);
        rows.extend(compared(name, &figures(then), &figures(now)));
    }
    rows.extend(compared(String::from("total"), &total_figures(before), &total_figures(after)));
    lines(&rows, 2) + &notes("unscheduled ", before) + &notes("scheduled ", after)
}

/// The bytes per second of all jobs.
pub(super) fn total_bandwidth(run: &RunResult) -> u64 {
    run.classes.iter().map(|class| class.bandwidth_bytes_per_second).sum()
}

/// The figures of a job in the order of [`FIGURES`]: per second, and in microseconds.
fn figures(class: &ClassResult) -> Vec<f64> {
    let all = &class.latency_us;
    let bandwidth = class.bandwidth_bytes_per_second as f64;
    let (queue, disk) = (class.queue_us.p99, class.disk_us.p99);
    vec![class.iops, bandwidth, all.mean, all.p50, all.p99, all.p999, all.max, queue, disk]
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
                "{run_name}{name}: {unfinished} requests were due and not done at the end\n"
            );
        }
    }
    notes
}

/// Rows as lines; the first `left` columns are aligned to the left, the others to the right.
fn lines(rows: &[Vec<String>], left: usize) -> String {
    aligned(rows, left).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}
