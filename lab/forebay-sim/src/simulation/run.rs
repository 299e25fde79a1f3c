//! The loop of a run: from one moment at which something happens to the next.

use forebay_core::Time;
use forebay_load::generator::Generator;

use super::engine::Returned;
use super::error::SimulationError;
use super::event_queue::Event;
use super::outcome::Outcome;
use super::setup::Simulation;
use super::shard::Shard;
use crate::invariants::{QueueId, ShardState};

/// This many steps without any time between them are no progress.
const STEPS_AT_ONCE_MAX: u32 = 1 << 22;

impl Simulation {
    /// Runs until the end of the measured part, or until all jobs have reached their limits.
    ///
    /// # Errors
    /// The clock does not move on, the disk does not keep its contract, or an invariant does not
    /// hold.
    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        self.run_to_end(&mut |_, _| ())?;
        Ok(self.into_outcome())
    }

    /// The run; `before` is called at each time at which something happens.
    pub(super) fn run_to_end(
        &mut self,
        before: &mut dyn FnMut(&Self, Time),
    ) -> Result<(), SimulationError> {
        let end = self.env.measured.to;
        let mut ended = end;
        while let Some(now) = self.next_time().filter(|&now| now < end) {
            before(self, now);
            self.step(now)?;
            if self.has_nothing_left() {
                ended = self.now;
                break;
            }
        }
        self.now = ended;
        self.take_finished(ended)?;
        for shard in &mut self.shards {
            if shard.is_free(ended) {
                shard.take_returned(ended, &mut self.env);
            }
        }
        self.watch.look(ended, &self.shards, &self.scheduler, &*self.env.engine.disk);
        self.end_sample(ended, true);
        for shard in &mut self.shards {
            shard.finish(ended);
        }
        Ok(())
    }

    /// What has come of it, once it is over.
    pub(super) fn into_outcome(self) -> Outcome {
        let ended = self.now;
        Outcome::of(self, ended)
    }

    /// When something happens next; `None` if nothing ever does.
    fn next_time(&self) -> Option<Time> {
        let disk = self.env.engine.disk.next_event().unwrap_or(Time::MAX);
        let next = disk.min(self.env.alarms.first_time());
        let next = next.min(self.events.next_time()).min(self.watch.next);
        let sample = self.series.as_ref().map(|series| series.sample_ends());
        let next = sample.map_or(next, |ends| next.min(ends));
        (next < Time::MAX).then(|| next.max(self.now))
    }

    /// All that happens at `now`, and what follows from it at once.
    fn step(&mut self, now: Time) -> Result<(), SimulationError> {
        if now > self.now {
            self.steps_at_once = 0;
        }
        self.now = now;
        self.count_step()?;
        if let Some(invariants) = &mut self.env.invariants {
            invariants.before_step(now);
        }
        self.watch.look(now, &self.shards, &self.scheduler, &*self.env.engine.disk);
        self.end_sample(now, false);
        while let Some(event) = self.events.pop(now) {
            self.handle_event(now, &event)?;
        }
        self.take_finished(now)?;
        while self.env.alarms.first_time() <= now {
            let shard = self.env.alarms.first();
            self.count_step()?;
            self.shards[shard].turn(now, &mut self.env);
            // Who asks for another turn at once has it in the next step, after the others.
            if self.env.alarms.get(shard) <= now {
                break;
            }
        }
        if let Some(invariants) = &mut self.env.invariants {
            let disk_is_empty = self.env.counts.commands_in_disk == 0;
            let shards = self.shards.iter();
            let shards = shards
                .map(|shard| ShardState { driver: &shard.driver, is_free: shard.is_free(now) });
            invariants
                .after_step(now, &shards, disk_is_empty)
                .map_err(SimulationError::Invariant)?;
        }
        Ok(())
    }

    /// One more thing is done at this moment, which cannot go on for ever.
    fn count_step(&mut self) -> Result<(), SimulationError> {
        self.steps_at_once += 1;
        if self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(SimulationError::Standstill(self.now));
        }
        Ok(())
    }

    /// Brings finished commands to their shards.
    fn take_finished(&mut self, now: Time) -> Result<(), SimulationError> {
        while let Some(returned) = self.env.engine.pop(now) {
            let returned = returned.map_err(|id| SimulationError::Disk { at: now, id })?;
            let Returned { sent, .. } = returned;
            self.shards[sent.shard].returned(now, returned);
            if let Some(invariants) = &mut self.env.invariants {
                let queue = QueueId { group: sent.dispatch.class.queue, shard: sent.shard };
                invariants.finished(now, queue, sent.dispatch.ticket.index());
            }
            self.env.counts.commands_in_disk -= 1;
            self.env.wake(now, sent.shard);
        }
        Ok(())
    }

    fn handle_event(&mut self, now: Time, event: &Event) -> Result<(), SimulationError> {
        match event {
            Event::StartJob(index) => {
                let job = &self.jobs.jobs[*index];
                for shard in &mut self.shards {
                    let position = shard.index;
                    for shard_job in shard.jobs.iter_mut().filter(|job| job.index == *index) {
                        let generator =
                            Generator::new(job, *index, shard_job.shard, self.seed, now);
                        shard_job.generator = Some(generator);
                        self.env.wake(now, position);
                    }
                }
            }
            Event::StopJob(index) => {
                let jobs = self.shards.iter_mut().flat_map(|shard| &mut shard.jobs);
                for job in jobs.filter(|job| job.index == *index) {
                    job.is_stopped = true;
                    job.generator.iter_mut().for_each(Generator::stop);
                }
            }
            Event::Change(what) => self.change(now, what)?,
        }
        Ok(())
    }

    fn has_nothing_left(&self) -> bool {
        self.env.counts.parts_in_flight == 0
            && self.env.engine.disk.next_event().is_none()
            && self.events.next_time() == Time::MAX
            && self.shards.iter().all(Shard::has_nothing_left)
    }
}
