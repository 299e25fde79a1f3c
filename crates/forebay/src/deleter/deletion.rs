//! The handle of a deletion.

use std::fmt;
use std::future::{Future, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar};
use std::task::{Context, Poll};

use super::error::{DeleteError, DeleteErrorCause};
use crate::sys::fork::{Forked, Process};
use crate::sys::library_thread::is_library_thread;
use crate::sys::lock::{Lock, LockGuard};
use crate::sys::waker::{KeptWaker, wake_all};
use crate::wait_list::{WaitList, WaiterId};

/// How a file was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeletedHow {
    /// Freed in steps, each flushed, by punching holes from its end.
    Punched,
    /// Freed in steps by truncating it from its end. Holes cannot be punched there, or it had dirty
    /// pages (which punching a hole would write first), or it was small and shared a step with
    /// others.
    Truncated,
    /// Unlinked at once, for this reason.
    Unlinked(UnlinkReason),
}

/// Why a file was unlinked at once instead of freed in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnlinkReason {
    /// Deleting files sends no discards there, so pacing is useless: the file system is mounted
    /// without `discard`, or the device does not support discards.
    NoDiscards,
    /// It has no blocks to free, or is not a regular file.
    NothingToFree,
    /// It has other names, so nothing is freed.
    HardLinked,
    /// It is open elsewhere, or that is unknown. Its blocks are freed with its last descriptor.
    OpenElsewhere,
    /// It cannot be moved to a trash directory, because the file system is full.
    NoSpace,
}

/// The result of a successful deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// How the file was deleted; for several files, the last one.
    pub how: DeletedHow,
    /// The number of deleted files: 1, or the files of [earlier
    /// processes](crate::Deleter::empty_trash).
    pub files: u64,
    /// Bytes that were freed in steps.
    pub bytes: u64,
    /// The number of steps.
    pub steps: u64,
}

/// The progress of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeletionProgress {
    /// The state of the deletion.
    pub state: DeletionState,
    /// The bytes freed so far.
    pub bytes_freed: u64,
    /// The size in bytes when the file was removed from its path; 0 before.
    pub bytes_total: u64,
    /// The number of steps so far.
    pub steps: u64,
}

/// The state of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeletionState {
    /// The file is still at its path.
    #[default]
    Waiting,
    /// The file is being removed from its path, and the deletion can no longer be cancelled.
    Removing,
    /// The file is durably removed from its path, and will be freed even if the process ends.
    Removed,
    /// The deletion has ended, with or without an error.
    Ended,
}

/// A requested deletion: a future that resolves to its result.
///
/// Cancel safety: dropping it has no effect, and the file is still deleted. Use
/// [`Deletion::cancel`] to keep the file.
#[must_use = "it may fail"]
pub struct Deletion {
    target: Arc<Target>,
    waiter: Waiter,
}

/// A task that waits for a deletion. Its waker is removed when this is dropped.
struct Waiter {
    target: Arc<Target>,
    id: WaiterId,
}

/// A file that is being deleted, or all files of a trash.
pub(super) struct Target {
    pub(super) path: PathBuf,
    process: Process,
    inner: Lock<Inner>,
    changed: Condvar,
}

struct Inner {
    progress: DeletionProgress,
    /// The number of files that have not ended.
    open: u64,
    files: u64,
    how: DeletedHow,
    error: Option<DeleteErrorCause>,
    waiters: WaitList,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            progress: DeletionProgress::default(),
            open: 1,
            files: 0,
            how: DeletedHow::Unlinked(UnlinkReason::NothingToFree),
            error: None,
            waiters: WaitList::default(),
        }
    }
}

impl Target {
    pub(super) fn new(path: PathBuf) -> Self {
        let (process, inner) = (Process::current(), Lock::default());
        Self { path, process, inner, changed: Condvar::new() }
    }

    /// Begins the removal from the path. Returns false if the deletion was cancelled.
    pub(super) fn begin(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.progress.state != DeletionState::Waiting {
            return false;
        }
        inner.progress.state = DeletionState::Removing;
        true
    }

    /// Adds a file.
    pub(super) fn add_file(&self) {
        self.inner.lock().open += 1;
    }

    pub(super) fn add_total(&self, bytes: u64) {
        self.inner.lock().progress.bytes_total += bytes;
    }

    /// Subtracts bytes that another deleter has freed.
    pub(super) fn take_off(&self, bytes: u64) {
        let total = &mut self.inner.lock().progress.bytes_total;
        *total = total.saturating_sub(bytes);
    }

    pub(super) fn note_removed(&self) {
        self.change(|inner| {
            let state = &mut inner.progress.state;
            *state = (*state).max(DeletionState::Removed);
        });
    }

    pub(super) fn add_step(&self, bytes: u64) {
        let mut inner = self.inner.lock();
        inner.progress.steps += 1;
        inner.progress.bytes_freed += bytes;
    }

    /// Ends one file. `None` is the end of the scan of
    /// [`empty_trash`](crate::Deleter::empty_trash), or a file that another deleter deleted.
    pub(super) fn end(&self, result: Result<Option<DeletedHow>, DeleteErrorCause>) {
        self.change(|inner| {
            match result {
                Ok(None) => {}
                Ok(Some(how)) => {
                    inner.how = how;
                    inner.files += 1;
                }
                Err(cause) => _ = inner.error.get_or_insert(cause),
            }
            inner.open = inner.open.saturating_sub(1);
            if inner.open == 0 {
                inner.progress.state = DeletionState::Ended;
            }
        });
    }

