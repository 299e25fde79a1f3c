//! Runs a load: a thread for each shard of the job file, and this one to watch them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::Waker;
use std::thread;

use forebay::LOCAL_DEPTH_MIN;
use forebay::engine::{Backend, Engine, EngineConfig};

use super::board::Board;
use super::clock::Clock;
use super::load::LoadOutcome;
use super::plan::Plan;
use super::progress::RunLine;
use super::results::{self, Run};
use super::scheduler::Scheduled;
use super::seat::{News, Seat, engine_config};
use super::topology::Topology;
use super::watch::{Observed, Watch};
use crate::console::note;
use crate::failure::Failure;

/// Runs the plan.
pub(super) fn run(plan: &Plan<'_>) -> Result<Run, Failure> {
    let mut shards: Vec<u32> = plan.data().map(|(_, data)| data.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    let board = Board::new(shards.len(), plan.jobs.jobs.len());
    let line = RunLine::new(plan.title);
    let coordinates = plan.topology == Topology::Coordinators;
    let engine = if coordinates { engine_config(plan, None)? } else { EngineConfig::default() };
    let scheduled = &Scheduled::new(plan, shards.len(), engine)?;
    let (asked, got) = (plan.io_queues, scheduled.disk.io_queues());
    if coordinates && got < asked {
        note(format_args!(
            "{got} I/O queues instead of {asked}: the disk's window holds too few requests of \
             4 KiB for {LOCAL_DEPTH_MIN} on each, as `forebay info` explains"
        ));
    }
    let _showing = plan.metrics.map(|metrics| metrics.show(&scheduled.scheduler));
    thread::scope(|scope| {
        let (sender, news) = channel();
        let mut crew = Crew { starts: Vec::new(), scheduled, news };
        for (seat, &number) in shards.iter().enumerate() {
            let (start, on_start) = channel();
            crew.starts.push(start);
            let seats = shards.len();
            let is_watched = line.is_shown();
            let seat = Seat { number, seat, seats, is_watched, plan, scheduled, board: &board };
            let news = sender.clone();
            thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn_scoped(scope, move || seat.run(&on_start, &news))
                .map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))?;
        }
        drop(sender);
        crew.lead(plan, &board, &line)
    })
}

/// The shards as the watching thread sees them. A shard ends when its sender here is dropped.
struct Crew<'a> {
    starts: Vec<Sender<Clock>>,
    scheduled: &'a Scheduled,
    news: Receiver<News>,
}

impl Crew<'_> {
    fn lead(self, plan: &Plan<'_>, board: &Board, line: &RunLine) -> Result<Run, Failure> {
        let (wakers, backend) = self.wait_until_ready(plan)?;
        board.introduce(wakers);
        let clock = Clock::start();
        for start in &self.starts {
            // A shard that is gone has said why, or will be missed at the end.
            let _ = start.send(clock);
        }
        let watch = Watch::new(clock, plan.measured(), &self.scheduled.disk, board, line);
        let observed = self.watch(plan, watch)?;
        plan.interrupt.check()?;
        if observed.outcomes.len() < self.starts.len() {
            return Err(Failure::Run(String::from("a shard ended without results: a defect")));
        }
        let io_queues = match plan.topology {
            Topology::PerThread => self.starts.len(),
            Topology::Shared => 1,
            Topology::Coordinators => self.scheduled.disk.io_queues(),
        };
        Ok(results::of(plan, (backend, io_queues), observed))
    }

    /// Waits until all threads are ready: how to wake them, and what does the I/O.
    fn wait_until_ready(&self, plan: &Plan<'_>) -> Result<(Vec<Waker>, Backend), Failure> {
        let mut wakers: Vec<Option<Waker>> = vec![None; self.starts.len()];
        let mut io = None;
        for _ in 0..self.starts.len() {
            match self.news.recv() {
                Ok(News::Ready(ready)) => {
                    io = io.or(ready.backend);
                    if let Some(waker) = wakers.get_mut(ready.seat) {
                        *waker = Some(ready.waker);
                    }
                }
                Ok(News::Failed(failure)) => return Err(failure),
                _ => break,
            }
        }
        let (backend, fallback) = match io {
            Some(io) => io,
            None => io_of_others(plan)?,
        };
        if let Some(reason) = fallback {
            note(format_args!("I/O is done by threads, since {reason}"));
        }
        let wakers: Option<Vec<Waker>> = wakers.into_iter().collect();
        let missing = || Failure::Run(String::from("a shard did not begin: a defect"));
        Ok((wakers.ok_or_else(missing)?, backend))
    }

    /// Watches until all shards have ended.
    fn watch(&self, plan: &Plan<'_>, mut watch: Watch<'_>) -> Result<Observed, Failure> {
        let mut outcomes: Vec<LoadOutcome> = Vec::new();
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

/// What does the I/O of threads that send it to others, and why that is not io_uring: an engine
/// like those of the I/O threads knows.
fn io_of_others(plan: &Plan<'_>) -> Result<(Backend, Option<String>), Failure> {
    let engine = Engine::new(&engine_config(plan, None)?);
    let engine = engine.map_err(|error| Failure::Run(format!("cannot do I/O: {error}")))?;
    Ok((engine.backend(), engine.fallback_reason().map(str::to_owned)))
}
