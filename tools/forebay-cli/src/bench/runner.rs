//! Runs a load: a thread for each shard of the job file, and this one to watch them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use forebay::LOCAL_DEPTH_MIN;
use forebay::engine::{Backend, Engine, EngineConfig};
use forebay_core::Policy;
use forebay_load::results::series::SeriesBuilder;

use super::clock::Clock;
use super::load::LoadOutcome;
use super::load_thread::{LoadThread, ThreadEvent, engine_config};
use super::over_time::OverTime;
use super::plan::{Plan, Topology};
use super::progress::RunProgress;
use super::results::{self, Run};
use super::run_status::RunStatus;
use super::scheduler::Scheduled;

use super::watch::{Observed, Watch};
use crate::console::note;
use crate::failure::Failure;

/// The end of a run is after this part of it: (19, 20).
const EARLY: (u64, u64) = (19, 20);

/// Runs the plan.
pub(super) fn run(plan: &Plan<'_>) -> Result<Run, Failure> {
    let mut shards: Vec<u32> = plan.data().map(|(_, data)| data.shard).collect();
    shards.sort_unstable();
    shards.dedup();
    let status = RunStatus::new(shards.len(), plan.jobs.jobs.len());
    let line = RunProgress::new(plan.title);
    let coordinates = plan.topology == Topology::Coordinators;
    let engine = if coordinates { engine_config(plan, None)? } else { EngineConfig::default() };
    let scheduled = &Scheduled::new(plan, shards.len(), engine)?;
    let (wanted, actual) = (plan.io_queues, scheduled.disk.io_queues());
    if coordinates && actual < wanted {
        note(format_args!(
            "{actual} I/O queues instead of {wanted}: the disk's window holds too few requests of \
             4 KiB for {LOCAL_DEPTH_MIN} on each, as `forebay info` explains"
        ));
    }
    let series = plan.has_series.then(|| SeriesBuilder::new(plan.jobs, plan.measured()));
    let series = series
        .transpose()
        .map_err(|error| Failure::Run(format!("no memory for the run over time: {error}")))?;
    let sample_nanos = series.as_ref().map(SeriesBuilder::sample_nanos);
    let _published = plan.metrics.map(|metrics| {
        metrics.publish(&scheduled.scheduler, plan.policy_in_force() != Policy::Unlimited)
    });
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        let mut load_threads = LoadThreads { starts: Vec::new(), scheduled, events: receiver };
        for (index, &number) in shards.iter().enumerate() {
            let (start, on_start) = channel();
            load_threads.starts.push(start);
            let threads = shards.len();
            let is_watched = line.is_shown();
            let status = &status;
            let thread = LoadThread {
                number,
                index,
                threads,
                is_watched,
                sample_nanos,
                plan,
                scheduled,
                status,
            };
            let events = sender.clone();
            thread::Builder::new()
                .name(format!("shard-{number}"))
                .spawn_scoped(scope, move || thread.run(&on_start, &events))
                .map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))?;
        }
        drop(sender);
        load_threads.run(plan, (&status, series), &line)
    })
}

/// The shards as the watching thread sees them. A shard ends when its sender here is dropped.
struct LoadThreads<'a> {
    starts: Vec<Sender<Clock>>,
    scheduled: &'a Scheduled,
    events: Receiver<ThreadEvent>,
}

impl LoadThreads<'_> {
    fn run(
        self,
        plan: &Plan<'_>,
        (status, series): (&RunStatus, Option<SeriesBuilder>),
        line: &RunProgress,
    ) -> Result<Run, Failure> {
        let (wakers, backend) = self.wait_until_ready(plan)?;
        status.set_wakers(wakers);
        let clock = Clock::start();
        for start in &self.starts {
            // A shard that is gone has said why, or will be missed at the end.
            let _ = start.send(clock);
        }
        let over_time = series.map(|builder| OverTime { builder, scheduled: self.scheduled, plan });
        let mut watch = Watch::new(clock, plan.measured(), &self.scheduled.disk, status, line);
        watch.over_time = over_time;
        let observed = self.watch(plan, watch)?;
        plan.interrupt.check()?;
        if observed.outcomes.len() < self.starts.len() {
            return Err(Failure::Run(String::from(
                "internal error: a shard ended without results",
            )));
        }
        warn_of_deleted(plan, &observed.outcomes);
        let io_queues = match plan.topology {
            Topology::PerThread => self.starts.len(),
            Topology::Shared => 1,
            Topology::Coordinators => self.scheduled.disk.io_queues(),
        };
        Ok(results::of(plan, backend, io_queues, observed))
    }

    /// Waits until all threads are ready: how to wake them, and what does the I/O.
    fn wait_until_ready(&self, plan: &Plan<'_>) -> Result<(Vec<Waker>, Backend), Failure> {
        let mut wakers: Vec<Option<Waker>> = vec![None; self.starts.len()];
        let mut io = None;
        for _ in 0..self.starts.len() {
            match self.events.recv() {
                Ok(ThreadEvent::Ready(ready)) => {
                    io = io.or(ready.backend);
                    if let Some(waker) = wakers.get_mut(ready.index) {
                        *waker = Some(ready.waker);
                    }
                }
                Ok(ThreadEvent::Failed(failure)) => return Err(failure),
                _ => break,
            }
        }
        let (backend, fallback) = match io {
            Some(io) => io,
            None => io_of_others(plan)?,
        };
        if let Some(reason) = fallback {
            note(format_args!("I/O is done by {}, because {reason}", backend.name()));
        }
        let wakers: Option<Vec<Waker>> = wakers.into_iter().collect();
        let missing = || Failure::Run(String::from("internal error: a shard did not begin"));
        Ok((wakers.ok_or_else(missing)?, backend))
    }

    /// Watches until all shards have ended.
    fn watch(&self, plan: &Plan<'_>, mut watch: Watch<'_>) -> Result<Observed, Failure> {
        let mut outcomes: Vec<LoadOutcome> = Vec::new();
        let mut failure = None;
        loop {
            if plan.interrupt.is_raised() {
                watch.status.stop();
            }
            let next_look = watch.look(plan.jobs);
            match self.events.recv_timeout(next_look) {
                Ok(ThreadEvent::Ended(outcome)) => {
                    watch.measured_part_ends();
                    outcomes.push(*outcome);
                }
                Ok(ThreadEvent::Failed(error)) => {
                    failure = Some(error);
                    watch.status.stop();
                }
                Ok(ThreadEvent::Ready(_)) | Err(RecvTimeoutError::Timeout) => {}
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

/// Says so where a job had deleted all its files while others went on: what they met after that
/// says nothing of deletions.
fn warn_of_deleted(plan: &Plan<'_>, outcomes: &[LoadOutcome]) {
    for (index, job) in plan.jobs.jobs.iter().enumerate() {
        let of_job = outcomes.iter().flat_map(|outcome| {
            let deleted = outcome.deleted.iter().filter(|(of, _)| *of == index);
            deleted.map(|(_, at)| (at.as_nanos(), outcome.finished.as_nanos()))
        });
        // a run ends by itself where nothing is left to do
        let early = of_job.filter(|(at, finished)| at.saturating_mul(EARLY.1) < finished * EARLY.0);
        if let Some((at, finished)) = early.min() {
            let (at, finished) = (Duration::from_nanos(at), Duration::from_nanos(finished));
            note(format_args!(
                "warning: job `{}` had deleted all its files after {at:.1?} of {finished:.1?}; raise \
                 `files_count` and `data_size`, or lower `rps`",
                job.name
            ));
        }
    }
}
