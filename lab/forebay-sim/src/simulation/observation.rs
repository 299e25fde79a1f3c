//! What a scrape of a run would find.

use core::time::Duration;

use forebay_core::{
    ClassCounters, DiskTime, IoGroup, LoadStatus, QueueCounters, Time, saturating_nanos,
};
use forebay_load::recorder::Latencies;

use super::error::SimulationError;
use super::outcome::Outcome;
use super::setup::Simulation;
use super::trace::Tracer;

/// What the scheduler of a run has counted so far, over all shards.
#[derive(Clone, Debug)]
pub struct Observation {
    /// When.
    pub at: Time,
    /// How many queues there are.
    pub queues: u32,
    /// All classes together.
    pub totals: QueueCounters,
    /// Name, shares and counters of each class, in the order of the job file.
    pub classes: Vec<(String, u32, ClassCounters)>,
    /// By class the times in the queue and in the disk since measuring began; none unless the run
    /// is [traced](crate::simulation::SimulationConfig::trace_buckets).
    pub latencies: Vec<[Latencies; 2]>,
    /// Whether the disk does what its figures say.
    pub load: LoadStatus,
    /// By how much the latest shard is later than it meant to poll, in nanoseconds.
    pub turn_overdue_nanos: u64,
    /// Disk time in the disk.
    pub in_flight: DiskTime,
    /// The most that may be unfinished there.
    pub window: DiskTime,
    /// What of it may wait there.
    pub effective_goal: DiskTime,
}

impl Simulation {
    /// As [`run`](Self::run); `observe` is shown every `period`, at least a nanosecond, what was
    /// counted. That does not change the run.
    ///
    /// # Errors
    /// As of [`run`](Self::run).
    pub fn run_observed(
        mut self,
        period: Duration,
        observe: &mut dyn FnMut(Observation),
    ) -> Result<Outcome, SimulationError> {
        let period = saturating_nanos(period).max(1);
        let mut next = Time::from_nanos(period);
        self.run_to_end(&mut |run, now| {
            while next <= now {
                observe(run.observation(next));
                next = next.plus_nanos(period);
            }
        })?;
        Ok(self.into_outcome())
    }

    fn observation(&self, at: Time) -> Observation {
        let groups = &self.scheduler.groups;
        let (mut totals, mut queues) = (QueueCounters::default(), 0);
        let mut counters = vec![ClassCounters::default(); self.jobs.classes.len()];
        for shard in &self.shards {
            for (queue, group) in shard.driver.queues().zip(groups) {
                queues += 1;
                totals.merge(&queue.counters());
                for (sum, &class) in counters.iter_mut().zip(&group.classes) {
                    queue.class(class).into_iter().for_each(|counted| sum.merge(counted));
                }
            }
        }
        let names = self.jobs.classes.iter().map(|class| (class.name.clone(), class.shares));
        let classes = names.zip(counters).map(|((name, shares), sum)| (name, shares, sum));
        let sum = |of: fn(&IoGroup) -> DiskTime| {
            groups.iter().fold(DiskTime::ZERO, |sum, group| sum.plus(of(&group.group)))
        };
        Observation {
            at,
            queues,
            totals,
            classes: classes.collect(),
            latencies: self.env.tracer.as_ref().map(Tracer::latencies).unwrap_or_default(),
            load: LoadStatus::of(groups.iter().map(|group| &group.group), at),
            turn_overdue_nanos: self.turn_overdue_nanos(at),
            in_flight: sum(IoGroup::in_flight),
            window: sum(IoGroup::window),
            effective_goal: sum(IoGroup::effective_goal),
        }
    }

    /// By how much the latest shard is behind its turn.
    pub(super) fn turn_overdue_nanos(&self, now: Time) -> u64 {
        let groups = self.scheduler.groups.iter();
        groups.map(|group| group.group.turn_overdue_nanos(now)).max().unwrap_or(0)
    }
}
