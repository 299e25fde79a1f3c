//! Who waits for a dirty file.

use std::sync::OnceLock;
use std::task::{Poll, Waker};

use super::dirty_file::DirtyFile;
use crate::wait_list::WaiterId;

/// Waits until parts of the file have ended, or until more may be dirty. Nothing is kept of it when
/// it is dropped.
pub(super) struct Waiter<'a> {
    file: &'a DirtyFile,
    /// Once it has waited.
    id: OnceLock<WaiterId>,
}

impl<'a> Waiter<'a> {
    pub(super) const fn of(file: &'a DirtyFile) -> Self {
        Self { file, id: OnceLock::new() }
    }

    /// `waker` is woken when a part has ended next, however it did.
    pub(super) fn wake_at_end(&self, waker: &Waker) {
        self.file.wake_at_end(self.id(), waker);
    }

    /// [`DirtyFile::try_reserve`] for who is woken [at the end of a part](Self::wake_at_end); if
    /// not, `waker` is woken as well when less is dirty in other files.
    pub(super) fn poll_reserve(&self, bytes: u64, waker: &Waker) -> Poll<()> {
        self.file.poll_reserve(bytes, self.id(), waker)
    }

    /// Whether all parts up to this number have ended; else `waker` is woken when one has.
    pub(super) fn poll_ended(&self, number: u64, waker: &Waker) -> Poll<()> {
        self.file.poll_ended(number, self.id(), waker)
    }

    fn id(&self) -> WaiterId {
        *self.id.get_or_init(WaiterId::new)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.get() {
            self.file.leave(*id);
        }
    }
}
