//! Runs a load: a thread for each shard, and this one to watch them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use forebay::engine::{Backend, BackendChoice, EngineWaker};
use forebay_core::{Order, Policy, Time, saturating_nanos};
use forebay_load::job_file::{Job, JobFile};
use forebay_load::recorder::Measured;
use forebay_load::results::model::RunResult;

use super::board::{Board, Wakers};
use super::clock::Clock;
use super::interrupt::Interrupt;
use super::progress::RunLine;
use super::results;
use super::scheduler::{Place, Scheduler};
use super::seat::{News, Seat};
use super::shard::ShardOutcome;
use super::storage::{JobData, Storage};
use super::watch::{Observed, Watch};
use crate::console::note;
use crate::disk::Disk;
use crate::failure::Failure;

/// What is run, and how.
pub(super) struct Plan<'a> {
    /// What the run is called while it goes on.
    pub(super) title: &'a str,
    pub(super) jobs: &'a JobFile,
    pub(super) storage: &'a Storage,
    pub(super) disk: &'a Disk,
    /// The scheduler's policy.
    pub(super) policy: Policy,
    /// In which order it serves classes.
    pub(super) order: Order,
    /// Whether there is a scheduler in this run.
    pub(super) is_scheduled: bool,
    pub(super) warmup: Duration,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    pub(super) backend: BackendChoice,
    pub(super) interrupt: &'a Interrupt,
}

impl Plan<'_> {
    /// The policy in force: without a scheduler everything goes at once.
    pub(super) fn policy_in_force(&self) -> Policy {
        if self.is_scheduled { self.policy } else { Policy::Open }
    }

    /// What each job works on, on each shard that runs it.
    pub(super) fn data(&self) -> impl Iterator<Item = (&Job, &JobData)> {
        self.storage.data.iter().filter_map(|data| {
            let job = self.jobs.jobs.get(data.job)?;
            job.shards.contains(&data.shard).then_some((job, data))
        })
    }

    /// The part of the run that is measured.
    pub(super) fn measured(&self) -> Measured {
        let from = Time::from_nanos(saturating_nanos(self.warmup));
        Measured { from, to: from.plus_nanos(saturating_nanos(self.duration)) }
    }
}

/// What comes of it.
pub(super) struct Run {
    pub(super) result: RunResult,
    /// How many requests failed, and what went wrong first.
    pub(super) failed: Option<(u64, String)>,
}

/// Runs the plan.
pub(super) fn run(plan: &Plan<'_>) -> Result<Run, Failure> {
    let mut shards: Vec<u32> = plan.data().map(|(_, data)| data.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    let board = Board::new(shards.len(), plan.jobs.jobs.len());
    let line = RunLine::new(plan.title);
    let scheduler = Scheduler::new(plan, shards.len())?;
    thread::scope(|scope| {
        let (sender, news) = channel();
        let mut crew = Crew { starts: Vec::new(), places: Vec::new(), news };
        for (seat, &number) in shards.iter().enumerate() {
            let places = scheduler.join().map_err(|error| Failure::Run(error.to_string()))?;
            crew.note_places(seat, &places);
            let (start, on_start) = channel();
            crew.starts.push(start);
            let seats = shards.len();
            let is_watched = line.is_shown();
            let seat = Seat { number, seat, seats, is_watched, plan, board: &board };
            let news = sender.clone();
            thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn_scoped(scope, move || seat.run(places, &on_start, &news))
                .map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))?;
        }
        drop(sender);
        crew.lead(plan, &board, &line)
    })
}

/// The shards as the watching thread sees them. A shard ends when its sender here is dropped.
struct Crew {
    starts: Vec<Sender<Clock>>,
    /// Their seats by lane and place in its I/O group.
    places: Vec<Vec<usize>>,
    news: Receiver<News>,
}

impl Crew {
    fn note_places(&mut self, seat: usize, places: &[Place]) {
        self.places.resize_with(places.len(), Vec::new);
        for (seats, place) in self.places.iter_mut().zip(places) {
            let index = place.queue.shard().index();
            if seats.len() <= index {
                seats.resize(index + 1, 0);
            }
            seats[index] = seat;
        }
    }

    fn lead(mut self, plan: &Plan<'_>, board: &Board, line: &RunLine) -> Result<Run, Failure> {
        let (engines, backend) = self.wait_until_ready()?;
        board.introduce(Wakers { engines, seats: std::mem::take(&mut self.places) });
        let clock = Clock::start();
        for start in &self.starts {
            // A shard that is gone has said why, or will be missed at the end.
            let _ = start.send(clock);
        }
        let observed = self.watch(plan, Watch::new(clock, plan.measured(), board, line))?;
        plan.interrupt.check()?;
        if observed.outcomes.len() < self.starts.len() {
            return Err(Failure::Run(String::from("a shard ended without results: a defect")));
        }
        Ok(results::of(plan, backend, observed))
    }

    /// Waits until all shards are ready: their engines by seat, and what these are.
    fn wait_until_ready(&self) -> Result<(Vec<EngineWaker>, Backend), Failure> {
        let mut engines: Vec<Option<EngineWaker>> = vec![None; self.starts.len()];
        let mut backend = Backend::Null;
        let mut fallback = None;
        for _ in 0..self.starts.len() {
            match self.news.recv() {
                Ok(News::Ready(ready)) => {
                    backend = ready.backend;
                    fallback = ready.fallback.or(fallback);
                    if let Some(engine) = engines.get_mut(ready.seat) {
                        *engine = Some(ready.waker);
                    }
                }
                Ok(News::Failed(failure)) => return Err(failure),
                _ => break,
            }
        }
        if let Some(reason) = fallback {
            note(format_args!("I/O is done by threads, since {reason}"));
        }
        let engines: Option<Vec<EngineWaker>> = engines.into_iter().collect();
        let missing = || Failure::Run(String::from("a shard did not begin: a defect"));
        Ok((engines.ok_or_else(missing)?, backend))
    }

    /// Watches until all shards have ended.
    fn watch(&self, plan: &Plan<'_>, mut watch: Watch<'_>) -> Result<Observed, Failure> {
        let mut outcomes: Vec<ShardOutcome> = Vec::new();
        let mut failure = None;
        loop {
            if plan.interrupt.is_raised() {
                watch.board.stop();
            }
            let next_look = watch.look(plan.jobs);
            match self.news.recv_timeout(next_look) {
                Ok(News::Done(outcome)) => {
                    watch.measured_part_ends();
                    outcomes.push(*outcome);
                }
                Ok(News::Failed(error)) => {
                    failure = Some(error);
                    watch.board.stop();
                }
                Ok(News::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        outcomes.sort_by_key(|outcome| outcome.shard);
        failure.map_or_else(|| Ok(watch.observed(outcomes)), Err)
    }
}
