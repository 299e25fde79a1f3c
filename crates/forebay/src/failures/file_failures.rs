//! The failures of one file, for all its writers and flushes.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Weak};

use super::error::Cause;
use super::failed_ranges::{FailedRanges, Outcome, Scope};
use super::ranges::Ranges;
use crate::page_cache::{HeldFile, take_errors};
use crate::sys::lock::Lock;

/// Errors that say nothing about the file's bytes, because the call could not be made.
const NO_FAILURES: [i32; 6] =
    [libc::EINVAL, libc::EBADF, libc::EINTR, libc::ESPIPE, libc::ENOSYS, libc::EPERM];

/// The state that the writers of a file share with flushes of the engine.
#[derive(Debug, Default)]
pub(crate) struct FileFailures {
    /// A copy of [`FailedRanges::errors`].
    errors: AtomicU64,
    state: Lock<State>,
    call_ended: Condvar,
    /// The open file descriptions of its writers. Each gets an error of the file once, and one
    /// report is enough.
    files: Lock<Vec<Weak<HeldFile>>>,
}

#[derive(Debug, Default)]
struct State {
    ranges: FailedRanges,
    /// The number of threads that wait for the end of calls.
    waiting: usize,
}

/// A running call that writes the file back.
#[must_use = "it is to be ended"]
pub(crate) struct WriteBackCall<'a> {
    failures: &'a FileFailures,
    number: u64,
}

impl FileFailures {
    /// Adds the file description of a writer.
    pub(super) fn add_file(&self, file: &Arc<HeldFile>) {
        let mut files = self.files.lock();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(file));
    }

    /// The number of errors. A writer reads it before a write.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::SeqCst)
    }

    /// Notes that a writer wrote a range. It has read [`Self::errors`] before that.
    pub(crate) fn wrote(&self, range: &Range<u64>, errors_before: u64) {
        self.state.lock().ranges.wrote(range, errors_before);
    }

    /// Notes that pages were seen dirty.
    pub(crate) fn saw(&self, pages: &Ranges) {
        if !pages.is_empty() {
            self.state.lock().ranges.saw(pages);
        }
    }

    /// The failed bytes that no writer wrote.
    pub(crate) fn failed_of_others(&self) -> Ranges {
        self.state.lock().ranges.failed_of_others()
    }

    /// Clears bytes that others have written again and that were written back, unless there was an
    /// error after the first `errors`.
    pub(crate) fn clear(&self, pages: &Ranges, errors: u64) {
        self.state.lock().ranges.clear(pages, errors);
    }

    /// Begins the write-back of a range.
    pub(crate) fn begin_part(&self, range: &Range<u64>) -> WriteBackCall<'_> {
        self.begin(Scope::Part(range.clone()))
    }

    /// Begins a flush of the file.
    pub(crate) fn begin_flush(&self) -> WriteBackCall<'_> {
        self.begin(Scope::Flush)
    }

    /// Fails if any of the file's `len` bytes is failed.
    pub(crate) fn check(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let failure = state.ranges.failure(len).map(|(range, cause)| cause.of_range(range));
        failure.map_or(Ok(()), Err)
    }

    pub(super) fn is_needed(&self) -> bool {
        self.state.lock().ranges.is_needed()
    }

    pub(super) fn is_failed(&self) -> bool {
        self.state.lock().ranges.is_failed()
    }

    fn begin(&self, scope: Scope) -> WriteBackCall<'_> {
        WriteBackCall { failures: self, number: self.state.lock().ranges.begin(scope) }
    }

    /// Call it before a flush through the engine's description `file`. Fails with an error of
    /// writeback that is not yet reported through `file`, and whose bytes are unknown. Unless a
    /// writer also got the error, all bytes may be failed.
    pub(crate) fn report_before(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        let reported = take_errors(file).map(|()| None);
        if !matches!(outcome(&reported), Outcome::Failed(_)) {
            return Ok(());
        }
        if self.take_errors() != Some(false) {
            self.begin_part(&(0..0)).end(&reported);
        }
        reported.map(drop)
    }

    /// Takes an error that was reported through another description of the file out of those of the
    /// writers, where it would count as a new one. Returns whether a writer's description still had
    /// to report it. `None` if there is no writer.
    fn take_errors(&self) -> Option<bool> {
        let files: Vec<_> = self.files.lock().iter().filter_map(Weak::upgrade).collect();
        files.iter().filter_map(|file| file.take_errors()).reduce(|any, reported| any | reported)
    }
}

impl WriteBackCall<'_> {
    /// Ends the call with its result: whether it wrote anything back, as far as is known.
    pub(crate) fn end(self, result: &io::Result<Option<bool>>) {
        self.end_with(outcome(result));
    }

    /// [`Self::end`]. It then waits for the running calls, which may have got an error of this one.
    pub(crate) fn end_and_settle(self, result: &io::Result<Option<bool>>) {
        let failures = self.failures;
        let until = self.end_with(outcome(result));
        let mut state = failures.state.lock();
        state.waiting += 1;
        while !state.ranges.is_settled(until) {
            state = state.wait(&failures.call_ended);
        }
        state.waiting -= 1;
    }

    fn end_with(&self, outcome: Outcome) -> u64 {
        let failures = self.failures;
        if matches!(outcome, Outcome::Failed(_)) {
            failures.take_errors();
        }
        let mut state = failures.state.lock();
        let until = state.ranges.end(self.number, outcome);
        failures.errors.store(state.ranges.errors(), Ordering::SeqCst);
        let wakes = state.waiting > 0;
        drop(state);
        if wakes {
            failures.call_ended.notify_all();
        }
        until
    }
}

impl Drop for WriteBackCall<'_> {
    /// Ends the call if it has panicked, so that nobody waits for it. Otherwise it has no effect.
    fn drop(&mut self) {
        self.end_with(Outcome::Nothing);
    }
}

fn outcome(result: &io::Result<Option<bool>>) -> Outcome {
    match result {
        Ok(Some(true)) => Outcome::Done,
        Ok(_) => Outcome::Nothing,
        Err(error) if error.raw_os_error().is_some_and(|code| NO_FAILURES.contains(&code)) => {
            Outcome::Nothing
        }
        Err(error) => Outcome::Failed(Cause::of(error)),
    }
}
