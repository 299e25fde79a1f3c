//! The loop of a run: from one moment at which something happens to the next.

use forebay_core::{
    DiskModel, DiskRates, DiskTime, LATENCY_GOAL_DEFAULT, Policy, QueueDiscipline, Time,
    saturating_nanos,
};
use forebay_load::Rng;
use forebay_load::generator::Generator;
use forebay_load::job_file::JobFile;
use forebay_load::recorder::{Measured, Recorder};
use forebay_load::results::model::{Properties, PropertiesSource};

use super::agenda::{Agenda, Item};
use super::alarms::Alarms;
use super::config::{Polling, SimulationConfig};
use super::engine::{Engine, Returned};
use super::environment::Environment;
use super::error::SimulationError;
use super::layout::{Extent, lay_out};
use super::outcome::{Outcome, Watch};
use super::scheduler::Scheduler;
use super::shard::{Shard, ShardCancels, ShardHabits, ShardJob, ShardLongTurns, ShardStalls};
use super::trace::Tracer;
use crate::invariants::Invariants;

/// So many steps without any time between them are no progress.
const STEPS_AT_ONCE_MAX: u32 = 1 << 22;
/// Sets the random numbers of stalls apart from those of the load.
const STALLS_PATH: u64 = u64::MAX;
/// Sets the random numbers of long turns apart from both.
const LONG_TURNS_PATH: u64 = u64::MAX - 1;
/// Sets the random numbers of cancelled requests apart.
const CANCELS_PATH: u64 = u64::MAX - 2;
/// Sets the random numbers of what goes wrong with transfers apart.
const ENGINE_PATH: u64 = u64::MAX - 3;

/// A run that has not begun.
pub struct Simulation {
    pub(super) jobs: JobFile,
    pub(super) seed: u64,
    pub(super) policy: Policy,
    pub(super) order: QueueDiscipline,
    pub(super) properties: Properties,
    pub(super) scheduler: Scheduler,
    pub(super) shards: Vec<Shard>,
    pub(super) env: Environment,
    pub(super) watch: Watch,
    agenda: Agenda,
    now: Time,
    steps_at_once: u32,
}

impl Simulation {
    /// Sets a run up.
    ///
    /// # Errors
    /// The configuration is contradictory, or does not fit the disk.
    pub fn new(config: SimulationConfig) -> Result<Self, SimulationError> {
        check_config(&config)?;
        let rates = config.disk.rates();
        let true_model = DiskModel::from_rates(&rates).map_err(SimulationError::Model)?;
        let model = config.scheduler.model.clone().unwrap_or_else(|| true_model.clone());
        let policy = policy(&config);
        let agenda = Agenda::new(&config)?;
        let extents = lay_out(&config.jobs, config.capacity)?;
        let crews = crews(&config);
        let numbers: Vec<u32> = crews.iter().filter_map(|crew| crew.first().copied()).collect();
        let scheduler =
            Scheduler::new(&config.jobs, &config.scheduler, (&model, policy), numbers.len())
                .map_err(SimulationError::Classes)?;
        let properties = config.properties.clone().unwrap_or_else(|| properties(&rates));
        let from = Time::from_nanos(saturating_nanos(config.warmup));
        let measured = Measured { from, to: from.plus_nanos(saturating_nanos(config.duration)) };
        let builder =
            ShardBuilder { config: &config, extents: &extents, measured, agenda: &agenda };
        let shards = crews
            .iter()
            .enumerate()
            .map(|(index, crew)| builder.shard((index, crew), crews.len(), &scheduler))
            .collect::<Result<Vec<_>, _>>()?;
        let tracer = config.trace_buckets.map(|slices| {
            let names = config.jobs.classes.iter().map(|class| class.name.clone());
            Tracer::new(names, (measured.to.as_nanos(), slices), measured.from)
        });
        let tracer = tracer.transpose().map_err(|error| no_memory(&error))?;
        let invariants =
            config.check_invariants.then(|| Invariants::new(&config, &model, policy, &numbers));
        let mut alarms = Alarms::new(numbers.len());
        (0..numbers.len()).for_each(|shard| alarms.set(shard, Time::ZERO));
        let env = Environment {
            engine: Engine::new(
                config.disk,
                config.transfer_faults,
                Rng::new(config.seed, &[ENGINE_PATH]),
            ),
            alarms,
            polling: config.polling,
            takes_last: config.takes_last,
            wake_up_nanos: saturating_nanos(config.wake_up_latency),
            measured,
            classes: scheduler.groups.iter().map(|group| group.classes.clone()).collect(),
            model,
            true_model,
            worth: DiskTime::ZERO,
            requests: 0,
            in_disk: 0,
            in_disk_max: 0,
            inside_disk: 0,
            tracer,
            invariants,
        };
        Ok(Self {
            jobs: config.jobs,
            seed: config.seed,
            policy,
            order: config.scheduler.order,
            properties,
            scheduler,
            shards,
            env,
            watch: Watch::new(measured),
            agenda,
            now: Time::ZERO,
            steps_at_once: 0,
        })
    }

