//! What the handles of a deleter and its thread share.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::deletion::{DeletedHow, Target};
use super::error::DeleteErrorCause;
use super::options::DeleterOptions;
use super::urgency::urgent_shares;
use crate::Class;
use crate::messages;
use crate::metrics::{DiscardCounts, Waiting};
use crate::permit::Parking;
use crate::sys::fork::Process;
use crate::sys::lock::Lock;

/// With fewer targets none of them is looked at for whether it is still there.
const TARGETS_MIN: usize = 64;

/// What the thread is asked for.
pub(super) enum Job {
    /// To delete a file.
    Delete(Arc<Target>),
    /// To delete what is in a trash.
    EmptyTrash(Arc<Target>),
    /// To say so when nothing waits any more.
    Drain(Arc<Target>),
}

impl Job {
    pub(super) const fn target(&self) -> &Arc<Target> {
        match self {
            Self::Delete(target) | Self::EmptyTrash(target) | Self::Drain(target) => target,
        }
    }
}

/// A deleter.
pub(super) struct Shared {
    pub(super) process: Process,
    pub(super) class: Class,
    pub(super) options: DeleterOptions,
    owner: u64,
    inbox: Lock<Inbox>,
}

#[derive(Default)]
struct Inbox {
    jobs: VecDeque<Job>,
    /// Files that are not deleted yet.
    files: usize,
    /// Of all jobs, also those that the thread has taken, and some that have ended.
    targets: Vec<Weak<Target>>,
    /// With as many targets those that are gone are removed.
    targets_max: usize,
    /// The thread's, while there is one.
    parking: Option<Arc<Parking>>,
    running: bool,
}

impl Inbox {
    fn remember(&mut self, target: &Arc<Target>) {
        if self.targets.len() >= self.targets_max {
            self.targets.retain(|target| target.strong_count() > 0);
            self.targets_max = (2 * self.targets.len()).max(TARGETS_MIN);
        }
        self.targets.push(Arc::downgrade(target));
    }
}

impl Shared {
    pub(super) fn new(class: Class, options: DeleterOptions) -> Self {
        let process = Process::current();
        let owner = RandomState::new().hash_one(std::process::id());
        Self { process, class, options, owner, inbox: Lock::default() }
    }

    /// What the names of its entries begin with.
    pub(super) fn owner(&self) -> u64 {
        self.owner
    }

    pub(super) fn counts(&self) -> &DiscardCounts {
        &self.class.record.discards
    }

    /// What waits now, how urgent that is, and since when the oldest does: sets the shares by it.
    pub(super) fn note(&self, part: f64, oldest: u64) {
        let counts = self.counts();
        let mut urgency = counts.urgency.lock();
        let (part, oldest) = urgency.note(Waiting { owner: self.owner, part, oldest });
        counts.oldest.store(oldest, Relaxed);
        let wanted = |calm| match &self.options.shares {
            Some(shares) => Some(shares.shares(part)),
            None => urgent_shares(calm, part),
        };
        if let Some(shares) = urgency.shares(self.class.shares(), wanted) {
            // One that was removed has none.
            let _ = self.class.set_shares(shares);
        }
    }

    /// Puts `jobs` before the thread; whether it is to be started. Those that there is no room for
    /// end at once. Not in a child.
    pub(super) fn ask(&self, jobs: Vec<Job>) -> bool {
        let max = self.options.files_max;
        let mut inbox = self.inbox.lock();
        let mut refused = Vec::new();
        for job in jobs {
            if inbox.files >= max && matches!(job, Job::Delete(_)) {
                refused.push(job);
                continue;
            }
            inbox.files += 1;
            inbox.remember(job.target());
            inbox.jobs.push_back(job);
        }
        let starts = !inbox.running && !inbox.jobs.is_empty();
        inbox.running |= starts;
        let parking = inbox.parking.clone();
        drop(inbox);
        refused.iter().for_each(|job| job.target().end(Err(DeleteErrorCause::Full { max })));
        if let Some(parking) = parking {
            parking.unpark();
        }
        starts
    }

    /// The thread is there, and is woken here.
    pub(super) fn begin(&self, parking: &Arc<Parking>) {
        self.inbox.lock().parking = Some(Arc::clone(parking));
    }

