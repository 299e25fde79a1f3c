//! The thread of a shard of the load, up to the start of its run.

use std::fs;
use std::sync::mpsc::{Receiver, Sender};
use std::task::Waker;
use std::time::{Duration, Instant};

use forebay::REQUESTS_MAX;
use forebay::engine::{Backend, DEPTH_MAX, EngineConfig};
use forebay_core::Time;
use forebay_load::generator::Generator;
use forebay_load::job_file::Job;
use forebay_load::recorder::Recorder;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::clock::Clock;
use super::load::{Load, LoadOutcome, LoadState, ThreadJob, in_flight_max};
use super::plan::Plan;
use super::run_status::RunStatus;
use super::scheduler::Scheduled;
use super::storage::JobData;
use super::submission_path;
use crate::failure::Failure;

/// More requests than this under way on one shard are a slip of the job file.
const IN_FLIGHT_MAX: u64 = 1 << 20;
/// Threads of a shard's engine where there is no io_uring.
const THREADS_MAX: u32 = 128;
/// How long what is in flight at the end may take.
const DROP_WAIT_MAX: Duration = Duration::from_secs(5);
/// The disk's requests are at most this many times smaller than the load's.
const PARTS_MIN_BYTES: u64 = 128 * 1024;

/// What a shard tells the watching thread.
pub(super) enum ThreadEvent {
    /// It can start.
    Ready(ReadyThread),
    /// It has ended.
    Ended(Box<LoadOutcome>),
    /// It cannot go on.
    Failed(Failure),
}

/// A shard that can start.
pub(super) struct ReadyThread {
    pub(super) index: usize,
    pub(super) waker: Waker,
    /// What does its I/O, if it does it itself, and why that is not io_uring, where it was wanted
    /// most.
    pub(super) backend: Option<(Backend, Option<String>)>,
}

/// A shard of a run, before it begins.
pub(super) struct LoadThread<'a> {
    /// The number of the shard.
    pub(super) number: u32,
    /// Its position among the shards that have something to do.
    pub(super) index: usize,
    /// How many there are of these.
    pub(super) threads: usize,
    /// Whether somebody looks at what is recent.
    pub(super) is_watched: bool,
    /// How long samples of the run over time are, in nanoseconds, if there are any.
    pub(super) sample_nanos: Option<u64>,
    pub(super) plan: &'a Plan<'a>,
    pub(super) scheduled: &'a Scheduled,
    pub(super) status: &'a RunStatus,
}

impl LoadThread<'_> {
    /// Gets ready, waits for the start, runs.
    pub(super) fn run(self, start: &Receiver<Clock>, events: &Sender<ThreadEvent>) {
        // Nobody listens only where the run has failed already.
        let _ = match self.try_run(start, events) {
            Ok(Some(outcome)) => events.send(ThreadEvent::Ended(Box::new(outcome))),
            Ok(None) => Ok(()),
            Err(failure) => events.send(ThreadEvent::Failed(failure)),
        };
    }

    fn try_run(
        self,
        start: &Receiver<Clock>,
        events: &Sender<ThreadEvent>,
    ) -> Result<Option<LoadOutcome>, Failure> {
        let number = self.number;
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Run(format!("shard {number} cannot do I/O: {error}"))
        };
        let config = engine_config(self.plan, Some(number))?;
        let path = submission_path::of(self.plan.topology, self.scheduled, &config);
        let path = path.map_err(|error| failed(&error))?;
        let backend = path.backend();
        // Threads of an engine, and I/O threads, run where the thread that made them may run.
        if backend.as_ref().is_some_and(|(backend, _)| *backend != Backend::Threads) {
            pin(self.index, self.threads);
        }
        let jobs = self.jobs()?;
        let _ = events.send(ThreadEvent::Ready(ReadyThread {
            index: self.index,
            waker: path.waker(),
            backend,
        }));
        let Ok(clock) = start.recv() else { return Ok(None) };
        let load = Load {
            number,
            path,
            jobs,
            measured: self.plan.measured(),
            clock,
            status: self.status,
            is_watched: self.is_watched,
            sample_nanos: self.sample_nanos,
            state: LoadState::new(),
        };
        let wait = ProcessorWait::begin();
        let outcome = load.run().map_err(|error| failed(&error))?;
        Ok(Some(LoadOutcome { processor_wait: wait.part(), ..outcome }))
    }

    fn data(&self) -> impl Iterator<Item = (&Job, &JobData)> {
        self.plan.data().filter(|(_, data)| data.shard == self.number)
    }

    /// The jobs of the shard with all the memory that they need.
    fn jobs(&self) -> Result<Vec<ThreadJob>, Failure> {
        let no_memory = |error: &dyn std::fmt::Display| {
            Failure::Run(format!("no memory for the requests of shard {}: {error}", self.number))
        };
        let mut jobs = Vec::new();
        for (job, JobData { job: index, data, .. }) in self.data() {
            let index = *index;
            let job = &self.plan.in_steps(job);
            let generator = Generator::new(job, index, self.number, self.plan.seed, Time::ZERO);
            let mut recorder =
                Recorder::new(self.plan.measured()).map_err(|error| no_memory(&error))?;
            if self.sample_nanos.is_some() {
                recorder.record_slices().map_err(|error| no_memory(&error))?;
            }
            let data = data.clone();
            let number = self.number;
            let mut thread_job = ThreadJob::new(job, index, data, generator, recorder, number);
            thread_job.prepare(job).map_err(|error| no_memory(&error))?;
            jobs.push(thread_job);
        }
        Ok(jobs)
    }
}

