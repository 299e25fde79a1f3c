//! The thread of a shard, up to the start of its run.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use forebay::engine::{Backend, DEPTH_MAX, Engine, EngineConfig, EngineWaker};
use forebay_core::{Op, Time};
use forebay_load::generator::Generator;
use forebay_load::job_file::Job;
use forebay_load::recorder::Recorder;

use super::affinity;
use super::board::Board;
use super::clock::Clock;
use super::runner::Plan;
use super::scheduler::Place;
use super::shard::{Lane, Shard, ShardJob, ShardOutcome, State, in_flight_max};
use super::storage::JobData;
use crate::failure::Failure;

/// More requests than this under way on one shard are a slip of the job file.
const IN_FLIGHT_MAX: u64 = 1 << 20;
/// Threads of a shard's engine where there is no io_uring.
const THREADS_MAX: u32 = 128;
/// How long what is in flight at the end may take.
const DROP_WAIT_MAX: Duration = Duration::from_secs(5);
/// The disk's requests are at most so many times smaller than the load's.
const PARTS_MIN_BYTES: u64 = 128 * 1024;

/// What a shard tells the watching thread.
pub(super) enum News {
    /// It can start.
    Ready(Ready),
    /// It has ended.
    Done(Box<ShardOutcome>),
    /// It cannot go on.
    Failed(Failure),
}

/// A shard that can start.
pub(super) struct Ready {
    pub(super) seat: usize,
    pub(super) waker: EngineWaker,
    pub(super) backend: Backend,
    /// Why there is no io_uring, where it was wanted most.
    pub(super) fallback: Option<String>,
}

/// A shard of a run, before it begins.
pub(super) struct Seat<'a> {
    /// The number of the shard.
    pub(super) number: u32,
    /// Its position among the shards that have something to do.
    pub(super) seat: usize,
    /// How many there are of these.
    pub(super) seats: usize,
    /// Whether somebody looks at what is recent.
    pub(super) is_watched: bool,
    pub(super) plan: &'a Plan<'a>,
    pub(super) board: &'a Board,
}

impl Seat<'_> {
    /// Gets ready, waits for the start, runs.
    pub(super) fn run(self, places: Vec<Place>, start: &Receiver<Clock>, news: &Sender<News>) {
        // Nobody listens only where the run has failed already.
        let _ = match self.try_run(places, start, news) {
            Ok(Some(outcome)) => news.send(News::Done(Box::new(outcome))),
            Ok(None) => Ok(()),
            Err(failure) => news.send(News::Failed(failure)),
        };
    }

    fn try_run(
        self,
        places: Vec<Place>,
        start: &Receiver<Clock>,
        news: &Sender<News>,
    ) -> Result<Option<ShardOutcome>, Failure> {
        let number = self.number;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Run(format!("shard {number} cannot do I/O: {error}"))
        };
        let depth_max = self.depth_max()?;
        let engine = Engine::new(&EngineConfig {
            backend: self.plan.backend,
            depth_max,
            threads_max: THREADS_MAX,
            drop_wait_max: DROP_WAIT_MAX,
        })
        .map_err(|error| failed(&error))?;
        // Threads of an engine run where the thread that made it may run.
        if engine.backend() != Backend::Threads {
            affinity::pin(self.seat, self.seats);
        }
        let mut lanes: Vec<Lane> = places.into_iter().map(Lane::new).collect();
        let jobs = self.jobs(&mut lanes)?;
        let fallback = engine.fallback_reason().map(str::to_owned);
        let ready =
            Ready { seat: self.seat, waker: engine.waker(), backend: engine.backend(), fallback };
        let _ = news.send(News::Ready(ready));
        let Ok(clock) = start.recv() else { return Ok(None) };
        let shard = Shard {
            number,
            seat: self.seat,
            engine,
            depth_max: depth_max as usize,
            lanes,
            jobs,
            measured: self.plan.measured(),
            clock,
            board: self.board,
            is_watched: self.is_watched,
            state: State::new(),
        };
        shard.run().map(Some).map_err(|error| failed(&error))
    }

    fn data(&self) -> impl Iterator<Item = (&Job, &JobData)> {
        self.plan.data().filter(|(_, data)| data.shard == self.number)
    }

    /// The jobs of the shard with all the memory that they need.
    fn jobs(&self, lanes: &mut [Lane]) -> Result<Vec<ShardJob>, Failure> {
        let no_memory = |error: &dyn std::fmt::Display| {
            Failure::Run(format!("no memory for the requests of shard {}: {error}", self.number))
        };
        let mut jobs = Vec::new();
        for (job, JobData { job: index, data, .. }) in self.data() {
            let index = *index;
            let generator = Generator::new(job, index, self.number, self.plan.seed, Time::ZERO);
            let recorder =
                Recorder::new(self.plan.measured()).map_err(|error| no_memory(&error))?;
            let data = data.clone();
            let mut shard_job = ShardJob::new((index, job), data, generator, recorder, self.number);
            let op = if job.kind.writes() { Op::Write } else { Op::Read };
            let len = u64::from(job.reqsize);
            let part_max = Lane::for_op(lanes, op).and_then(|lane| {
                let class = lane.class(job.class)?;
                lane.queue.split(class, op, len).next()
            });
            let part_max = part_max.map_or(len, |(_, len)| len);
            shard_job.prepare(job, part_max).map_err(|error| no_memory(&error))?;
            jobs.push(shard_job);
        }
        Ok(jobs)
    }

    /// How many requests the engine needs to take at once.
    fn depth_max(&self) -> Result<u32, Failure> {
        let requests = self.data().map(|(job, _)| in_flight_max(job));
        let requests = requests.fold(0, u64::saturating_add);
        if requests > IN_FLIGHT_MAX {
            return Err(Failure::Input(format!(
                "shard {} would have up to {requests} requests under way, and at most \
                 {IN_FLIGHT_MAX} are supported; lower `parallelism` or `batch`",
                self.number
            )));
        }
        let parts = self.data().map(|(job, _)| {
            in_flight_max(job).saturating_mul(u64::from(job.reqsize).div_ceil(PARTS_MIN_BYTES))
        });
        let parts = parts.fold(0, u64::saturating_add);
        Ok(parts.clamp(1, u64::from(DEPTH_MAX)) as u32)
    }
}
