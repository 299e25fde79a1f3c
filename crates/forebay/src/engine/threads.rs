//! The backend for systems that forbid io_uring and linux-aio, and for operations that other
//! backends cannot do: a bounded pool of threads that make blocking calls.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};
use std::{mem, thread};

use rustix::io::Errno;

use super::nonblocking;
use super::operation::{Completion, Operation, Retries};
use super::waker::WakeDescriptor;
use crate::sys::lock::Lock;
use crate::sys::panics::{contain, panicked};
use crate::sys::signals;

/// Executes an operation and waits for its end.
type Execute = fn(&mut Operation) -> io::Result<usize>;

#[derive(Debug)]
struct Job {
    token: u64,
    operation: Operation,
}

/// The engine's side of the pool.
#[derive(Debug)]
pub(super) struct Threads {
    /// Pushed operations that the workers cannot see yet.
    pushed: VecDeque<Job>,
    /// Operations that completed at the push, without a worker.
    at_once: VecDeque<Completion>,
    /// Completions that were not popped yet.
    done: VecDeque<Completion>,
    /// Whether an event loop polls the eventfd of `descriptor` between submissions.
    watched: bool,
    pub(super) retries: Retries,
    from_workers: Receiver<Completion>,
    to_engine: Sender<Completion>,
    pool: Arc<Pool>,
    execute: Execute,
    threads_max: u32,
    shutdown_timeout: Duration,
}

/// The state that the engine shares with the workers.
#[derive(Debug)]
struct Pool {
    state: Lock<PoolState>,
    /// Notified when there is a job, or when the pool is closed.
    work: Condvar,
    /// Notified when the last worker has left.
    empty: Condvar,
    descriptor: Arc<WakeDescriptor>,
}

#[derive(Debug, Default)]
struct PoolState {
    queue: VecDeque<Job>,
    workers: u32,
    /// The number of workers that have a job.
    busy: u32,
    closed: bool,
}

impl Threads {
    pub(super) fn new(
        threads_max: u32,
        shutdown_timeout: Duration,
        execute: Execute,
    ) -> io::Result<Self> {
        Ok(Self::with_descriptor(WakeDescriptor::new()?, threads_max, shutdown_timeout, execute))
    }

    /// A pool for the operations that another backend cannot do. It notifies the `descriptor` of
    /// that backend, which submits, sleeps and collects.
    pub(super) fn with_descriptor(
        descriptor: Arc<WakeDescriptor>,
        threads_max: u32,
        shutdown_timeout: Duration,
        execute: Execute,
    ) -> Self {
        let (to_engine, from_workers) = channel();
        let pool = Arc::new(Pool {
            state: Lock::default(),
            work: Condvar::new(),
            empty: Condvar::new(),
            descriptor,
        });
        Self {
            pushed: VecDeque::new(),
            at_once: VecDeque::new(),
            done: VecDeque::new(),
            watched: false,
            retries: Retries::default(),
            from_workers,
            to_engine,
            pool,
            execute,
            threads_max,
            shutdown_timeout,
        }
    }

    pub(super) fn descriptor(&self) -> &Arc<WakeDescriptor> {
        &self.pool.descriptor
    }

    pub(super) fn push(&mut self, token: u64, mut operation: Operation) {
        match nonblocking::execute(&mut operation, &mut self.retries) {
            // It must not be popped before the next submission: see `Engine::pop`.
            Some(len) => self.at_once.push_back(Completion { token, result: Ok(len), operation }),
            None => self.pushed.push_back(Job { token, operation }),
        }
    }

