//! What a run needs before it begins.

use forebay_core::{DiskModel, DiskRates, IoGroup, Policy, ServiceOrder, Time, saturating_nanos};
use forebay_load::Rng;
use forebay_load::generator::Generator;
use forebay_load::job_file::JobFile;
use forebay_load::recorder::{MeasuredInterval, Recorder};
use forebay_load::results::model::{Properties, PropertiesSource};
use forebay_load::results::series::SeriesBuilder;

use super::alarms::Alarms;
use super::engine::Engine;
use super::environment::{Counts, Environment};
use super::error::SimulationError;
use super::event_queue::EventQueue;
use super::layout::{Extent, areas, lay_out};
use super::scheduler::Scheduler;
use super::shard::{Shard, ShardCancels, ShardHabits, ShardJob, ShardLongTurns, ShardStalls};
use super::trace::Tracer;
use super::watch::Watch;
use crate::config::{Polling, SimulationConfig};
use crate::disk::SimDisk;
use crate::file_system::Mounted;
use crate::invariants::Invariants;

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
    pub(super) order: ServiceOrder,
    pub(super) properties: Properties,
    pub(super) scheduler: Scheduler,
    pub(super) shards: Vec<Shard>,
    pub(super) env: Environment,
    pub(super) watch: Watch,
    /// The run over time, if that was asked for.
    pub(super) series: Option<SeriesBuilder>,
    pub(super) events: EventQueue,
    pub(super) now: Time,
    pub(super) steps_at_once: u32,
}

impl Simulation {
    /// Sets a run up.
    ///
    /// # Errors
    /// The configuration is contradictory, or does not fit the disk.
    pub fn new(mut config: SimulationConfig) -> Result<Self, SimulationError> {
        check_config(&config)?;
        let rates = config.disk.rates();
        let true_model = config.disk.model().map_err(SimulationError::Model)?;
        let model = config.scheduler.model.clone().unwrap_or_else(|| true_model.clone());
        let policy = config.policy();
        config.jobs.jobs.iter_mut().for_each(|job| *job = job.in_steps(&model, policy));
        let events = EventQueue::new(&config)?;
        let by_queue = shards_by_queue(&config);
        let scheduler =
            Scheduler::new(&config.jobs, &config.scheduler, (&model, policy), by_queue.len())
                .map_err(SimulationError::Classes)?;
        let measured = measured(&config);
        let extents = lay_out(&config.jobs, config.capacity)?;
        let areas = areas(&extents);
        let builder = ShardBuilder { config: &config, extents, measured, events: &events };
        let shards = builder.shards(&by_queue, &scheduler)?;
        let tracer = tracer(&config, measured, &scheduler)?;
        let series = series(&config, measured)?;
        let invariants =
            config.check_invariants.then(|| invariants(&config, &model, scheduler.io_groups()));
        let disk: Box<dyn SimDisk> = match config.file_system {
            Some(options) => Box::new(Mounted::new(config.disk, options, areas)),
            None => config.disk,
        };
        let env = Environment {
            tracer,
            invariants,
            engine: Engine::new(
                disk,
                config.transfer_faults,
                Rng::new(config.seed, &[ENGINE_PATH]),
            ),
            alarms: Alarms::all_at(Time::ZERO, shards.len()),
            polling: config.polling,
            takes_last: config.takes_last,
            wake_up_nanos: saturating_nanos(config.wake_up_latency),
            measured,
            classes: scheduler.groups.iter().map(|group| group.classes.clone()).collect(),
            model,
            true_model,
            counts: Counts::default(),
        };
        Ok(Self {
            jobs: config.jobs,
            seed: config.seed,
            policy,
            order: config.scheduler.order,
            properties: config.properties.unwrap_or_else(|| properties(&rates)),
            scheduler,
            shards,
            env,
            watch: Watch::new(measured),
            series,
            events,
            now: Time::ZERO,
            steps_at_once: 0,
        })
    }
}

/// Makes the shards of a run.
struct ShardBuilder<'a> {
    config: &'a SimulationConfig,
    extents: Vec<Vec<Extent>>,
    measured: MeasuredInterval,
    events: &'a EventQueue,
}

