//! What is seen of a run from outside, while it goes on.

use std::time::Duration;

use forebay::Disk;
use forebay_core::{Time, saturating_nanos};
use forebay_load::job_file::JobFile;
use forebay_load::recorder::MeasuredInterval;
use forebay_load::results::consumption::{BusiestSecond, DiskSample};
use forebay_load::results::series::Series;
use rustix::time::{ClockId, clock_gettime};

use super::clock::Clock;
use super::load::LoadOutcome;
use super::over_time::{OverTime, look};
use super::progress::RunProgress;
use super::run_status::RunStatus;

/// How often the run is looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// Looks at a run every now and then.
pub(super) struct Watch<'a> {
    clock: Clock,
    measured: MeasuredInterval,
    disk: &'a Disk,
    pub(super) status: &'a RunStatus,
    line: &'a RunProgress,
    line_due: Time,
    busiest: BusiestSecond,
    /// When the measured part began and ended: processor time, and what was seen of the disk.
    ends: [Option<(Duration, DiskSample)>; 2],
    /// The run over time, if that is asked for.
    pub(super) over_time: Option<OverTime<'a>>,
}

/// What was seen of a run, and what its threads brought home.
pub(super) struct Observed {
    pub(super) outcomes: Vec<LoadOutcome>,
    /// Processor time of the program in the measured part.
    pub(super) processor: Duration,
    /// Disk time dispatched per second in the busiest second, in seconds.
    pub(super) consumption_max: f64,
    /// What was seen of the disk when the measured part began and ended.
    pub(super) samples: [DiskSample; 2],
    /// The run over time, if that was asked for.
    pub(super) series: Option<Series>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        clock: Clock,
        measured: MeasuredInterval,
        disk: &'a Disk,
        status: &'a RunStatus,
        line: &'a RunProgress,
    ) -> Self {
        Self {
            clock,
            measured,
            disk,
            status,
            line,
            line_due: Time::ZERO.plus_nanos(saturating_nanos(line.period())),
            busiest: BusiestSecond::default(),
            ends: [None, None],
            over_time: None,
        }
    }

    /// Looks, and says how long to wait before the next look.
    pub(super) fn look(&mut self, jobs: &JobFile) -> Duration {
        let now = self.clock.now();
        let MeasuredInterval { from, to } = self.measured;
        if now >= from && now <= to {
            self.busiest.look(now, self.disk.counters().consumption);
        }
        if now >= from {
            self.ends[0].get_or_insert_with(|| (processor_time(), look(self.disk)));
        }
        if now >= to {
            self.measured_part_ends();
        }
        if now >= self.line_due && now < to {
            self.line_due = now.plus_nanos(saturating_nanos(self.line.period()));
            if self.line.is_shown() {
                self.line.show(to.since(now), jobs, &self.status.recent.take());
            } else {
                self.line.tell(to.since(now));
            }
        }
        let sample = self.over_time.as_mut().map(|over_time| over_time.look(now, self.status));
        let milestone =
            [from, to].into_iter().chain(sample).filter(|&at| at > now).min().unwrap_or(Time::MAX);
        now.plus_nanos(saturating_nanos(PERIOD)).min(milestone).since(now)
    }

    /// Stops counting what belongs to the measured part.
    pub(super) fn measured_part_ends(&mut self) {
        self.ends[1].get_or_insert_with(|| (processor_time(), look(self.disk)));
    }

    pub(super) fn observed(self, outcomes: Vec<LoadOutcome>) -> Observed {
        let (now, status) = (self.clock.now().min(self.measured.to), self.status);
        let series = self.over_time.map(|over_time| over_time.finish(now, status));
        let [(begin, before), (end, after)] = self.ends.map(Option::unwrap_or_default);
        Observed {
            outcomes,
            processor: end.saturating_sub(begin),
            consumption_max: self.busiest.rate_max().unwrap_or_else(|| self.busiest.rate()),
            samples: [before, after],
            series,
        }
    }
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
