//! The threads of the library for which other threads wait.

use std::cell::Cell;
use std::io;

thread_local! {
    static IS_LIBRARY_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// What a thread of the library was asked for that it would have to do itself.
#[derive(thiserror::Error)]
#[error(
    "this thread of the library would wait for itself (EDEADLK): do not block in a waker, wake a \
     thread or a task that waits"
)]
pub(crate) struct WaitsForItself;

forebay_core::debug_as_display!(WaitsForItself);

impl From<WaitsForItself> for io::Error {
    fn from(error: WaitsForItself) -> Self {
        Self::new(io::ErrorKind::Deadlock, error)
    }
}

/// Marks the calling thread as one for which others wait: for requests, parts of files, deletions,
/// or the deadlines of permits.
pub(crate) fn begin() {
    IS_LIBRARY_THREAD.set(true);
}

/// Whether the calling thread is one of these. Code of others in a waker must not wait for them
/// then.
pub(crate) fn is_library_thread() -> bool {
    IS_LIBRARY_THREAD.get()
}