    pub(super) fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if mem::take(&mut self.watched) {
            self.pool.descriptor.stop_watch();
        }
        let submitted = self.submit();
        self.collect();
        let idle = self.done.is_empty() && timeout != Some(Duration::ZERO);
        if idle && submitted.is_ok() {
            self.pool.descriptor.park(timeout);
        }
        self.end_sleep();
        submitted
    }

    /// Takes the notification first, and then the completions. In the other order, a completion in
    /// between would not be signalled to a watched engine.
    fn end_sleep(&mut self) {
        self.pool.descriptor.end_sleep();
        self.collect();
    }

    /// Limits the time for which the drop waits.
    pub(super) const fn shut_down_within(&mut self, timeout: Duration) {
        self.shutdown_timeout = timeout;
    }

    pub(super) fn watch(&mut self) {
        self.watched = true;
        self.pool.descriptor.watch(self.is_busy());
    }

    /// Whether there is something to submit or to pop.
    pub(super) fn is_busy(&self) -> bool {
        !(self.done.is_empty() && self.at_once.is_empty() && self.pushed.is_empty())
    }

    pub(super) fn pop(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    /// Takes back a job that no worker has begun.
    pub(super) fn cancel(&mut self, token: u64) -> bool {
        let take = |queue: &mut VecDeque<Job>| {
            queue.iter().position(|job| job.token == token).and_then(|index| queue.remove(index))
        };
        let job = take(&mut self.pushed).or_else(|| take(&mut self.pool.state.lock().queue));
        let Some(Job { token, operation }) = job else {
            return false;
        };
        self.done.push_back(Completion { token, result: Err(Errno::CANCELED.into()), operation });
        true
    }

    /// Passes the pushed operations to the workers.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if self.pushed.is_empty() {
            return Ok(());
        }
        let mut state = self.pool.state.lock();
        let queued = state.queue.len() + self.pushed.len();
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        let missing = (state.busy + queued).saturating_sub(state.workers);
        for _ in 0..missing.min(self.threads_max - state.workers) {
            match self.spawn_worker(state.workers) {
                Ok(()) => state.workers += 1,
                // The existing workers do the rest of the queue.
                Err(_) if state.workers > 0 => break,
                // The operations stay pushed until the next submission.
                Err(error) => return Err(error),
            }
        }
        state.queue.append(&mut self.pushed);
        drop(state);
        for _ in 0..queued {
            self.pool.work.notify_one();
        }
        Ok(())
    }

    fn spawn_worker(&self, number: u32) -> io::Result<()> {
        let pool = Arc::clone(&self.pool);
        let to_engine = self.to_engine.clone();
        let execute = self.execute;
        let builder = thread::Builder::new().name(format!("forebay-io-{number}"));
        signals::blocked(|| builder.spawn(move || pool.work(&to_engine, execute))).map(drop)
    }

    /// Collects completions. Returns the number of completions to pop.
    pub(super) fn collect(&mut self) -> usize {
        self.done.append(&mut self.at_once);
        self.done.extend(self.from_workers.try_iter());
        self.done.len()
    }
}

impl Drop for Threads {
    /// Waits for the calls that have begun. Other jobs are not done. A call that does not end in
    /// time keeps its thread and its memory.
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.closed = true;
        let queue = mem::take(&mut state.queue);
        self.pool.work.notify_all();
        let begin = Instant::now();
        while state.workers > 0 {
            let left = self.shutdown_timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            state = state.wait_timeout(&self.pool.empty, left).0;
        }
        drop(state);
        // The program's own buffers may run its code in their drop, so they are dropped without the
        // lock.
        drop(queue);
    }
}

impl Pool {
    /// The loop of a worker.
    fn work(&self, to_engine: &Sender<Completion>, execute: Execute) {
        while let Some(Job { token, mut operation }) = self.next_job() {
            let result = contain(|| execute(&mut operation)).unwrap_or_else(|| Err(panicked()));
            // If the engine was dropped, the send fails and the operation is dropped here.
            let _ = to_engine.send(Completion { token, result, operation });
            self.state.lock().busy -= 1;
            self.descriptor.notify();
        }
        let mut state = self.state.lock();
        state.workers -= 1;
        if state.workers == 0 {
            self.empty.notify_all();
        }
    }

    /// Waits for a job. `None` if the pool is closed and has no more jobs.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.state.lock();
        while state.queue.is_empty() && !state.closed {
            state = state.wait(&self.work);
        }
        let job = state.queue.pop_front()?;
        state.busy += 1;
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Held by a test while no operation may end.
    static GATE: Mutex<()> = Mutex::new(());

    fn stuck(_: &mut Operation) -> io::Result<usize> {
        let _open = GATE.lock();
        Ok(7)
    }

    fn push(threads: &mut Threads, count: u64) {
        for token in 0..count {
            threads.push(token, Operation::unlink("nothing", 0).unwrap());
        }
        threads.submit_and_wait(Some(Duration::ZERO)).unwrap();
    }

