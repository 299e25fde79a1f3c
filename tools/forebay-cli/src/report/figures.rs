//! A run in the figures that verdicts go by.

use forebay_load::results::model::{ClassResult, RunResult};
use forebay_load::results::series::{ClassSeries, Series};
use forebay_report::verdict::{
    BlockedSeconds, ClassFigures, DiskFigures, Finding, FindingKind, StallFigures, TargetFigures,
    findings,
};

use super::{contention, slowdown};

/// A change of what a load moves or asks below this is chance.
const MORE_MIN: f64 = 0.05;

/// What the metrics of a run say, in words; of a run without a scheduler only that there was none.
/// `control` can be the same load without one.
pub(super) fn of(run: &RunResult, control: Option<&RunResult>) -> Vec<Finding> {
    match figures(run, control) {
        Some(figures) => findings(&figures),
        None => vec![Finding {
            kind: FindingKind::Healthy,
            class: None,
            what: String::from("This run had no scheduler"),
            remedy: String::new(),
        }],
    }
}

/// The figures of the measured part; `None` without a scheduler.
fn figures(run: &RunResult, control: Option<&RunResult>) -> Option<DiskFigures> {
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
        stalls: disk.stalls.map(StallFigures::from).unwrap_or_default(),
        target,
        flow_ratio: disk.flow_ratio,
        more_unscheduled: control.and_then(|unscheduled| moves_more(unscheduled, run)),
        blocked: BlockedSeconds::of(blocked.map(|(reason, &seconds)| (reason.as_str(), seconds))),
        ..DiskFigures::default()
    };
    if let Some(series) = &run.series {
        add_series(&mut figures, series, &run.classes);
    }
    Some(figures)
}

/// Whether a run without a scheduler moved more than one with it: more bytes or more requests, and
/// not less of the other, which would be another mix. `None` if the two are not of the same load.
fn moves_more(unscheduled: &RunResult, scheduled: &RunResult) -> Option<bool> {
    let names =
        |run: &RunResult| run.classes.iter().map(|job| job.name.clone()).collect::<Vec<_>>();
    if unscheduled.disk.is_some() || names(unscheduled) != names(scheduled) {
        return None;
    }
    let ratio = |of: fn(&ClassResult) -> f64| {
        let [before, after] =
            [unscheduled, scheduled].map(|run| run.classes.iter().map(of).sum::<f64>());
        before / after.max(f64::MIN_POSITIVE)
    };
    let ratios = [ratio(|job| job.bandwidth_bytes_per_second as f64), ratio(|job| job.iops)];
    let is_less = ratios.iter().any(|&ratio| ratio < 1.0 - MORE_MIN);
    Some(!is_less && ratios.iter().any(|&ratio| ratio > 1.0 + MORE_MIN))
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
    let own = |column: &[u64]| (!column.is_empty()).then(|| counted(column));
    figures.written_unscheduled_own = own(&disk.written_unscheduled_own_bytes);
    figures.read_unscheduled_own = own(&disk.read_unscheduled_own_bytes);
    let longest = series.jobs.iter().flat_map(|job| job.disk_us.max.iter().skip(from));
    figures.longest = longest.copied().reduce(f64::max).map(|us| us / 1e6);
    if let Some(slowdown) = slowdown::of(series, from) {
        let is_slow = figures.speed.is_none_or(|speed| slowdown.speed < speed);
        if is_slow {
            figures.speed_before = Some(slowdown.before);
            figures.speed = Some(slowdown.speed);
            figures.mix_changed = slowdown.mix_changed;
        }
    }
    figures.classes = series.classes.iter().map(|class| class_figures(class, from, jobs)).collect();
    for (class, part) in figures.classes.iter_mut().zip(contention::while_waiting(series, from)) {
        class.while_waiting = part;
    }
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
        ..ClassFigures::default()
    }
}
