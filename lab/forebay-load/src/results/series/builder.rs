//! A run over time, sample by sample.

use forebay_core::{Blocked, ClassCounters, DiskTime, Op, Time};
use hdrhistogram::CreationError;

use super::{ClassSeries, DiskSeries, GroupOfClass, JobSeries, Percentiles, RequestTimes, Series};
use crate::job_file::{GroupSpec, JobFile};
use crate::recorder::{Completion, Latencies, MeasuredInterval, Slice};
use crate::results::consumption::DiskSample;
use crate::results::model::rounded;

/// A run is shown by at most about this many samples,
const SAMPLES_MAX: u64 = 100;
/// of this length where that gives no more of them,
const SAMPLE_NANOS: u64 = 250_000_000;
/// and by at least this many.
const SAMPLES_MIN: u64 = 20;
/// This many of the slowest requests of a job are kept.
const SLOWEST: usize = 5;
/// If work waited for less than this part of a sample, the disk's speed is omitted.
const WAITED_MIN: f64 = 0.1;

/// What was seen of a disk and its classes at one moment.
#[derive(Clone, Debug, Default)]
pub struct SeriesLook {
    /// All queues together.
    pub disk: DiskSample,
    /// What the queues have counted of each class, in the order of the job file.
    pub classes: Vec<ClassCounters>,
    /// By how much the latest queue is behind its turn, in nanoseconds.
    pub turn_overdue_nanos: u64,
    /// Bytes that the device wrote, of these the unscheduled ones, and of these again those
    /// of this process.
    pub written: [u64; 3],
    /// The same of bytes that it read.
    pub read: [u64; 3],
}

/// Makes a [`Series`]. Memory is bounded however long the run is.
#[derive(Clone, Debug)]
pub struct SeriesBuilder {
    series: Series,
    open: Vec<Slice>,
    before: SeriesLook,
    ended: Time,
    sample_nanos: u64,
}

impl SeriesBuilder {
    /// For a run of `file` that begins at time zero and ends with its measured part.
    ///
    /// # Errors
    /// As [`Slice::new`].
    pub fn new(file: &JobFile, measured: MeasuredInterval) -> Result<Self, CreationError> {
        let nanos = measured.to.as_nanos();
        let shortest = SAMPLE_NANOS.min(nanos / SAMPLES_MIN);
        let jobs = file.jobs.iter();
        let jobs = jobs.map(|job| JobSeries { name: job.name.clone(), ..JobSeries::default() });
        let classes = file.classes.iter().map(|class| ClassSeries {
            name: class.name.clone(),
            shares: class.shares,
            group: class.parent.and_then(|parent| file.groups.get(parent)).map(of_group),
            ..ClassSeries::default()
        });
        let series = Series {
            measured_from_seconds: seconds(measured.from.as_nanos()),
            jobs: jobs.collect(),
            classes: classes.collect(),
            ..Series::default()
        };
        let open = file.jobs.iter().map(|_| Slice::new()).collect::<Result<_, _>>()?;
        let sample_nanos = nanos.div_ceil(SAMPLES_MAX).max(shortest).max(1);
        let before = SeriesLook::default();
        Ok(Self { series, open, before, ended: Time::ZERO, sample_nanos })
    }

    /// The length of a sample, in nanoseconds.
    pub fn sample_nanos(&self) -> u64 {
        self.sample_nanos
    }

    /// When the sample under way ends.
    pub fn sample_ends(&self) -> Time {
        self.ended.plus_nanos(self.sample_nanos)
    }

    /// Adds what happened to the job with this index.
    pub fn add(&mut self, job: usize, slice: &Slice) {
        self.open.get_mut(job).into_iter().for_each(|open| open.merge(slice));
    }

    /// Ends a sample at `now`, when the disk looked like this; nothing happens if it has no length.
    pub fn end_sample(&mut self, now: Time, look: SeriesLook) {
        let length = now.nanos_since(self.ended) as f64 / 1e9;
        if length <= 0.0 {
            return;
        }
        self.ended = now;
        self.series.ends_seconds.push(seconds(now.as_nanos()));
        for (job, open) in self.series.jobs.iter_mut().zip(&mut self.open) {
            job.push(open, length);
            open.clear();
        }
        for (place, class) in self.series.classes.iter_mut().enumerate() {
            let before = self.before.classes.get(place).cloned().unwrap_or_default();
            let after = look.classes.get(place).cloned().unwrap_or_default();
            class.push(&before, &after, length);
        }
        self.series.disk.push(&self.before, &look, length);
        self.before = look;
    }

    /// The run over time.
    pub fn finish(self) -> Series {
        self.series
    }
}

