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
    recent: Mutex<Vec<Option<Recent>>>,
    /// The same, for the run over time.
    slices: Mutex<Vec<Option<Slice>>>,
    wakers: OnceLock<Vec<Waker>>,
}

impl RunStatus {
    /// For this many threads that run, and this many jobs.
    pub(super) fn new(threads: usize, jobs: usize) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            busy: AtomicU32::new(threads as u32),
            recent: Mutex::new(vec![None; jobs]),
            slices: Mutex::new(vec![None; jobs]),
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

    /// Adds what the job with this index did.
    pub(super) fn add_recent(&self, job: usize, recent: &Recent) {
        match self.recent().get_mut(job) {
            Some(Some(sum)) => sum.merge(recent),
            Some(none) => *none = Some(recent.clone()),
            None => {}
        }
    }

    /// What each job did since the last call.
    pub(super) fn take_recent(&self) -> Vec<Option<Recent>> {
        self.recent().iter_mut().map(Option::take).collect()
    }

    /// Adds what the job with this index did, for the run over time.
    pub(super) fn add_slice(&self, job: usize, slice: &Slice) {
        match self.slices().get_mut(job) {
            Some(Some(sum)) => sum.merge(slice),
            Some(none) => *none = Some(slice.clone()),
            None => {}
        }
    }

    /// What each job did since the last call, for the run over time.
    pub(super) fn take_slices(&self) -> Vec<Option<Slice>> {
        self.slices().iter_mut().map(Option::take).collect()
    }

    fn slices(&self) -> MutexGuard<'_, Vec<Option<Slice>>> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent(&self) -> MutexGuard<'_, Vec<Option<Recent>>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
