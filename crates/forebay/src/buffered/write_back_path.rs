//! How writes to a file reach the disk, derived from the state of its pages.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rustix::fs::OFlags;

use crate::page_cache::{residency, write_back};

/// After this many consecutive writes that left clean pages, writes are assumed to be written
/// through.
const CLEAN_WRITES_MIN: u8 = 8;

/// The magic numbers of file systems that keep their own pages. They are trusted if the kernel does
/// not show pages.
const OWN_PAGES: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

const UNKNOWN: u8 = 0;
/// Writes stay in memory.
const CACHED: u8 = 1;
/// Writes are at the disk when they return.
const THROUGH: u8 = 2;

/// The observations of a file. Pages that are clean when a part is written back prove nothing: the
/// engine may have flushed them, or the file was truncated. Only two observations count: the pages
/// of a write when it returns, and the pages before and after the library's own write-back.
#[derive(Debug)]
pub(super) struct WriteBackPath {
    writes: AtomicU8,
    /// The number of the last consecutive writes that left clean pages.
    clean_writes: AtomicU8,
    /// `cachestat` has shown pages of the file.
    is_shown: AtomicBool,
    /// The flags of the file imply write-through, so nothing has to be observed.
    is_always_through: bool,
}

impl WriteBackPath {
    /// The path of a file that is open with `flags`.
    pub(super) const fn of(flags: OFlags) -> Self {
        let at_once = OFlags::DIRECT.union(OFlags::DSYNC).union(OFlags::SYNC);
        let is_always_through = flags.intersects(at_once);
        Self {
            writes: AtomicU8::new(if is_always_through { THROUGH } else { UNKNOWN }),
            clean_writes: AtomicU8::new(0),
            is_shown: AtomicBool::new(false),
            is_always_through,
        }
    }

    /// Whether a write reaches the disk before it returns, so that it needs a permit first.
    pub(super) fn is_through(&self) -> bool {
        self.writes.load(Ordering::Relaxed) == THROUGH
    }

    /// Observes the pages of a write that has just returned. Returns whether they are dirty
    /// although writes were assumed to be written through; this corrects the assumption.
    pub(super) fn check_after_write(&self, file: BorrowedFd<'_>, range: &Range<u64>) -> bool {
        let before = self.writes.load(Ordering::Relaxed);
        if before == CACHED || self.is_always_through || range.is_empty() {
            return false;
        }
        match residency(file, range.start, range.end - range.start) {
            Ok(seen) if seen.cached > 0 && seen.is_clean() => {
                self.is_shown.store(true, Ordering::Relaxed);
                if before == UNKNOWN {
                    let clean = self.clean_writes.fetch_add(1, Ordering::Relaxed) + 1;
                    if clean >= CLEAN_WRITES_MIN {
                        self.writes.store(THROUGH, Ordering::Relaxed);
                    }
                }
                false
            }
            Ok(seen) => {
                self.is_shown.fetch_or(!seen.is_clean(), Ordering::Relaxed);
                self.writes.store(CACHED, Ordering::Relaxed);
                before == THROUGH && !seen.is_clean()
            }
            Err(_) => {
                self.writes.store(CACHED, Ordering::Relaxed);
                false
            }
        }
    }

    /// Writes back a range and waits. Returns whether the disk has it, as far as the kernel shows.
    /// Otherwise the file has to be flushed.
    pub(super) fn write_range(&self, file: BorrowedFd<'_>, range: &Range<u64>) -> io::Result<bool> {
        let (offset, len) = (range.start, range.end - range.start);
        let before = residency(file, offset, len);
        if !write_back(file, offset, len)? {
            return Ok(false);
        }
        let Ok(before) = before else { return Ok(has_own_pages(file)) };
        if before.cached > 0 {
            self.is_shown.store(true, Ordering::Relaxed);
        }
        let is_done = if before.dirty > 0 {
            // Some pages may already be dirty again, but hardly all.
            residency(file, offset, len).is_ok_and(|after| after.dirty < before.dirty)
        } else {
            // The pages were written or dropped by another program, or belong to another file
            // system.
            self.is_shown.load(Ordering::Relaxed)
        };
        Ok(is_done || has_own_pages(file))
    }
}

fn has_own_pages(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|stat| OWN_PAGES.contains(&(stat.f_type as u64)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn clean_pages_of_others_decide_nothing_and_one_dirty_write_takes_a_conclusion_back() {
        let file = tempfile::tempfile_in(".").unwrap();
        let path = WriteBackPath::of(OFlags::RDWR);
        let len = 64 << 10;
        file.write_all_at(&[7; 64 << 10], 0).unwrap();
        // Not every file system shows dirty pages.
        if !residency(&file, 0, len).is_ok_and(|seen| seen.dirty > 0) {
            return;
        }
        file.sync_data().unwrap();
        let write_back = || assert!(path.write_range(file.as_fd(), &(0..len)).unwrap());
        for _ in 0..=2 * CLEAN_WRITES_MIN {
            write_back();
            assert!(!path.is_through(), "the pages were clean before");
        }
        // This is as if another program had written back each write before it returned.
        for _ in 0..CLEAN_WRITES_MIN {
            assert!(!path.check_after_write(file.as_fd(), &(0..len)));
        }
        assert!(path.is_through());
        file.write_all_at(&[8; 64 << 10], 0).unwrap();
        assert!(path.check_after_write(file.as_fd(), &(0..len)));
        assert!(!path.is_through());
        write_back();
        assert!(residency(&file, 0, len).unwrap().is_clean());
        file.set_len(0).unwrap();
        write_back();
    }

    #[test]
    fn flags_say_more_than_pages() {
        let file = tempfile::tempfile_in(".").unwrap();
        let path = WriteBackPath::of(OFlags::RDWR | OFlags::DSYNC);
        file.write_all_at(&[7; 4096], 0).unwrap();
        assert!(!path.check_after_write(file.as_fd(), &(0..4096)));
        assert!(path.is_through());
    }
}