    /// Has the run watched by `invariants` instead of its own.
    #[cfg(test)]
    pub(crate) fn watched_by(mut self, invariants: Invariants) -> Self {
        self.env.invariants = Some(invariants);
        self
    }

    /// Runs until the end of the measured part, or until all jobs have reached their limits.
    ///
    /// # Errors
    /// The clock does not move on, the disk does not keep its contract, or an invariant does not
    /// hold.
    pub fn run(mut self) -> Result<Outcome, SimulationError> {
        let end = self.env.measured.to;
        let mut ended = end;
        while let Some(now) = self.next_time().filter(|&now| now < end) {
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
        self.watch.look(ended, &self.shards);
        for shard in &mut self.shards {
            shard.finish(ended);
        }
        Ok(Outcome::of(self, ended))
    }

    /// When something happens next; `None` if nothing ever does.
    fn next_time(&self) -> Option<Time> {
        let disk = self.env.engine.disk.next_event().unwrap_or(Time::MAX);
        let next = disk.min(self.env.alarms.first_time());
        let next = next.min(self.agenda.next_time()).min(self.watch.next_time());
        (next < Time::MAX).then(|| next.max(self.now))
    }

    /// All that happens at `now`, and what follows from it at once.
    fn step(&mut self, now: Time) -> Result<(), SimulationError> {
        self.steps_at_once = if now > self.now { 0 } else { self.steps_at_once + 1 };
        if self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(SimulationError::Standstill(now));
        }
        self.now = now;
        if let Some(invariants) = &mut self.env.invariants {
            invariants.before_step(now, &self.scheduler);
        }
        self.watch.look(now, &self.shards);
        while let Some(item) = self.agenda.pop(now) {
            self.take_item(now, &item)?;
        }
        self.take_finished(now)?;
        while self.env.alarms.first_time() <= now {
            let shard = self.env.alarms.first();
            self.shards[shard].turn(now, &mut self.env);
            // Who asks for another turn at once has it in the next step, after the others.
            if self.env.alarms.get(shard) <= now {
                break;
            }
        }
        if let Some(invariants) = &mut self.env.invariants {
            let empty = self.env.inside_disk == 0;
            let checked = invariants.after_step(now, &self.scheduler, &self.shards, empty);
            checked.map_err(SimulationError::Invariant)?;
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
                let queue = (sent.dispatch.class.queue, sent.shard);
                invariants.finished(now, queue, sent.dispatch.ticket.index());
            }
            self.env.inside_disk -= 1;
            self.env.wake(now, sent.shard);
        }
        Ok(())
    }

    fn take_item(&mut self, now: Time, item: &Item) -> Result<(), SimulationError> {
        match item {
            Item::Start(index) => {
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
            Item::Stop(index) => {
                let jobs = self.shards.iter_mut().flat_map(|shard| &mut shard.jobs);
                for job in jobs.filter(|job| job.index == *index) {
                    job.is_stopped = true;
                    job.generator.iter_mut().for_each(Generator::stop);
                }
            }
            Item::Change(what) => self.change(now, what)?,
        }
        Ok(())
    }

    fn has_nothing_left(&self) -> bool {
        self.env.in_disk == 0
            && self.env.engine.disk.next_event().is_none()
            && self.agenda.next_time() == Time::MAX
            && self.shards.iter().all(Shard::has_nothing_left)
    }
}

/// Makes the shards of a run.
struct ShardBuilder<'a> {
    config: &'a SimulationConfig,
    extents: &'a [Vec<Extent>],
    measured: Measured,
    agenda: &'a Agenda,
}

