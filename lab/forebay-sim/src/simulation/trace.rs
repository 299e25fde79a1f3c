//! What happened when: a run in a fixed number of time slices, to draw charts from.

use forebay_core::{DiskTime, IoGroup, LoadStatus, Op, Time};
use forebay_load::recorder::Latencies;
use hdrhistogram::CreationError;

/// A run in time slices of one length, warm-up included.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The length of a slice in nanoseconds.
    pub slice_nanos: u64,
    /// What each class did, in the order of the job file.
    pub classes: Vec<ClassTrace>,
    /// What the scheduler did for its latency target, slice by slice.
    pub corrections: Vec<Correction>,
}

/// What one class did.
#[derive(Clone, Debug)]
pub struct ClassTrace {
    /// Its name.
    pub name: String,
    /// The slices, one after the other.
    pub samples: Vec<Sample>,
    /// From the hand-over to the scheduler to the dispatch, over the measured part of the run.
    pub queue: Latencies,
    /// From the dispatch to the completion, over the measured part of the run.
    pub disk: Latencies,
    in_disk: u64,
    slice: Slice,
}

/// What one class did in one slice. A large request counts as the commands it was split into.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bytes of the commands that succeeded.
    pub bytes: u64,
    /// The commands that succeeded.
    pub operations: u64,
    /// Disk time of the commands dispatched, by the scheduler's own model.
    pub disk_time: DiskTime,
    /// How long the commands dispatched had waited in the queue.
    pub queue: Waits,
    /// How long the commands that succeeded were in the disk.
    pub disk: Waits,
    /// The most commands that were in the disk at once.
    pub in_flight_max: u64,
}

/// Latencies in one slice, in nanoseconds; all zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// The slice that is being filled.
#[derive(Clone, Debug)]
struct Slice {
    sample: Sample,
    queue: Latencies,
    disk: Latencies,
}

/// Fills a trace while the run goes on.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    trace: Trace,
    slices: usize,
    measured_from: Time,
    slice_ends: Time,
    corrections: Corrections,
}

impl Tracer {
    /// A trace of a run of `length` nanoseconds in this many slices.
    pub(super) fn new(
        classes: impl Iterator<Item = String>,
        (length, slices): (u64, usize),
        measured_from: Time,
        groups: Vec<IoGroup>,
    ) -> Result<Self, CreationError> {
        let slices = slices.max(1);
        let slice_nanos = length.div_ceil(slices as u64).max(1);
        let class = |name| ClassTrace::new(name, slices);
        let classes = classes.map(class).collect::<Result<_, _>>()?;
        let slice_ends = Time::from_nanos(slice_nanos);
        let trace = Trace { slice_nanos, classes, corrections: Vec::with_capacity(slices) };
        let corrections = Corrections::new(groups)?;
        Ok(Self { trace, slices, measured_from, slice_ends, corrections })
    }

    /// A command of `class` that had waited for `queue_nanos` goes to the disk.
    pub(super) fn dispatched(&mut self, now: Time, class: usize, queue_nanos: u64, cost: DiskTime) {
        self.turn_over(now);
        let measured = now >= self.measured_from;
        let Some(class) = self.trace.classes.get_mut(class) else { return };
        class.in_disk += 1;
        let sample = &mut class.slice.sample;
        sample.disk_time = sample.disk_time.plus(cost);
        sample.in_flight_max = sample.in_flight_max.max(class.in_disk);
        class.slice.queue.record(queue_nanos);
        if measured {
            class.queue.record(queue_nanos);
        }
    }

    /// A command of `class` has come back; `bytes` are none if it failed.
    pub(super) fn completed(
        &mut self,
        now: Time,
        class: usize,
        (op, disk_nanos): (Op, u64),
        bytes: Option<u64>,
    ) {
        self.turn_over(now);
        let measured = now >= self.measured_from;
        let Some(class) = self.trace.classes.get_mut(class) else { return };
        class.in_disk = class.in_disk.saturating_sub(1);
        let Some(bytes) = bytes else { return };
        class.slice.sample.bytes += bytes;
        class.slice.sample.operations += 1;
        class.slice.disk.record(disk_nanos);
        self.corrections.completed(op, disk_nanos);
        if measured {
            class.disk.record(disk_nanos);
        }
    }

