//! The kernel's page cache: what of a file is in it, and how it gets to the disk.

use std::os::fd::AsFd;

mod calls;
mod counters;
mod description;
mod probe;

pub(crate) use self::calls::{bytes_read_by_thread, residency, write_back};
pub use self::counters::PageCacheCounters;
pub(crate) use self::counters::ReadCounts;
pub(crate) use self::description::reopened;
pub use self::probe::PageCacheSupport;

/// The bytes of a page.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// The bytes of a file, where they can be seen; a block device says zero.
pub(crate) fn file_len(file: impl AsFd) -> Option<u64> {
    rustix::fs::fstat(file).ok().and_then(|stat| u64::try_from(stat.st_size).ok())
}
