//! The thread of a deleter, which removes files and frees them in steps.

use std::sync::Arc;
use std::thread;

use forebay_core::Time;

use super::error::{DeleteErrorCause, DeleteOperation};
use super::jobs::JOBS_MAX;
use super::shared::{Job, Shared};
use super::state::{CHECK_PERIOD, Worker};
use crate::permit::Parking;
use crate::sys::library_thread;
use crate::sys::panics::contain;
use crate::sys::signals;

/// The idle time after which the thread ends, in nanoseconds.
const IDLE_MAX: u64 = 1_000_000_000;

/// Passes `jobs` to the thread, which is started if there is none. Not for a forked child.
pub(super) fn ask(shared: &Arc<Shared>, jobs: Vec<Job>) {
    if !shared.ask(jobs) {
        return;
    }
    let builder = thread::Builder::new().name(String::from("forebay-deleter"));
    let of_thread = Arc::clone(shared);
    if let Err(error) = signals::blocked(|| builder.spawn(move || work(&of_thread))) {
        shared.fail(&DeleteErrorCause::io(DeleteOperation::StartThread, &error));
    }
}

fn work(shared: &Arc<Shared>) {
    library_thread::begin();
    let parking = Parking::take_place();
    shared.begin(&parking);
    let mut worker = Worker::new(Arc::clone(shared), parking);
    if contain(|| worker.run()).is_none() {
        // Its claims on entries of a trash end first.
        contain(|| worker.abandon());
        shared.note_panic();
    }
}

impl Worker {
    /// The loop of the thread.
    fn run(&mut self) {
        let mut idle_since = self.now();
        loop {
            let came = self.take_jobs();
            let now = self.now();
            self.look(now);
            let has_work = !self.queue.is_empty() || !self.opened.is_empty();
            if has_work && self.pace.is_open(now) {
                self.free_some();
            }
            if has_work || came {
                idle_since = self.now();
            }
            if has_work {
                let look = self.now().plus_nanos(CHECK_PERIOD);
                self.sleep_until(self.pace.next.map(|next| next.min(look)));
                continue;
            }
            self.pace.rest(now);
            self.end_emptied();
            if !self.watched.is_empty() {
                self.sleep_until(Some(self.now().plus_nanos(CHECK_PERIOD)));
                continue;
            }
            if !self.draining.is_empty() && self.put_off.is_empty() {
                self.directories.close_unused();
                let drained = std::mem::take(&mut self.draining);
                drained.iter().for_each(|target| self.shared.end_scan(target));
            }
            if now.nanos_since(idle_since) >= IDLE_MAX {
                self.directories.close_unused();
                if self.put_off.is_empty() && self.shared.try_end() {
                    return;
                }
                idle_since = self.now();
            }
            if !came {
                self.sleep_until(Some(idle_since.plus_nanos(IDLE_MAX)));
            }
        }
    }

    /// Drops all files, which this thread will not delete any more.
    fn abandon(mut self) {
        let opened = self.opened.drain(..).map(|file| file.item);
        let items: Vec<_> = opened.chain(self.queue.drain(..)).collect();
        items.into_iter().for_each(|item| drop(self.forget(item)));
    }

    /// Sleeps until `until` or until a job comes. It does not sleep if there is a job already.
    fn sleep_until(&self, until: Option<Time>) {
        if let Some(until) = until.filter(|until| *until > self.now())
            && (self.put_off.len() >= JOBS_MAX || !self.shared.has_jobs())
        {
            self.parking.park(self.clock, Some(until));
        }
    }
}
