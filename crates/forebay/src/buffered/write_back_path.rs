//! How what is written to a file gets to the disk, judged by what is seen of its pages.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rustix::fs::OFlags;

use crate::page_cache::{residency, write_back};

/// After this many writes in a row that left clean pages behind, writes are taken for written
/// through.
const CLEAN_WRITES_MIN: u8 = 8;

/// File systems whose pages are their own, by their numbers: believed where nothing can be seen.
const OWN_PAGES: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

const UNKNOWN: u8 = 0;
/// Writes stay in memory.
const CACHED: u8 = 1;
/// Writes are at the disk when they return.
const THROUGH: u8 = 2;

/// What is known of a file. Pages that are clean when a part is written back say nothing: the
/// engine may have flushed them, or others cut the file. Only two observations count: pages of a
/// write at the moment when it returns, and pages before and after a writeback of our own.
#[derive(Debug)]
pub(super) struct WriteBackPath {
    writes: AtomicU8,
    /// The last writes that left clean pages behind, without one in between that did not.
    clean_writes: AtomicU8,
    /// `cachestat` shows the file's pages: some were seen.
    is_shown: AtomicBool,
    /// By the flags of the file; this is not to be observed.
    is_always_through: bool,
}

impl WriteBackPath {
    /// Of a file that is open with `flags`.
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

    /// Whether a write is at the disk when it returns, so that the permit comes first.
    pub(super) fn is_through(&self) -> bool {
        self.writes.load(Ordering::Relaxed) == THROUGH
    }

    /// Looks at the pages of a write that has returned just now. Whether they are dirty although
    /// writes were taken for written through: that was a mistake, and is one no more.
    pub(super) fn look_after_write(&self, file: BorrowedFd<'_>, range: &Range<u64>) -> bool {
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

    /// Writes a range back by itself and waits. Whether the disk has it, as far as can be seen; if
    /// not, the file is to be flushed.
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
            // Pages may be dirty again by now, but hardly all of them.
            residency(file, offset, len).is_ok_and(|after| after.dirty < before.dirty)
        } else {
            // Somebody has written or dropped what was dirty, or the pages are another's.
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
        // Not every file system shows it.
        if !residency(&file, 0, len).is_ok_and(|seen| seen.dirty > 0) {
            return;
        }
        file.sync_data().unwrap();
        let write_back = || assert!(path.write_range(file.as_fd(), &(0..len)).unwrap());
        for _ in 0..=2 * CLEAN_WRITES_MIN {
            write_back();
            assert!(!path.is_through(), "the pages were clean before");
        }
        // as if each write had been written back by somebody before it returned
        for _ in 0..CLEAN_WRITES_MIN {
            assert!(!path.look_after_write(file.as_fd(), &(0..len)));
        }
        assert!(path.is_through());
        file.write_all_at(&[8; 64 << 10], 0).unwrap();
        assert!(path.look_after_write(file.as_fd(), &(0..len)));
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
        assert!(!path.look_after_write(file.as_fd(), &(0..4096)));
        assert!(path.is_through());
    }
}
