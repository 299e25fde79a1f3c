//! By which calls a part of a file gets to the disk, judged by what comes of it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::OFlags;

use crate::page_cache::{residency, write_back};

/// So often what is seen of a part may say nothing before that is taken for an answer.
const UNCERTAIN_MAX: u8 = 8;

/// File systems whose pages are their own, by their numbers: believed where nothing can be seen.
const OWN_PAGES: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

const UNKNOWN: u8 = 0;
const RANGES: u8 = 1;
const FLUSHES: u8 = 2;
const THROUGH: u8 = 3;

/// Known with the first parts that were seen dirty, and clean when they were written back.
#[derive(Debug)]
pub(super) struct WriteBackPath {
    path: AtomicU8,
    uncertain: AtomicU8,
}

impl WriteBackPath {
    /// Of a file that is open with `flags`.
    pub(super) const fn of(flags: OFlags) -> Self {
        let at_once = OFlags::DIRECT.union(OFlags::DSYNC).union(OFlags::SYNC);
        let path = if flags.intersects(at_once) { THROUGH } else { UNKNOWN };
        Self { path: AtomicU8::new(path), uncertain: AtomicU8::new(0) }
    }

    /// Whether a write is at the disk when it returns, so that the permit comes first.
    pub(super) fn is_through(&self) -> bool {
        self.path.load(Ordering::Relaxed) == THROUGH
    }

    /// Writes a range back and waits until the disk has it; with the whole file where a range
    /// cannot be written by itself, after `admit_flush`.
    pub(super) fn write_back<P>(
        &self,
        file: BorrowedFd<'_>,
        range: &Range<u64>,
        admit_flush: impl FnOnce() -> P,
    ) -> io::Result<()> {
        let len = range.end - range.start;
        let is_written = match self.path.load(Ordering::Relaxed) {
            RANGES | THROUGH => return write_back(file, range.start, len),
            FLUSHES => false,
            _ => self.try_range(file, range.start, len)?,
        };
        if is_written {
            return Ok(());
        }
        let _permit = admit_flush();
        Ok(rustix::fs::fdatasync(file)?)
    }

    /// Writes a range back by itself. Whether that did it, as far as can be seen.
    fn try_range(&self, file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<bool> {
        let Ok(before) = residency(file, offset, len) else {
            let path = if has_own_pages(file) { RANGES } else { FLUSHES };
            self.path.store(path, Ordering::Relaxed);
            return if path == RANGES {
                write_back(file, offset, len).map(|()| true)
            } else {
                Ok(false)
            };
        };
        write_back(file, offset, len)?;
        let is_clean = residency(file, offset, len).is_ok_and(|after| after.is_clean());
        if before.dirty > 0 && is_clean {
            self.path.store(RANGES, Ordering::Relaxed);
            return Ok(true);
        }
        if self.uncertain.fetch_add(1, Ordering::Relaxed) + 1 >= UNCERTAIN_MAX {
            let path = match before.dirty {
                // Of more than the range, where the pages are larger.
                1.. if has_own_pages(file) => RANGES,
                // In memory and never dirty: it is written when it is written to.
                0 if before.cached > 0 => THROUGH,
                _ => FLUSHES,
            };
            self.path.store(path, Ordering::Relaxed);
        }
        // The kernel may have written it before.
        Ok(before.cached > 0 && is_clean)
    }
}

fn has_own_pages(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|stat| OWN_PAGES.contains(&(stat.f_type as u64)))
}