    /// Ends the deletion after a panic of its thread.
    pub(super) fn note_panic(&self) {
        self.change(|inner| {
            if inner.progress.state != DeletionState::Ended {
                inner.progress.state = DeletionState::Ended;
                inner.error.get_or_insert(DeleteErrorCause::Panicked);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.inner.lock();
        let before = inner.progress.state;
        change(&mut inner);
        if inner.progress.state == before {
            return;
        }
        let waiters = inner.waiters.take();
        drop(inner);
        self.changed.notify_all();
        wake_all(waiters);
    }

    /// The state, or an error in a forked child.
    fn checked(&self) -> Result<LockGuard<'_, Inner>, DeleteError> {
        self.process.check().map_err(|forked: Forked| DeleteError::new(&self.path, forked))?;
        Ok(self.inner.lock())
    }

    fn is_removed(&self, inner: &Inner) -> Option<Result<(), DeleteError>> {
        match inner.progress.state {
            DeletionState::Waiting | DeletionState::Removing => None,
            DeletionState::Removed => Some(Ok(())),
            DeletionState::Ended => Some(self.result(inner).map(drop)),
        }
    }

    fn is_ended(&self, inner: &Inner) -> Option<Result<Deleted, DeleteError>> {
        (inner.progress.state == DeletionState::Ended).then(|| self.result(inner))
    }

    fn result(&self, inner: &Inner) -> Result<Deleted, DeleteError> {
        if let Some(cause) = &inner.error {
            return Err(DeleteError::new(&self.path, cause.clone()));
        }
        let DeletionProgress { bytes_freed: bytes, steps, .. } = inner.progress;
        Ok(Deleted { how: inner.how, files: inner.files, bytes, steps })
    }
}

/// The result that is awaited, once there is one.
type Until<T> = fn(&Target, &Inner) -> Option<Result<T, DeleteError>>;

impl Deletion {
    pub(super) fn of(target: Arc<Target>) -> Self {
        let waiter = Waiter::of(&target);
        Self { target, waiter }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Blocks until the file is deleted.
    ///
    /// # Errors
    /// The file is not deleted: see [`DeleteError`]. In a waker that a thread of the library runs,
    /// and that would wait for itself, [`WaitsForItself`](DeleteErrorCause::WaitsForItself) unless
    /// the deletion has ended.
    pub fn wait(&self) -> Result<Deleted, DeleteError> {
        self.wait_until(Target::is_ended)
    }

    /// Blocks until the file is durably removed from its path. After that it does not come back,
    /// even if the process or the machine crashes, and its blocks are freed later.
    ///
    /// # Errors
    /// As for [`Deletion::wait`].
    pub fn wait_removed(&self) -> Result<(), DeleteError> {
        self.wait_until(Target::is_removed)
    }

    /// [`Deletion::wait_removed`] for a task.
    ///
    /// # Errors
    /// As for [`Deletion::wait`].
    ///
    /// Cancel safety: dropping it has no effect on the deletion.
    pub async fn removed(&self) -> Result<(), DeleteError> {
        let waiter = Waiter::of(&self.target);
        poll_fn(|context| waiter.poll_until(context, Target::is_removed)).await
    }

    /// The progress. All zero in a forked child.
    pub fn progress(&self) -> DeletionProgress {
        self.target.checked().map_or_else(|_| DeletionProgress::default(), |inner| inner.progress)
    }

    /// Cancels the deletion if the file is still at its path. Returns whether it was cancelled;
    /// then the deletion fails with [`Cancelled`](DeleteErrorCause::Cancelled). A deletion that has
    /// begun continues, because a partly freed file cannot be restored.
    pub fn cancel(&self) -> bool {
        if self.target.process.check().is_err() || !self.target.begin() {
            return false;
        }
        self.target.end(Err(DeleteErrorCause::Cancelled));
        true
    }

    fn wait_until<T>(&self, until: Until<T>) -> Result<T, DeleteError> {
        let mut inner = self.target.checked()?;
        loop {
            if let Some(result) = until(&self.target, &inner) {
                return result;
            }
            if is_library_thread() {
                let cause = DeleteErrorCause::WaitsForItself;
                return Err(DeleteError::new(&self.target.path, cause));
            }
            inner = inner.wait(&self.target.changed);
        }
    }
}

impl Waiter {
    fn of(target: &Arc<Target>) -> Self {
        Self { target: Arc::clone(target), id: WaiterId::new() }
    }

    fn poll_until<T>(
        &self,
        context: &Context<'_>,
        until: Until<T>,
    ) -> Poll<Result<T, DeleteError>> {
        // The waker is cloned before the lock is taken. The replaced one is dropped after its
        // release.
        let waker = KeptWaker::of(context.waker());
        let mut inner = match self.target.checked() {
            Ok(inner) => inner,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match until(&self.target, &inner) {
            Some(result) => Poll::Ready(result),
            None => {
                let before = inner.waiters.add(self.id, waker);
                drop(inner);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl Future for Deletion {
    type Output = Result<Deleted, DeleteError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiter.poll_until(context, Target::is_ended)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let waker = self.target.inner.lock().waiters.remove(self.id);
        drop(waker);
    }
}

impl fmt::Debug for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deletion")
            .field("path", &self.target.path)
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}