    #[test]
    fn a_call_that_panics_ends_its_operation_with_an_error_and_no_thread() {
        let panics: Execute = |_| std::panic::panic_any("a call's own");
        let mut threads = Threads::new(1, Duration::ZERO, panics).unwrap();
        push(&mut threads, 2);
        let mut pop = || loop {
            match threads.pop() {
                Some(completion) => break completion.result.unwrap_err().to_string(),
                None => threads.submit_and_wait(Some(Duration::from_secs(60))).unwrap(),
            };
        };
        assert!(pop().contains("panicked") && pop().contains("panicked"));
    }

    #[test]
    fn a_call_that_hangs_holds_neither_the_drop_nor_others() {
        let gate = GATE.lock().unwrap();
        let mut threads = Threads::new(2, Duration::ZERO, stuck).unwrap();
        push(&mut threads, 5);
        assert!(threads.pop().is_none());
        assert!(threads.cancel(4), "two threads have at most two of the jobs");
        assert_eq!(threads.pop().unwrap().token, 4);
        let pool = Arc::clone(&threads.pool);
        drop(threads);
        assert!(pool.state.lock().queue.is_empty());

        drop(gate);
        let mut left = pool.state.lock();
        while left.workers > 0 {
            left = left.wait(&pool.empty);
        }
        assert_eq!(left.busy, 0);
    }

    #[test]
    fn threads_start_when_there_is_work_for_them() {
        let mut threads = Threads::new(3, Duration::from_secs(60), |_| Ok(7)).unwrap();
        assert_eq!(threads.pool.state.lock().workers, 0);
        push(&mut threads, 1);
        assert_eq!(threads.pool.state.lock().workers, 1);
        push(&mut threads, 9);
        assert!(threads.pool.state.lock().workers <= 3);
        let mut popped = 0;
        while popped < 10 {
            threads.submit_and_wait(None).unwrap();
            while let Some(completed) = threads.pop() {
                assert_eq!(completed.result.unwrap(), 7);
                popped += 1;
            }
        }
    }

    /// From now on the calling thread can start no other thread.
    fn forbid_threads() {
        let clone = if cfg!(target_arch = "x86_64") { 56 } else { 220 };
        let filter = seccompiler::SeccompFilter::new(
            [(clone, Vec::new()), (CLONE3, Vec::new())].into(),
            seccompiler::SeccompAction::Allow,
            seccompiler::SeccompAction::Errno(Errno::AGAIN.raw_os_error().cast_unsigned()),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        let program = seccompiler::BpfProgram::try_from(filter.unwrap()).unwrap();
        seccompiler::apply_filter(&program).unwrap();
    }

    const CLONE3: i64 = 435;

    #[test]
    fn operations_without_a_thread_run_when_one_can_be_started() {
        let mut threads = Threads::new(2, Duration::from_secs(60), |_| Ok(7)).unwrap();
        let refused = thread::spawn(move || {
            forbid_threads();
            threads.push(1, Operation::unlink("nothing", 0).unwrap());
            for _ in 0..2 {
                let error = threads.submit_and_wait(None).unwrap_err();
                assert_eq!(Errno::from_io_error(&error), Some(Errno::AGAIN));
            }
            threads
        });
        let mut threads = refused.join().unwrap();
        let done = |_| {
            threads.submit_and_wait(Some(Duration::from_secs(1))).unwrap();
            threads.pop()
        };
        assert_eq!((0..10).find_map(done).unwrap().token, 1);
    }

    #[test]
    fn operations_done_at_once_complete_while_no_thread_can_be_started() {
        let mut threads = Threads::new(2, Duration::from_secs(60), |_| Ok(7)).unwrap();
        let (token, operation) = (1, Operation::unlink("nothing", 0).unwrap());
        threads.at_once.push_back(Completion { token, result: Ok(0), operation });
        let refused = thread::spawn(move || {
            forbid_threads();
            threads.push(2, Operation::unlink("nothing", 0).unwrap());
            threads.submit_and_wait(None).unwrap_err();
            threads.pop().unwrap().token
        });
        assert_eq!(refused.join().unwrap(), 1);
    }

    #[test]
    fn completions_during_a_poll_are_found_before_the_watch() {
        let mut threads = Threads::new(1, Duration::ZERO, |_| Ok(7)).unwrap();
        threads.collect();
        // A worker ends here.
        let (token, operation) = (1, Operation::unlink("nothing", 0).unwrap());
        threads.to_engine.send(Completion { token, result: Ok(0), operation }).unwrap();
        threads.descriptor().notify();
        threads.end_sleep();
        assert_eq!(threads.pop().unwrap().token, 1);
    }
}
