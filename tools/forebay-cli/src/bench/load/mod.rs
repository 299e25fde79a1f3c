//! The load of one shard of the job file: a thread, its jobs, and its path to the disk.
//!
//! The thread goes round in turns. A turn takes the completions that have come, lets the
//! generators go on, sends what they want, and sleeps until there is a completion, a wake-up, or
//! something to do at a known time. The clock is read once a turn.

mod job;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use forebay_core::{Op, Time, saturating_nanos};
use forebay_load::generator::{Action, Work};
use forebay_load::recorder::{Completion, MeasuredInterval, Recent, Recorder, Slice};
use slab::Slab;

use super::clock::Clock;
use super::progress;
use super::run_status::RunStatus;
use super::submission_path::{self, Submission, SubmissionPath};
use job::{Failures, LoadRequest};
pub(super) use job::{ThreadJob, in_flight_max};

/// What the thread of a shard works with.
pub(super) struct Load<'a> {
    pub(super) number: u32,
    pub(super) path: Box<dyn SubmissionPath>,
    pub(super) jobs: Vec<ThreadJob>,
    pub(super) measured: MeasuredInterval,
    pub(super) clock: Clock,
    pub(super) status: &'a RunStatus,
    /// Whether somebody looks at what is recent.
    pub(super) is_watched: bool,
    /// How often it shows what happened, for the run over time; in nanoseconds.
    pub(super) sample_nanos: Option<u64>,
    pub(super) state: LoadState,
}

/// What changes while a load runs.
#[derive(Default)]
pub(super) struct LoadState {
    requests: Slab<LoadRequest>,
    /// Processor work that is due: the positions of its jobs, and what is to be done.
    processor: VecDeque<(usize, Action, Time)>,
    report_at: Time,
    sample_ends: Time,
    has_nothing_left: bool,
}

impl LoadState {
    /// Nothing has happened yet.
    pub(super) fn new() -> Self {
        Self { report_at: Time::from_nanos(saturating_nanos(progress::PERIOD)), ..Self::default() }
    }
}

