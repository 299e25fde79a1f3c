//! The kernel's page cache: what of a file is in it, and how it gets to the disk.

mod calls;
mod description;
mod probe;

pub(crate) use self::calls::{residency, write_back};
pub(crate) use self::description::reopened;
pub use self::probe::PageCacheSupport;

/// The bytes of a page.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}
