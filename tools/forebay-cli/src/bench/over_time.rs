//! A run over time, sample by sample.

use forebay::Disk;
use forebay::metrics::{DeviceTraffic, Traffic};
use forebay_core::{ClassCounters, Time};
use forebay_load::results::consumption::DiskSample;
use forebay_load::results::series::{Series, SeriesBuilder, SeriesLook};

use super::plan::Plan;
use super::run_status::RunStatus;
use super::scheduler::Scheduled;

/// From the end of a sample until all threads have told what they did in it, as a part of its
/// length: one that tells later counts in the next one.
const SAMPLE_DELAY_PART: u64 = 10;

/// The run over time.
pub(super) struct OverTime<'a> {
    pub(super) builder: SeriesBuilder,
    pub(super) scheduled: &'a Scheduled,
    pub(super) plan: &'a Plan<'a>,
}

impl OverTime<'_> {
    /// Looks if a sample has ended; when to look next. The last one ends when all threads have.
    pub(super) fn look(&mut self, now: Time, status: &RunStatus) -> Time {
        if now >= self.due() && now < self.plan.measured().to {
            self.end_sample(now, status);
        }
        self.due()
    }

    /// The whole of it; the run has ended at `now`.
    pub(super) fn finish(mut self, now: Time, status: &RunStatus) -> Series {
        self.add_slices(status);
        self.builder.end_sample(now, self.seen());
        self.builder.finish()
    }

    /// A little after the sample has ended.
    fn due(&self) -> Time {
        self.builder.sample_ends().plus_nanos(self.builder.sample_nanos() / SAMPLE_DELAY_PART)
    }

    fn add_slices(&mut self, status: &RunStatus) {
        for (job, slice) in status.slices.take().iter().enumerate() {
            slice.iter().for_each(|slice| self.builder.add(job, slice));
        }
    }

    fn end_sample(&mut self, now: Time, status: &RunStatus) {
        self.add_slices(status);
        // samples end where those of the threads do, also where the look at them is late
        let nanos = self.builder.sample_nanos();
        let last = Time::from_nanos(now.as_nanos() / nanos * nanos);
        let ended = if last < self.builder.sample_ends() { now } else { last };
        self.builder.end_sample(ended, self.seen());
    }

    fn seen(&self) -> SeriesLook {
        let snapshot = self.scheduled.scheduler.snapshot();
        let counted = |name: &String| {
            let mut sum = ClassCounters::default();
            let classes = snapshot.disks.iter().flat_map(|disk| &disk.classes);
            classes
                .filter(|class| class.name == *name)
                .for_each(|class| sum.merge(&class.counters));
            sum
        };
        let traffic = |of: fn(&DeviceTraffic) -> Traffic| {
            let seen = snapshot.disks.iter().map(|disk| of(&disk.traffic));
            let seen = seen.map(|seen| [seen.done, seen.unscheduled, seen.of_this_process]);
            seen.fold([0; 3], |[all, past, own], [a, p, o]| [all + a, past + p, own + o])
        };
        let overdue = snapshot.disks.iter().map(|disk| disk.turn_overdue_nanos);
        SeriesLook {
            disk: look(&self.scheduled.disk),
            classes: self.plan.jobs.classes.iter().map(|class| counted(&class.name)).collect(),
            turn_overdue_nanos: overdue.max().unwrap_or(0),
            written: traffic(|seen| seen.written),
            read: traffic(|seen| seen.read),
        }
    }
}

/// What is seen of a disk now.
pub(super) fn look(disk: &Disk) -> DiskSample {
    DiskSample { queues: disk.counters(), load: disk.load_status() }
}
