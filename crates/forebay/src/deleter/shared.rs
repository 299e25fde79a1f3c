//! The state that the handles of a deleter share with its thread.

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

/// The least number of targets at which dropped ones are removed.
const TARGETS_MIN: usize = 64;

/// A job of the thread.
pub(super) enum Job {
    /// Deletes a file.
    Delete(Arc<Target>),
    /// Deletes the files in a trash.
    EmptyTrash(Arc<Target>),
    /// Reports when no work is left.
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
    /// The number of files that are not deleted yet.
    files: usize,
    /// The targets of all jobs, including those that the thread has taken. Some may have ended.
    targets: Vec<Weak<Target>>,
    /// The number of targets at which dropped ones are removed.
    targets_max: usize,
    /// The parking place of the thread, while it runs.
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

    /// The owner in the names of its entries.
    pub(super) fn owner(&self) -> u64 {
        self.owner
    }

    pub(super) fn counts(&self) -> &DiscardCounts {
        &self.class.record.discards
    }

    /// Notes how urgent the backlog is and when its oldest file began to wait, and sets the shares.
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
            // A removed class has no shares.
            let _ = self.class.set_shares(shares);
        }
    }

    /// Queues `jobs` for the thread. Returns whether the thread has to be started. Jobs without
    /// room end at once. Not for a forked child.
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

    /// Notes that the thread runs, and is woken at `parking`.
    pub(super) fn begin(&self, parking: &Arc<Parking>) {
        self.inbox.lock().parking = Some(Arc::clone(parking));
    }

    /// Fails all unfinished jobs after a panic of the thread.
    pub(super) fn note_panic(&self) {
        let mut inbox = self.inbox.lock();
        let Inbox { jobs, targets, .. } = std::mem::take(&mut *inbox);
        drop(inbox);
        drop(jobs);
        targets.iter().filter_map(Weak::upgrade).for_each(|target| target.note_panic());
        messages::report_invariant("a deleter's thread panicked");
    }

    /// Fails all jobs, because no thread can be started.
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

    /// Whether the thread may end, because there is no new job.
    pub(super) fn try_end(&self) -> bool {
        let mut inbox = self.inbox.lock();
        let ends = inbox.jobs.is_empty();
        if ends {
            inbox.running = false;
            inbox.parking = None;
        }
        ends
    }

    /// Counts the end of a file.
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

    /// Counts a file of an earlier process that is to be deleted.
    pub(super) fn adopt(&self, target: &Target) {
        self.inbox.lock().files += 1;
        target.add_file();
    }

    /// Ends a part of a target that deletes no file itself.
    pub(super) fn end_scan(&self, target: &Target) {
        self.forget();
        target.end(Ok(None));
    }

    /// Counts a file that waits no more.
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
        // The thread drops the jobs that it has taken, as in an unwind.
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