impl ShardBuilder<'_> {
    /// The shards of each I/O queue as one.
    fn shards(
        &self,
        by_queue: &[Vec<u32>],
        scheduler: &Scheduler,
    ) -> Result<Vec<Shard>, SimulationError> {
        let numbers = by_queue.iter().enumerate();
        numbers.map(|numbers| self.shard(numbers, by_queue.len(), scheduler)).collect()
    }

    fn shard(
        &self,
        (index, numbers): (usize, &Vec<u32>),
        count: usize,
        scheduler: &Scheduler,
    ) -> Result<Shard, SimulationError> {
        let config = self.config;
        let number = numbers.first().copied().unwrap_or_default();
        let stalls = config.stalls.as_ref();
        let stalls =
            stalls.filter(|stalls| numbers.iter().any(|shard| stalls.shards.contains(shard)));
        let stalls = stalls.map(|stalls| ShardStalls {
            one_in: stalls.one_in,
            nanos: saturating_nanos(stalls.length),
            rng: Rng::new(config.seed, &[STALLS_PATH, u64::from(number)]),
        });
        let long_turns = config.long_turns.as_ref();
        let long_turns =
            long_turns.filter(|turns| numbers.iter().any(|s| turns.shards.contains(s)));
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
        for &number in numbers {
            self.add_jobs(number, &mut jobs)?;
        }
        let cancels = config.cancels.map(|cancels| {
            let rng = Rng::new(config.seed, &[CANCELS_PATH, u64::from(number)]);
            ShardCancels::new(cancels.one_in, saturating_nanos(cancels.within), rng)
        });
        let coordinates = config.coordinators.map(|threads| saturating_nanos(threads.work));
        let habits = ShardHabits { stalls, long_turns, cancels, coordinates, first_tick };
        Ok(Shard::new(index, scheduler.join()?, jobs, habits))
    }

    fn add_jobs(&self, number: u32, jobs: &mut Vec<ShardJob>) -> Result<(), SimulationError> {
        for (index, job) in self.config.jobs.jobs.iter().enumerate() {
            let Some(position) = job.shards.iter().position(|&shard| shard == number) else {
                continue;
            };
            let generator = (!self.events.starts_later(index))
                .then(|| Generator::new(job, index, number, self.config.seed, Time::ZERO));
            let mut recorder = Recorder::new(self.measured).map_err(|error| no_memory(&error))?;
            if self.config.series {
                recorder.record_slices().map_err(|error| no_memory(&error))?;
            }
            jobs.push(ShardJob {
                index,
                class: job.class,
                shard: number,
                generator,
                recorder,
                extent: self.extents[index][position],
                is_stopped: false,
                holds: self.config.holders.contains(&job.name),
            });
        }
        Ok(())
    }
}

/// The part of a run that is measured: all after the warm-up.
fn measured(config: &SimulationConfig) -> MeasuredInterval {
    let from = Time::from_nanos(saturating_nanos(config.warmup));
    MeasuredInterval { from, to: from.plus_nanos(saturating_nanos(config.duration)) }
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
    if config.file_system.is_some_and(|file_system| file_system.in_flight == 0) {
        return zero("the number of discards in the disk");
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

/// What the scheduler knows of a disk of which it knows the truth.
fn properties(rates: &DiskRates) -> Properties {
    Properties {
        source: PropertiesSource::Simulated,
        read_iops: Some(rates.read_iops),
        read_bandwidth: Some(rates.read_bandwidth),
        write_iops: Some(rates.write_iops),
        write_bandwidth: Some(rates.write_bandwidth),
        region: None,
        warnings: Vec::new(),
    }
}

/// The numbers of the shards that have something to do, ascending, by the I/O queue that they use.
fn shards_by_queue(config: &SimulationConfig) -> Vec<Vec<u32>> {
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

/// What watches a run of this configuration in these I/O groups.
pub(super) fn invariants(
    config: &SimulationConfig,
    model: &DiskModel,
    groups: Vec<IoGroup>,
) -> Invariants {
    let by_queue = shards_by_queue(config);
    let numbers = by_queue.iter().filter_map(|numbers| numbers.first().copied()).collect();
    Invariants::new(config, model, groups, numbers)
}

fn tracer(
    config: &SimulationConfig,
    measured: MeasuredInterval,
    scheduler: &Scheduler,
) -> Result<Option<Tracer>, SimulationError> {
    let tracer = config.trace_buckets.map(|slices| {
        let names = config.jobs.classes.iter().map(|class| class.name.clone());
        let length = measured.to.as_nanos();
        Tracer::new(names, (length, slices), measured.from, scheduler.io_groups())
    });
    tracer.transpose().map_err(|error| no_memory(&error))
}

fn series(
    config: &SimulationConfig,
    measured: MeasuredInterval,
) -> Result<Option<SeriesBuilder>, SimulationError> {
    let series = config.series.then(|| SeriesBuilder::new(&config.jobs, measured));
    series.transpose().map_err(|error| no_memory(&error))
}

fn no_memory(error: &dyn core::fmt::Display) -> SimulationError {
    SimulationError::Memory(error.to_string())
}
