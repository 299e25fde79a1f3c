//! Charts of single jobs of a run over time.

use std::ops::Range;

use forebay_load::results::series::{JobSeries, Series};
use forebay_report::{Chart, Mark};

/// Of the whole run, in seconds.
pub(super) const ALL: Range<f64> = 0.0..f64::INFINITY;

/// A chart of a run.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) y: &'static str,
    pub(super) seconds: Range<f64>,
    pub(super) lines: &'static [Line],
}

/// Jobs together, as one line.
pub(super) struct Line {
    name: &'static str,
    jobs: &'static [&'static str],
    of: Column,
}

/// What of a job is drawn.
#[derive(Clone, Copy)]
pub(super) enum Column {
    Megabytes,
    Served,
    /// Of the job's class.
    Pending,
    QueueP99,
    QueueMedian,
    DiskMedian,
}

pub(super) const fn line(name: &'static str, jobs: &'static [&'static str], of: Column) -> Line {
    Line { name, jobs, of }
}

impl Figure {
    pub(super) fn chart(&self, scheduler: &str, series: &Series) -> Chart {
        let chart = Chart::new(&format!("{}: {scheduler}", self.title), "seconds", self.y);
        self.lines.iter().fold(chart, |chart, line| {
            let points = series.ends_seconds.iter().copied().zip(line.values(series));
            let within = points.filter(|(at, _)| self.seconds.contains(at));
            // where nothing was done there is no latency
            let shown = within.filter(|(_, value)| *value > 0.0 || line.of.adds_up());
            chart.with(line.name, Mark::Line, shown.collect())
        })
    }
}

impl Line {
    /// By sample.
    fn values(&self, series: &Series) -> Vec<f64> {
        let columns = self.jobs.iter().filter_map(|job| self.of.of(job, series));
        columns.fold(vec![0.0; series.ends_seconds.len()], |sum, column| {
            let join = |(sum, value): (&f64, f64)| {
                if self.of.adds_up() { sum + value } else { sum.max(value) }
            };
            sum.iter().zip(column).map(join).collect()
        })
    }
}

impl Column {
    fn of(self, job: &str, series: &Series) -> Option<Vec<f64>> {
        if let Self::Pending = self {
            let class = series.classes.iter().find(|class| class.name == job)?;
            return Some(class.pending.iter().map(|&count| count as f64).collect());
        }
        let found = series.jobs.iter().find(|found| found.name == job)?;
        let scaled = |column: &[f64], by: f64| column.iter().map(|value| value * by).collect();
        let JobSeries { iops, bandwidth_bytes_per_second, queue_us, disk_us, .. } = found;
        Some(match self {
            Self::Megabytes => scaled(bandwidth_bytes_per_second, 1e-6),
            Self::Served | Self::Pending => scaled(iops, 1.0),
            Self::QueueP99 => scaled(&queue_us.p99, 1e-3),
            Self::QueueMedian => scaled(&queue_us.p50, 1e-3),
            Self::DiskMedian => scaled(&disk_us.p50, 1e-3),
        })
    }

    /// Whether that of several jobs is their sum; of latencies it is the longest.
    const fn adds_up(self) -> bool {
        matches!(self, Self::Megabytes | Self::Served | Self::Pending)
    }
}