    /// The times in the queue and in the disk so far, by class.
    pub(super) fn latencies(&self) -> Vec<[Latencies; 2]> {
        let classes = self.trace.classes.iter();
        classes.map(|class| [class.queue.clone(), class.disk.clone()]).collect()
    }

    /// The whole trace of a run that ended at `now`.
    pub(super) fn finish(mut self, now: Time) -> Trace {
        self.turn_over(now);
        for class in &mut self.trace.classes {
            if class.samples.len() < self.slices {
                class.end_slice();
            }
        }
        if self.trace.corrections.len() < self.slices {
            self.trace.corrections.push(self.corrections.end_slice(now));
        }
        self.trace
    }

    /// Ends the slices that are over.
    fn turn_over(&mut self, now: Time) {
        while now >= self.slice_ends {
            self.slice_ends = self.slice_ends.plus_nanos(self.trace.slice_nanos);
            for class in &mut self.trace.classes {
                // What happens at the very end belongs to the last slice.
                if class.samples.len() + 1 < self.slices {
                    class.end_slice();
                }
            }
            if self.trace.corrections.len() + 1 < self.slices {
                self.trace.corrections.push(self.corrections.end_slice(now));
            }
        }
    }
}

impl ClassTrace {
    fn new(name: String, slices: usize) -> Result<Self, CreationError> {
        let (queue, disk) = (Latencies::new()?, Latencies::new()?);
        let slice = Slice { sample: Sample::default(), queue: queue.clone(), disk: disk.clone() };
        let samples = Vec::with_capacity(slices);
        Ok(Self { name, samples, queue, disk, in_disk: 0, slice })
    }

    fn end_slice(&mut self) {
        let Slice { sample, queue, disk } = &mut self.slice;
        (sample.queue, sample.disk) = (Waits::take(queue), Waits::take(disk));
        self.samples.push(*sample);
        *sample = Sample { in_flight_max: self.in_disk, ..Sample::default() };
    }
}

impl Waits {
    fn take(latencies: &mut Latencies) -> Self {
        if latencies.count() == 0 {
            return Self::default();
        }
        let waits = Self {
            mean: latencies.mean_ns(),
            p50: latencies.quantile_ns(0.5),
            p95: latencies.quantile_ns(0.95),
            p99: latencies.quantile_ns(0.99),
            max: latencies.max_ns(),
        };
        latencies.clear();
        waits
    }
}

/// What is measured without a target.
const WITHOUT_TARGET: (Op, u32) = (Op::Read, 950);

/// What the scheduler did for its latency target in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// How it stood at the end of the slice.
    pub status: LoadStatus,
    /// The percentile that the target is about, in nanoseconds, of all commands of its kind that
    /// succeeded in the slice; of reads the 95th without a target, 0 if there were none.
    pub percentile_nanos: u64,
}

/// Fills the corrections of a trace.
#[derive(Clone, Debug)]
struct Corrections {
    groups: Vec<IoGroup>,
    /// The operation and the percentile, in thousandths, that are measured.
    measured: (Op, u32),
    latencies: Latencies,
}

impl Corrections {
    fn new(groups: Vec<IoGroup>) -> Result<Self, CreationError> {
        Ok(Self { groups, measured: WITHOUT_TARGET, latencies: Latencies::new()? })
    }

    fn completed(&mut self, op: Op, disk_nanos: u64) {
        if op == self.measured.0 {
            self.latencies.record(disk_nanos);
        }
    }

    fn end_slice(&mut self, now: Time) -> Correction {
        let quantile = f64::from(self.measured.1) / 1000.0;
        let known = self.latencies.count() > 0;
        let percentile_nanos = if known { self.latencies.quantile_ns(quantile) } else { 0 };
        self.latencies.clear();
        let status = LoadStatus::of(&self.groups, now);
        let target = status.target.map(|status| status.target);
        self.measured = target.map_or(WITHOUT_TARGET, |target| (target.op(), target.permille()));
        Correction { status, percentile_nanos }
    }
}
