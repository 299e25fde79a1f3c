//! Threads for calls that may block. There are as many threads as such calls, up to a bound. Idle
//! threads end after a while.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use crate::sys::descriptor_table::TableThreads;
use crate::sys::fork::Process;
use crate::sys::library_thread;
use crate::sys::lock::Lock;
use crate::sys::panics::{contain, panicked};
use crate::sys::signals;
use crate::sys::waker::{KeptWaker, put_off};

/// The idle time after which a thread ends.
const IDLE_MAX: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// The threads of one owner. They outlive the owner until their jobs are done and [`IDLE_MAX`] has
/// passed.
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

/// Keeps one of the threads running as long as it exists.
pub(crate) struct KeptWorker {
    shared: Arc<Shared>,
}

struct Shared {
    process: Process,
    /// The descriptor table of the threads, if it is not that of the process.
    table: Option<TableThreads>,
    threads_max: usize,
    state: Lock<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The number of running threads.
    threads: usize,
    /// The number of threads that are being started. Jobs do not rely on them.
    starting: usize,
    /// The number of running threads that wait for a job.
    idle: usize,
    /// The number of [`KeptWorker`]s.
    kept: usize,
}

impl Workers {
    /// At most `threads_max` threads, with `table` if one is given. They run only code of the
    /// library: no waker, logger or hook of others.
    pub(crate) fn new(threads_max: usize, table: Option<TableThreads>) -> Self {
        let (process, state) = (Process::current(), Lock::default());
        let shared = Shared { process, table, threads_max, state, work: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Makes sure that a thread exists from now on.
    ///
    /// # Errors
    /// There is no thread, and none can be started.
    pub(crate) fn keep_one(&self) -> io::Result<KeptWorker> {
        let mut state = self.shared.state.lock();
        state.kept += 1;
        let kept = KeptWorker { shared: Arc::clone(&self.shared) };
        let starts = state.threads == 0;
        state.starting += usize::from(starts);
        drop(state);
        if starts {
            self.shared.start()?;
        }
        Ok(kept)
    }

    /// Queues `job` for the threads. The caller [keeps](Self::keep_one) a thread, because another
    /// one cannot always be started.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(Box::new(job));
        let wakes = state.idle >= state.jobs.len();
        let threads = state.threads + state.starting;
        let starts = !wakes && threads < self.shared.threads_max;
        state.starting += usize::from(starts);
        drop(state);
        if wakes {
            self.shared.work.notify_one();
        } else if starts {
            // If no thread can be started, an existing one runs the job.
            let _ = self.shared.start();
        }
    }

    /// Runs `call` on one of the threads and returns its result, which is an error if it panics.
    ///
    /// Cancel safety: `call` is still made.
    pub(crate) async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let answer = Arc::new(Lock::new((None, None::<KeptWaker>)));
        let shared = Arc::clone(&answer);
        self.run(move || {
            // A waker of others may wait for the thread that waits for this answer.
            let (result, _others) = put_off(|| contain(call).unwrap_or_else(|| Err(panicked())));
            let mut answer = shared.lock();
            answer.0 = Some(result);
            let waker = answer.1.take();
            drop(answer);
            waker.into_iter().for_each(KeptWaker::wake);
        });
        poll_fn(|context| {
            let waker = KeptWaker::of(context.waker());
            let mut answer = answer.lock();
            let before = answer.1.replace(waker);
            let result = answer.0.take();
            drop(answer);
            drop(before);
            result.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    #[cfg(test)]
    fn threads(&self) -> usize {
        let state = self.shared.state.lock();
        state.threads + state.starting
    }
}

impl Shared {
    /// Starts a thread. The caller has counted it in `starting`.
    fn start(self: &Arc<Self>) -> io::Result<()> {
        let shared = Arc::clone(self);
        let started = match &self.table {
            Some(table) => table.spawn("forebay-files", Box::new(move || shared.work())),
            None => {
                let thread = thread::Builder::new().name(String::from("forebay-sync"));
                signals::blocked(|| thread.spawn(move || shared.work())).map(drop)
            }
        };
        started.inspect_err(|_| self.state.lock().starting -= 1)
    }

    /// The loop of a thread.
    fn work(&self) {
        library_thread::begin();
        let mut state = self.state.lock();
        state.starting -= 1;
        state.threads += 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                contain(job);
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let is_kept = state.kept > 0 && state.threads == 1;
            let (awake, timed_out) = if is_kept {
                (state.wait(&self.work), false)
            } else {
                state.wait_timeout(&self.work, IDLE_MAX)
            };
            state = awake;
            state.idle -= 1;
            let is_needed = state.kept > 0 && state.threads == 1;
            if timed_out && state.jobs.is_empty() && !is_needed {
                state.threads -= 1;
                return;
            }
        }
    }
}

impl Drop for KeptWorker {
    fn drop(&mut self) {
        // A child has none of the threads, and possibly a lock that the parent holds for ever.
        if self.shared.process.is_here() {
            let mut state = self.shared.state.lock();
            state.kept -= 1;
            let may_end = state.kept == 0;
            drop(state);
            // The kept thread waits without a timeout. It has to wait with one now.
            if may_end {
                self.shared.work.notify_all();
            }
        }
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("threads_max", &self.shared.threads_max).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn as_many_threads_as_calls_that_block_and_none_when_idle() {
        let workers = Workers::new(3, None);
        let (sender, done) = mpsc::channel();
        let gates: Vec<_> = (0..5)
            .map(|n| {
                let (open, gate) = mpsc::channel::<()>();
                let sender = sender.clone();
                workers.run(move || {
                    let _ = gate.recv();
                    sender.send(n).unwrap();
                });
                open
            })
            .collect();
        assert_eq!(workers.threads(), 3);
        drop(gates);
        let mut ran: Vec<i32> = done.iter().take(5).collect();
        ran.sort_unstable();
        assert_eq!(ran, [0, 1, 2, 3, 4]);
        let begin = Instant::now();
        while workers.threads() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "threads are left behind");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_thread_that_is_kept_stays_and_goes_with_the_last_that_kept_it() {
        let workers = Workers::new(4, None);
        let kept = [workers.keep_one().unwrap(), workers.keep_one().unwrap()];
        (0..4).for_each(|_| workers.run(|| thread::sleep(Duration::from_millis(20))));
        thread::sleep(IDLE_MAX * 2);
        assert_eq!(workers.threads(), 1);
        drop(kept);
        let begin = Instant::now();
        while workers.threads() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "a thread is left behind");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_call_that_panics_is_answered_with_an_error() {
        let workers = Workers::new(1, None);
        let ((open, gate), (sender, ran)) = (mpsc::channel::<()>(), mpsc::channel());
        workers.run(move || gate.recv().unwrap_or_default());
        let call = || -> io::Result<()> { std::panic::panic_any("a call's own") };
        let mut answer = Box::pin(workers.call(call));
        let mut poll = || smol::block_on(smol::future::poll_once(&mut answer));
        assert!(poll().is_none());
        workers.run(move || sender.send(()).unwrap());
        drop(open);
        ran.recv().unwrap();
        let error = poll().expect("an answer").unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }

    #[test]
    fn a_panic_ends_no_thread_and_calls_are_answered() {
        let workers = Workers::new(1, None);
        workers.run(|| std::panic::panic_any("a job's own"));
        assert_eq!(smol::block_on(workers.call(|| Ok(7))).unwrap(), 7);
        assert_eq!(workers.threads(), 1);
    }
}
