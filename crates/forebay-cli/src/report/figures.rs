//! A run in the figures that verdicts go by.

use forebay_load::results::model::{ClassResult, RunResult};
use forebay_load::results::series::{ClassSeries, Series};
use forebay_report::verdict::{
    BlockedSeconds, ClassFigures, DiskFigures, Finding, FindingKind, TargetFigures, findings,
};

/// A disk that got slow is so for this part of the run at least,
const SLOW_PART: usize = 8;
/// and in so many samples.
const SLOW_SAMPLES: usize = 3;

/// What the metrics of a run say, in words; of a run without a scheduler only that there was none.
pub(super) fn of(run: &RunResult) -> Vec<Finding> {
    match figures(run) {
        Some(figures) => findings(&figures),
        None => vec![Finding {
            kind: FindingKind::Healthy,
            class: None,
            what: String::from("There was no scheduler in this run: nothing was ordered"),
            remedy: String::new(),
        }],
    }
}

/// The figures of the measured part; `None` without a scheduler.
fn figures(run: &RunResult) -> Option<DiskFigures> {
    let disk = run.disk.as_ref()?;
    let blocked = disk.dispatch_blocked.iter();
    let target = disk.latency_target.as_ref().map(|target| TargetFigures {
        target: target.target.clone(),
        holds: target.holds,
        attainable: target.attainable,
    });
    let mut figures = DiskFigures {
        seconds: run.duration_seconds,
        queues: run.io_queues,
        consumption: Some(disk.consumption_mean),
        speed: disk.speed,
        waited_seconds: disk.waited_seconds.unwrap_or_default(),
        pace: disk.latency_target.as_ref().map_or(1.0, |target| target.pace),
        target,
        flow_ratio: disk.flow_ratio,
        blocked: BlockedSeconds::of(blocked.map(|(reason, &seconds)| (reason.as_str(), seconds))),
        ..DiskFigures::default()
    };
    if let Some(series) = &run.series {
        add_series(&mut figures, series, &run.classes);
    }
    Some(figures)
}

/// What is seen over time only.
fn add_series(figures: &mut DiskFigures, series: &Series, jobs: &[ClassResult]) {
    let measured = |&end: &f64| end <= series.measured_from_seconds;
    let from = series.ends_seconds.iter().take_while(|end| measured(end)).count();
    let disk = &series.disk;
    let counted = |column: &[u64]| column.iter().skip(from).sum::<u64>();
    figures.late_turns = counted(&disk.late_turns);
    figures.late_seconds = disk.late_seconds.iter().skip(from).sum();
    figures.turn_overdue_seconds = disk.turn_overdue_seconds.last().copied().unwrap_or_default();
    figures.overdue = counted(&disk.overdue);
    let of_classes = |column: fn(&ClassSeries) -> &[u64]| -> u64 {
        series.classes.iter().map(|class| counted(column(class))).sum()
    };
    figures.writes = of_classes(|class| &class.writes);
    figures.writes_misaligned = of_classes(|class| &class.misaligned_writes);
    figures.written = counted(&disk.written_bytes);
    figures.written_unscheduled = counted(&disk.written_unscheduled_bytes);
    figures.read = counted(&disk.read_bytes);
    figures.read_unscheduled = counted(&disk.read_unscheduled_bytes);
    if let Some((before, slow)) = slower(disk.speed.get(from..).unwrap_or_default()) {
        let is_slow = figures.speed.is_none_or(|speed| slow < speed);
        if is_slow {
            (figures.speed_before, figures.speed) = (Some(before), Some(slow));
        }
    }
    figures.classes = series.classes.iter().map(|class| class_figures(class, from, jobs)).collect();
}

fn class_figures(class: &ClassSeries, from: usize, jobs: &[ClassResult]) -> ClassFigures {
    let samples = class.pending.len().saturating_sub(from).max(1) as f64;
    let of_class = || jobs.iter().filter(|job| job.class == class.name);
    let p99 = |of: fn(&ClassResult) -> f64| of_class().map(of).fold(0.0, f64::max) / 1e6;
    ClassFigures {
        name: class.name.clone(),
        shares: class.shares,
        consumption: class.consumption.iter().skip(from).sum::<f64>() / samples,
        waiting: class.pending.iter().skip(from).sum::<u64>() as f64 / samples,
        queue_p99: p99(|job| job.queue_us.p99),
        disk_p99: p99(|job| job.disk_us.p99),
        starved_seconds: class.starved_seconds.iter().skip(from).sum(),
        limited_seconds: class.limited_seconds.iter().skip(from).sum(),
        errors: of_class().map(|job| job.errors).sum(),
    }
}

/// What the disk did before it got slow, and then, where the two differ most: the median before the
/// slowest part, and the median of that part.
fn slower(speeds: &[Option<f64>]) -> Option<(f64, f64)> {
    let speeds: Vec<f64> = speeds.iter().copied().flatten().collect();
    let length = (speeds.len() / SLOW_PART).max(SLOW_SAMPLES);
    let windows = speeds.windows(length).enumerate().skip(length);
    let medians = windows.map(|(at, window)| (at, median(window)));
    let (at, slow) = medians.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((median(speeds.get(..at)?), slow))
}

fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
