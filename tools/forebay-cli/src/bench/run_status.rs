//! The state of a run that its threads and the one that watches them share.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use forebay_load::recorder::{Recent, Slice};

/// Shared by the threads of a load and the one that watches them.
#[derive(Debug)]
pub(super) struct RunStatus {
    stopped: AtomicBool,
    /// Threads with something left to send.
    busy: AtomicU32,
    /// What each job did since the last look.
    pub(super) recent: OfJobs<Recent>,
    /// The same, for the run over time.
    pub(super) slices: OfJobs<Slice>,
    wakers: OnceLock<Vec<Waker>>,
}

impl RunStatus {
    /// For this many threads that run, and this many jobs.
    pub(super) fn new(threads: usize, jobs: usize) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            busy: AtomicU32::new(threads as u32),
            recent: OfJobs::new(jobs),
            slices: OfJobs::new(jobs),
            wakers: OnceLock::new(),
        }
    }

    /// Says who is to be woken when the run ends early.
    pub(super) fn set_wakers(&self, wakers: Vec<Waker>) {
        let _ = self.wakers.set(wakers);
    }

    /// Ends the run.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(wakers) = self.wakers.get() {
            wakers.iter().for_each(Waker::wake_by_ref);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A thread has nothing left to send. The run ends with the last of them.
    pub(super) fn nothing_left(&self) {
        if self.busy.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.stop();
        }
    }
}

/// What each job did since somebody last took it.
#[derive(Debug)]
pub(super) struct OfJobs<T>(Mutex<Vec<Option<T>>>);

impl<T: Clone> OfJobs<T> {
    fn new(jobs: usize) -> Self {
        Self(Mutex::new(vec![None; jobs]))
    }

    /// Adds `more`, which the job with this index did, by `merge`.
    pub(super) fn add(&self, job: usize, more: &T, merge: impl Fn(&mut T, &T)) {
        match self.lock().get_mut(job) {
            Some(Some(sum)) => merge(sum, more),
            Some(none) => *none = Some(more.clone()),
            None => {}
        }
    }

    /// What each did since the last call.
    pub(super) fn take(&self) -> Vec<Option<T>> {
        self.lock().iter_mut().map(Option::take).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