impl Load<'_> {
    /// Runs until the deadline, or until the run is stopped.
    ///
    /// # Errors
    /// The path to the disk is closed: the kernel takes no requests.
    pub(super) fn run(mut self) -> io::Result<LoadOutcome> {
        loop {
            let now = self.clock.now();
            while let Some(completion) = self.path.pop() {
                self.operation_completed(now, completion);
            }
            if now >= self.measured.to || self.status.is_stopped() {
                return Ok(self.finish(now));
            }
            self.generate(now);
            self.report(now);
            self.report_sample(now);
            let timeout = self.sleep_max(now);
            self.path.run_once(now, timeout)?;
            self.work_processor();
        }
    }

    /// Ends the run at `now`: what is not done is recorded as such, and what the disk still has is
    /// waited for.
    fn finish(mut self, now: Time) -> LoadOutcome {
        let to = now.min(self.measured.to);
        let deleted = self.jobs.iter().filter_map(ThreadJob::deleted_at).collect();
        self.show_slices();
        for job in &mut self.jobs {
            job.record_overdue(to);
        }
        for (_, request) in &self.state.requests {
            let job = &mut self.jobs[request.job];
            let flush = job.generator.is_flush_between(request.op);
            job.recorder.record_unfinished(request.intended, flush);
        }
        for (position, action, _) in &self.state.processor {
            self.jobs[*position].recorder.record_unfinished(action.intended, false);
        }
        // Takes back what waits.
        drop(self.path);
        let (records, failures) =
            self.jobs.into_iter().map(|job| ((job.index, job.recorder), job.failures)).unzip();
        LoadOutcome {
            shard: self.number,
            records,
            failures,
            deleted,
            finished: to,
            processor_wait: None,
        }
    }

    /// Takes what the generators want done.
    fn generate(&mut self, now: Time) {
        for position in 0..self.jobs.len() {
            while let Some(action) = self.jobs[position].generator.poll(now) {
                self.take_action(now, position, action);
            }
            self.jobs[position].note_deleted(now);
        }
        if !self.state.has_nothing_left && self.jobs.iter().all(|job| job.generator.is_done()) {
            self.state.has_nothing_left = true;
            self.status.nothing_left();
        }
    }

    fn take_action(&mut self, now: Time, position: usize, action: Action) {
        let (op, offset, len) = match action.work {
            Work::Io { op, offset, len } => (op, offset, u64::from(len)),
            Work::Unlink(file) => (Op::Discard, file, self.jobs[position].removed_len),
            Work::Cpu(_) => {
                self.state.processor.push_back((position, action, now));
                return;
            }
        };
        let job = &mut self.jobs[position];
        let operations = job.operations_of(op, len);
        let key = self.state.requests.insert(LoadRequest {
            job: position,
            fiber: action.fiber,
            op,
            offset,
            len,
            intended: action.intended,
            enqueued: now,
            queue_nanos: 0,
            operations_left: operations.clone().count() as u64,
            ok: true,
        });
        for (at, part_len) in operations {
            let operation = self.jobs[position].operation(op, offset, at, part_len);
            let submitted = operation.map_err(|error| (error, None)).and_then(|operation| {
                let class = self.jobs[position].class;
                let len = if op == Op::Flush { 0 } else { part_len };
                let submission = Submission { token: key, class, op, len, operation };
                let submitted = self.path.submit(now, submission);
                submitted.map_err(|(error, operation)| (error, Some(operation)))
            });
            if let Err((error, operation)) = submitted {
                operation
                    .into_iter()
                    .for_each(|operation| self.jobs[position].give_back(operation));
                self.operation_ended(now, key, 0, &Err(error));
            }
        }
    }

    /// An operation is done: it is kept for the next request, and its outcome is noted.
    fn operation_completed(&mut self, now: Time, completion: submission_path::Completion) {
        let submission_path::Completion { token, result, operation, queue_nanos } = completion;
        let Some(request) = self.state.requests.get(token) else { return };
        let wanted = operation.transfer_len();
        let result = result.and_then(|bytes| whole(bytes, wanted));
        self.jobs[request.job].give_back(operation);
        self.operation_ended(now, token, queue_nanos, &result);
    }

    /// Adds the outcome of an operation to its request, and ends that with the last.
    fn operation_ended(
        &mut self,
        now: Time,
        key: usize,
        queue_nanos: u64,
        result: &io::Result<()>,
    ) {
        let Some(request) = self.state.requests.get_mut(key) else { return };
        let job = &mut self.jobs[request.job];
        if let Err(error) = result {
            job.failed(request, error);
            request.ok = false;
        }
        request.queue_nanos = request.queue_nanos.max(queue_nanos);
        request.operations_left -= 1;
        if request.operations_left > 0 {
            return;
        }
        let LoadRequest { fiber, len, intended, enqueued, queue_nanos, op, ok, .. } =
            self.state.requests.remove(key);
        let dispatched = enqueued.plus_nanos(queue_nanos).min(now);
        let bytes = if op == Op::Flush { 0 } else { len };
        let flush = job.generator.is_flush_between(op);
        let completion =
            Completion { intended, enqueued, dispatched, completed: now, bytes, ok, flush };
        job.recorder.record(&completion);
        job.generator.completed(now, fiber, ok);
    }

    /// Shows other threads what they want to know.
    fn report(&mut self, now: Time) {
        if self.is_watched && now >= self.state.report_at {
            self.state.report_at = now.plus_nanos(saturating_nanos(progress::PERIOD));
            for job in &mut self.jobs {
                self.status.recent.add(job.index, &job.recorder.take_recent(), Recent::merge);
            }
        }
    }

    /// Shows what happened in a sample that has ended.
    fn report_sample(&mut self, now: Time) {
        let Some(nanos) = self.sample_nanos.filter(|_| now >= self.state.sample_ends) else {
            return;
        };
        // samples end at the same times on all threads
        let ended = now.as_nanos() / nanos * nanos;
        self.state.sample_ends = Time::from_nanos(ended).plus_nanos(nanos);
        self.show_slices();
    }

    fn show_slices(&mut self) {
        for job in &mut self.jobs {
            if let Some(slice) = job.recorder.slice() {
                self.status.slices.add(job.index, slice, Slice::merge);
                slice.clear();
            }
        }
    }

    /// How long the thread may sleep if nothing completes.
    fn sleep_max(&self, now: Time) -> Duration {
        if !self.state.processor.is_empty() {
            return Duration::ZERO;
        }
        let generators = self.jobs.iter().filter_map(|job| job.generator.next_event());
        let report = self.is_watched.then_some(self.state.report_at);
        let sample = self.sample_nanos.map(|_| self.state.sample_ends);
        let next = generators.chain(report).chain(sample).min();
        next.map_or(self.measured.to, |next| next.min(self.measured.to)).since(now)
    }

    /// Keeps the processor busy for one request of a job that wants that.
    fn work_processor(&mut self) {
        let Some((position, action, enqueued)) = self.state.processor.pop_front() else { return };
        let Work::Cpu(length) = action.work else { return };
        let dispatched = self.clock.now();
        let until = dispatched.plus_nanos(saturating_nanos(length));
        let mut completed = dispatched;
        while completed < until {
            if completed >= self.measured.to || self.status.is_stopped() {
                // the run ends first
                self.state.processor.push_front((position, action, enqueued));
                return;
            }
            completed = self.clock.now();
        }
        let intended = action.intended;
        let (bytes, ok, flush) = (0, true, false);
        let completion = Completion { intended, enqueued, dispatched, completed, bytes, ok, flush };
        let job = &mut self.jobs[position];
        job.recorder.record(&completion);
        job.generator.completed(completed, action.fiber, true);
    }
}

/// Whether an operation has transferred all that was wanted.
fn whole(bytes: usize, wanted: usize) -> io::Result<()> {
    if bytes == wanted {
        return Ok(());
    }
    let message = format!("only {bytes} of {wanted} bytes; did the file change?");
    Err(io::Error::other(message))
}

/// The results of one thread.
#[derive(Debug)]
pub(in crate::bench) struct LoadOutcome {
    pub(in crate::bench) shard: u32,
    /// The index of each job in its file, and what was recorded of it.
    pub(in crate::bench) records: Vec<(usize, Recorder)>,
    /// What each job failed at, in the same order.
    pub(in crate::bench) failures: Vec<Failures>,
    /// The jobs that had deleted all their files before that, and when.
    pub(in crate::bench) deleted: Vec<(usize, Time)>,
    /// When the measured part ended.
    pub(in crate::bench) finished: Time,
    /// The part of the run in which the thread waited for a processor, where that is known.
    pub(in crate::bench) processor_wait: Option<f64>,
}