impl JobSeries {
    fn push(&mut self, slice: &Slice, length: f64) {
        self.iops.push(rounded(slice.requests as f64 / length, 1));
        self.bandwidth_bytes_per_second.push((slice.bytes as f64 / length).round());
        self.errors.push(slice.errors);
        self.latency_us.push(&slice.latency);
        self.queue_us.push(&slice.queue);
        self.disk_us.push(&slice.disk);
        self.slowest.extend(slice.slowest.as_ref().map(RequestTimes::of));
        let took = |times: &RequestTimes| times.completed_seconds - times.intended_seconds;
        self.slowest.sort_by(|one, other| took(other).total_cmp(&took(one)));
        self.slowest.truncate(SLOWEST);
    }
}

impl Percentiles {
    fn push(&mut self, latencies: &Latencies) {
        let us = |ns: u64| rounded(ns as f64 / 1e3, 2);
        // an empty histogram has percentiles of 0
        self.p50.push(us(latencies.quantile_ns(0.5)));
        self.p95.push(us(latencies.quantile_ns(0.95)));
        self.p99.push(us(latencies.quantile_ns(0.99)));
        self.max.push(us(latencies.max_ns()));
    }
}

impl RequestTimes {
    fn of(request: &Completion) -> Self {
        let at = |time: Time| rounded(time.as_nanos() as f64 / 1e9, 7);
        Self {
            intended_seconds: at(request.intended),
            queued_seconds: at(request.enqueued),
            dispatched_seconds: at(request.dispatched),
            completed_seconds: at(request.completed),
            bytes: request.bytes,
        }
    }
}

impl ClassSeries {
    fn push(&mut self, before: &ClassCounters, after: &ClassCounters, length: f64) {
        let nanos = |of: fn(&ClassCounters) -> u64| seconds(of(after).saturating_sub(of(before)));
        self.pending.push(after.queued.into());
        self.activations.push(after.activations.saturating_sub(before.activations));
        self.in_disk.push(after.in_disk.into());
        self.consumption.push(per_second(after.consumption.minus(before.consumption), length));
        self.starved_seconds.push(nanos(|class| class.starved_nanos));
        self.limited_seconds.push(nanos(|class| class.limited_nanos));
        let write = Op::Write.index();
        let grown = |[then, now]: [[u64; 4]; 2]| now[write].saturating_sub(then[write]);
        self.writes.push(grown([before.operations, after.operations]));
        self.misaligned_writes.push(grown([before.misaligned, after.misaligned]));
    }
}

impl DiskSeries {
    fn push(&mut self, before: &SeriesLook, after: &SeriesLook, length: f64) {
        let [then, now] = [&before.disk.queues, &after.disk.queues];
        self.consumption.push(per_second(now.consumption.minus(then.consumption), length));
        self.flow_ratio.push(now.flow_ratio_permille as f64 / 1000.0);
        let counted = after.disk.load.counters.since(&before.disk.load.counters);
        let waited = seconds(counted.waited_nanos);
        let permille = counted.speed_permille().filter(|_| waited >= length * WAITED_MIN);
        self.speed.push(permille.map(|permille| permille as f64 / 1000.0));
        self.waited_seconds.push(waited);
        self.stopped_seconds.push(seconds(counted.stalled_nanos));
        for reason in Blocked::ALL {
            let [then, now] = [then, now].map(|counters| counters.blocked_nanos[reason.index()]);
            let blocked = self.blocked_seconds.entry(reason.name().to_owned()).or_default();
            blocked.push(seconds(now.saturating_sub(then)));
        }
        self.late_turns.push(now.late_turns.saturating_sub(then.late_turns));
        self.late_seconds.push(seconds(now.late_nanos.saturating_sub(then.late_nanos)));
        self.turn_overdue_seconds.push(seconds(after.turn_overdue_nanos));
        self.overdue.push(now.overdue.saturating_sub(then.overdue));
        let columns = [
            &mut self.written_bytes,
            &mut self.written_unscheduled_bytes,
            &mut self.written_unscheduled_own_bytes,
            &mut self.read_bytes,
            &mut self.read_unscheduled_bytes,
            &mut self.read_unscheduled_own_bytes,
        ];
        let [then, now] = [before, after].map(|look| look.written.into_iter().chain(look.read));
        for (column, (then, now)) in columns.into_iter().zip(then.zip(now)) {
            column.push(now.saturating_sub(then));
        }
    }
}

fn of_group(group: &GroupSpec) -> GroupOfClass {
    GroupOfClass { name: group.name.clone(), shares: group.shares }
}

fn seconds(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e9, 6)
}

fn per_second(disk_time: DiskTime, length: f64) -> f64 {
    rounded(disk_time.units() as f64 / DiskTime::UNITS_PER_SECOND as f64 / length, 4)
}