/// The engine for the load of one shard, or of all: it takes all requests at once that may be
/// under way.
pub(super) fn engine_config(plan: &Plan<'_>, shard: Option<u32>) -> Result<EngineConfig, Failure> {
    let jobs = || plan.data().filter(|(_, data)| shard.is_none_or(|shard| data.shard == shard));
    let requests = jobs().map(|(job, _)| in_flight_max(job)).fold(0, u64::saturating_add);
    let (whose, most) = match shard {
        Some(shard) => (format!("shard {shard}"), IN_FLIGHT_MAX),
        None => (String::from("all shards together"), REQUESTS_MAX as u64),
    };
    if requests > most {
        return Err(Failure::Input(format!(
            "{whose} would have up to {requests} requests in flight, but at most {most} are \
             supported; lower `parallelism` or `batch`"
        )));
    }
    let parts = jobs().map(|(job, _)| {
        in_flight_max(job).saturating_mul(u64::from(job.reqsize).div_ceil(PARTS_MIN_BYTES))
    });
    let parts = parts.fold(0, u64::saturating_add);
    Ok(EngineConfig {
        backend: plan.backend,
        depth_max: parts.clamp(1, u64::from(DEPTH_MAX)) as u32,
        threads_max: THREADS_MAX,
        shutdown_timeout: DROP_WAIT_MAX,
        ..EngineConfig::default()
    })
}

/// Keeps the calling thread on one of the processors it may use, the one for thread `index`
/// of `threads`. Where there are not enough, or it is not allowed, the thread stays free.
fn pin(index: usize, threads: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    if threads > processors.len() {
        return;
    }
    if let Some(&processor) = processors.get(index) {
        let mut one = CpuSet::new();
        one.set(processor);
        let _ = sched_setaffinity(None, &one);
    }
}

/// What a thread has waited since this was made.
struct ProcessorWait {
    since: Instant,
    before: Option<Duration>,
}

impl ProcessorWait {
    /// Of this thread, from now on.
    fn begin() -> Self {
        Self { since: Instant::now(), before: waited() }
    }

    /// The part of the time since then in which this thread could run and had no processor; none
    /// where the kernel does not count it.
    fn part(&self) -> Option<f64> {
        let waited = waited()?.saturating_sub(self.before?);
        let all = self.since.elapsed();
        (!all.is_zero()).then(|| (waited.as_secs_f64() / all.as_secs_f64()).min(1.0))
    }
}

fn waited() -> Option<Duration> {
    parsed(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The second number: nanoseconds on a run queue.
fn parsed(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_kept_on_one_processor_while_there_are_enough() {
        let count = || sched_getaffinity(None).unwrap().count();
        std::thread::spawn(move || {
            let before = count();
            pin(0, before as usize + 1);
            assert_eq!(count(), before);
            pin(0, 1);
            assert_eq!(count(), 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn counters_of_the_kernel_are_read() {
        assert_eq!(parsed("1200 56524 17\n"), Some(Duration::from_nanos(56_524)));
        assert_eq!([parsed(""), parsed("1 x 2")], [None, None]);
    }

    #[test]
    fn a_part_is_at_most_all() {
        let wait = ProcessorWait::begin();
        std::thread::sleep(Duration::from_millis(1));
        assert!(wait.part().is_none_or(|part| (0.0..=1.0).contains(&part)));
    }
}
