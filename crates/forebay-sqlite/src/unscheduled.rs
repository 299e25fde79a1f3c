//! What goes past the scheduler is counted, and said once.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use libsqlite3_sys::{SQLITE_WARNING, sqlite3_log};

/// What went past the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Pages that SQLite took from a mapping (`PRAGMA mmap_size`).
    pub mapped: u64,
    /// Reads and writes of databases and their logs that reached no disk of the scheduler: the wrapped
    /// VFS makes its system calls by itself, or the scheduler refused, as in a forked child.
    pub unscheduled: u64,
}

/// A kind of I/O that goes past the scheduler.
#[derive(Default)]
pub(crate) struct Past {
    count: AtomicU64,
    said: AtomicBool,
}

impl Past {
    /// Counts one more, and says `why` if it is the first.
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

/// Says it in the program's log, and in that of SQLite.
pub(crate) fn warn(code: c_int, what: &str) {
    log::warn!("{what}");
    tell_sqlite(code, what);
}

/// Says it in SQLite's log.
pub(crate) fn tell_sqlite(code: c_int, what: &str) {
    if let Ok(text) = CString::new(format!("forebay: {what}")) {
        // SAFETY: the format has one `%s`, and the text lives longer than the call.
        unsafe { sqlite3_log(code, c"%s".as_ptr(), text.as_ptr()) };
    }
}
