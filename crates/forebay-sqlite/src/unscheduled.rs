//! Unscheduled I/O is counted, and logged once.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use libsqlite3_sys::{SQLITE_WARNING, sqlite3_log};

/// The unscheduled I/O of a VFS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Pages that SQLite read through a memory mapping (`PRAGMA mmap_size`).
    pub mapped: u64,
    /// Reads and writes of databases, WALs and journals that bypassed the scheduler: the wrapped VFS
    /// uses system calls of its own, or the scheduler refused them, as in a forked child.
    pub unscheduled: u64,
}

/// The count of one kind of unscheduled I/O.
#[derive(Default)]
pub(crate) struct Past {
    count: AtomicU64,
    said: AtomicBool,
}

impl Past {
    /// Counts one operation. The first one logs `why`.
    pub(crate) fn add(&self, why: impl FnOnce() -> String) {
        self.count.fetch_add(1, Relaxed);
        if !self.said.load(Relaxed) && !self.said.swap(true, Relaxed) {
            warn(SQLITE_WARNING, &why());
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

/// Logs a warning in the program's log and in SQLite's.
pub(crate) fn warn(code: c_int, what: &str) {
    log::warn!("{what}");
    tell_sqlite(code, what);
}

/// Writes a message to SQLite's log.
pub(crate) fn tell_sqlite(code: c_int, what: &str) {
    if let Ok(text) = CString::new(format!("forebay: {what}")) {
        // SAFETY: the format has one `%s`, and the text lives longer than the call.
        unsafe { sqlite3_log(code, c"%s".as_ptr(), text.as_ptr()) };
    }
}
