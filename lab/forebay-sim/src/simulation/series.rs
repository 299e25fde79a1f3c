//! A run over time.

use forebay_core::{ClassCounters, Time};
use forebay_load::results::series::SeriesLook;

use super::setup::Simulation;
use super::watch::{counters, look};

impl Simulation {
    /// Ends a sample if it is time to, or if the run `is_over`.
    pub(super) fn end_sample(&mut self, now: Time, is_over: bool) {
        if !self.series.as_ref().is_some_and(|series| is_over || now >= series.sample_ends()) {
            return;
        }
        let classes = (0..self.jobs.classes.len()).map(|class| self.counted_of(class)).collect();
        let disk = look(now, counters(&self.shards), &self.scheduler);
        let turn_overdue_nanos = self.turn_overdue_nanos(now);
        let seen = SeriesLook { disk, classes, turn_overdue_nanos, ..SeriesLook::default() };
        let Some(series) = &mut self.series else { return };
        for job in self.shards.iter_mut().flat_map(|shard| &mut shard.jobs) {
            if let Some(slice) = job.recorder.slice() {
                series.add(job.index, slice);
                slice.clear();
            }
        }
        series.end_sample(now, seen);
    }

    /// What all queues have counted of a class of the job file.
    fn counted_of(&self, class: usize) -> ClassCounters {
        let mut sum = ClassCounters::default();
        for shard in &self.shards {
            for (queue, ids) in shard.driver.queues().zip(&self.env.classes) {
                let counted = queue.classes().get(ids[class].index());
                let counted = counted.filter(|counted| counted.are_of(ids[class]));
                counted.into_iter().for_each(|counted| sum.merge(counted));
            }
        }
        sum
    }
}