    /// The thread ended without having done all: what is not done fails.
    pub(super) fn note_panic(&self) {
        let mut inbox = self.inbox.lock();
        let Inbox { jobs, targets, .. } = std::mem::take(&mut *inbox);
        drop(inbox);
        drop(jobs);
        targets.iter().filter_map(Weak::upgrade).for_each(|target| target.note_panic());
        messages::report_invariant("a deleter's thread panicked");
    }

    /// There is no thread to be had.
    pub(super) fn fail(&self, cause: &DeleteErrorCause) {
        let mut inbox = self.inbox.lock();
        inbox.running = false;
        let jobs = std::mem::take(&mut inbox.jobs);
        inbox.files = inbox.files.saturating_sub(jobs.len());
        drop(inbox);
        jobs.iter().for_each(|job| job.target().end(Err(cause.clone())));
    }

    pub(super) fn has_jobs(&self) -> bool {
        !self.inbox.lock().jobs.is_empty()
    }

    pub(super) fn take_jobs(&self, max: usize) -> VecDeque<Job> {
        let mut inbox = self.inbox.lock();
        let count = inbox.jobs.len().min(max);
        inbox.jobs.drain(..count).collect()
    }

    /// Whether the thread may end: there was no new request.
    pub(super) fn try_end(&self) -> bool {
        let mut inbox = self.inbox.lock();
        let ends = inbox.jobs.is_empty();
        if ends {
            inbox.running = false;
            inbox.parking = None;
        }
        ends
    }

    /// A file is over.
    pub(super) fn end(&self, target: &Target, result: Result<DeletedHow, DeleteErrorCause>) {
        let counts = self.counts();
        match &result {
            Ok(how) => {
                counts.files.fetch_add(1, Relaxed);
                if matches!(how, DeletedHow::Unlinked(_)) {
                    counts.unlinked.fetch_add(1, Relaxed);
                }
            }
            Err(_) => _ = counts.errors.fetch_add(1, Relaxed),
        }
        self.forget();
        target.end(result.map(Some));
    }

    /// A file of an earlier process is to be deleted, too.
    pub(super) fn adopt(&self, target: &Target) {
        self.inbox.lock().files += 1;
        target.add_file();
    }

    /// All that there is of an earlier process is known.
    pub(super) fn end_scan(&self, target: &Target) {
        self.forget();
        target.end(Ok(None));
    }

    /// One that waited waits no more.
    pub(super) fn forget(&self) {
        let mut inbox = self.inbox.lock();
        inbox.files = inbox.files.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::deleter::Deletion;
    use crate::messages::meets_a_bug;

    #[test]
    fn deletions_of_a_thread_that_panicked_fail_and_those_that_ended_stay_so() {
        let scheduler = Scheduler::builder().build().unwrap();
        let class = scheduler.add_class("deletes", 100).unwrap();
        let shared = Shared::new(class, DeleterOptions::new());
        let targets: Vec<_> =
            ["ended", "taken", "waiting"].map(|path| Arc::new(Target::new(path.into()))).into();
        assert!(shared.ask(targets.iter().map(|of| Job::Delete(Arc::clone(of))).collect()));
        shared.end(&targets[0], Ok(DeletedHow::Truncated));
        // as it unwinds
        drop(shared.take_jobs(2));
        assert!(meets_a_bug(|| shared.note_panic()));
        let results = targets.into_iter().map(|target| {
            let deletion = Deletion::of(target);
            assert_eq!(deletion.progress().state, crate::DeletionState::Ended);
            deletion.wait().map_err(|error| error.to_string())
        });
        let results: Vec<_> = results.collect();
        assert_eq!(results[0].as_ref().map(|deleted| deleted.files), Ok(1));
        for (path, result) in ["taken", "waiting"].into_iter().zip(&results[1..]) {
            let expected = format!("cannot delete {path}: {}", DeleteErrorCause::Panicked);
            assert_eq!(result.as_ref().unwrap_err(), &expected);
        }
        assert!(shared.ask(vec![Job::Drain(Arc::new(Target::new("next".into())))]));
    }
}