impl ShardBuilder<'_> {
    fn shard(
        &self,
        (index, crew): (usize, &[u32]),
        count: usize,
        scheduler: &Scheduler,
    ) -> Result<Shard, SimulationError> {
        let config = self.config;
        let number = crew.first().copied().unwrap_or_default();
        let stalls = config.stalls.as_ref();
        let stalls = stalls.filter(|stalls| crew.iter().any(|shard| stalls.shards.contains(shard)));
        let stalls = stalls.map(|stalls| ShardStalls {
            one_in: stalls.one_in,
            nanos: saturating_nanos(stalls.length),
            rng: Rng::new(config.seed, &[STALLS_PATH, u64::from(number)]),
        });
        let long_turns = config.long_turns.as_ref();
        let long_turns = long_turns.filter(|turns| crew.iter().any(|s| turns.shards.contains(s)));
        let long_turns = long_turns.map(|turns| ShardLongTurns {
            one_in: turns.one_in,
            nanos: (saturating_nanos(turns.shortest), saturating_nanos(turns.longest)),
            rng: Rng::new(config.seed, &[LONG_TURNS_PATH, u64::from(number)]),
        });
        let first_tick = match config.polling {
            Polling::Events => Time::MAX,
            Polling::Tick(tick) => {
                Time::from_nanos((u128::from(tick) * index as u128 / count as u128) as u64)
            }
        };
        let mut jobs = Vec::new();
        for &number in crew {
            self.add_jobs(number, &mut jobs)?;
        }
        let cancels = config.cancels.map(|cancels| {
            let rng = Rng::new(config.seed, &[CANCELS_PATH, u64::from(number)]);
            ShardCancels::new(cancels.one_in, saturating_nanos(cancels.within), rng)
        });
        let work_nanos = config.coordinators.map_or(0, |threads| saturating_nanos(threads.work));
        let habits = ShardHabits { stalls, long_turns, cancels, work_nanos, first_tick };
        Ok(Shard::new(index, scheduler.join()?, jobs, habits))
    }

    fn add_jobs(&self, number: u32, jobs: &mut Vec<ShardJob>) -> Result<(), SimulationError> {
        for (index, job) in self.config.jobs.jobs.iter().enumerate() {
            let Some(position) = job.shards.iter().position(|&shard| shard == number) else {
                continue;
            };
            let generator = (!self.agenda.starts_later(index))
                .then(|| Generator::new(job, index, number, self.config.seed, Time::ZERO));
            jobs.push(ShardJob {
                index,
                class: job.class,
                shard: number,
                generator,
                recorder: Recorder::new(self.measured).map_err(|error| no_memory(&error))?,
                extent: self.extents[index][position],
                is_stopped: false,
                holds: self.config.holders.contains(&job.name),
            });
        }
        Ok(())
    }
}

fn check_config(config: &SimulationConfig) -> Result<(), SimulationError> {
    let is_job = |name: &&String| config.jobs.jobs.iter().any(|job| job.name == **name);
    if let Some(job) = config.holders.iter().find(|name| !is_job(name)) {
        return Err(SimulationError::Holder { job: job.clone() });
    }
    let zero = |field| Err(SimulationError::Zero(field));
    if config.duration.is_zero() {
        return zero("the duration");
    }
    if config.polling == Polling::Tick(0) {
        return zero("the tick of polling");
    }
    if config.coordinators.is_some_and(|coordinators| coordinators.queues == 0) {
        return zero("the number of I/O queues");
    }
    if config.cancels.is_some_and(|cancels| cancels.one_in == 0) {
        return zero("the number of requests of which one is cancelled");
    }
    if config.stalls.as_ref().is_some_and(|stalls| stalls.one_in == 0) {
        return zero("the number of polls of which one stalls");
    }
    if config.long_turns.as_ref().is_some_and(|turns| turns.one_in == 0) {
        return zero("the number of turns of which one is long");
    }
    Ok(())
}

pub(crate) fn policy(config: &SimulationConfig) -> Policy {
    config.scheduler.policy.unwrap_or_else(|| Policy::PaceWindow {
        latency_goal: LATENCY_GOAL_DEFAULT,
        base_latency: Some(config.disk.base_latency()),
    })
}

/// What the scheduler knows of a disk of which it knows the truth.
fn properties(rates: &DiskRates) -> Properties {
    Properties {
        source: PropertiesSource::Simulated,
        read_iops: Some(rates.read_iops),
        read_bandwidth: Some(rates.read_bandwidth),
        write_iops: Some(rates.write_iops),
        write_bandwidth: Some(rates.write_bandwidth),
    }
}

/// The numbers of the shards that have something to do, ascending, by the I/O queue that they use.
fn crews(config: &SimulationConfig) -> Vec<Vec<u32>> {
    let jobs = &config.jobs.jobs;
    let mut numbers: Vec<u32> = jobs.iter().flat_map(|job| job.shards.iter().copied()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let count = numbers.len();
    let queues = config.coordinators.map_or(count, |coordinators| coordinators.queues.min(count));
    (0..queues)
        .map(|queue| numbers[queue * count / queues..(queue + 1) * count / queues].to_vec())
        .collect()
}

fn no_memory(error: &dyn core::fmt::Display) -> SimulationError {
    SimulationError::Memory(error.to_string())
}
