//! Reads through the page cache that have a permit where the disk does them.
//!
//! Decision: `docs/decisions/0033-cached-reads.md`.

use std::io::{self, IoSliceMut};
use std::ops::{Bound, RangeBounds};
use std::os::fd::{AsFd, BorrowedFd};

use forebay_core::Op;
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::hit_rate::HitRate;
use crate::page_cache::{
    PageCacheCounters, bytes_read_by_thread, file_len, page_size, residency, whole_pages,
};
use crate::{Class, Scheduler};

/// A part has at least this many bytes, however slow the disk is.
const PART_LEN_MIN: usize = 128 << 10;
/// A part that is read for others has at most this many bytes.
const PREFETCHED_MAX: usize = 1 << 20;

impl Class {
    /// Reads into `buffer` what `file` has from byte `offset` on, through the page cache: what is in
    /// memory is read at once and costs nothing; for what is not, a permit is waited for first, on
    /// the disk of the file. Fills the buffer unless the file ends before; returns how many bytes.
    ///
    /// A large read has a permit for each part that costs no more than the [effective
    /// goal](crate::Disk::effective_goal), or for each 128 KiB if that is more.
    ///
    /// Whether it is in memory is found out by the recent reads of the descriptor. As long as nine
    /// of ten hit, the read is tried without waiting (`RWF_NOWAIT`). That starts the disk's work for
    /// a miss, which is charged when it has begun; so otherwise the kernel is asked first
    /// (`cachestat`, Linux 6.5). Where neither works (overlay, FUSE) each read has a permit of its
    /// length. What the kernel read ahead is charged after it, by what the disk has read for the
    /// thread; so is what a read that goes on where the last one ended, or at the beginning of the
    /// file, made it read. Reads of mapped files pass no class.
    ///
    /// # Errors
    /// Those of `pread(2)`, of [`Class::admit`] and [`Scheduler::disk_of_file`](crate::Scheduler::disk_of_file);
    /// after the first part, how many bytes there are instead. A full queue is none, nor is a class
    /// that was removed: the read waits for a place, and is untagged work.
    pub fn read_at(&self, file: impl AsFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = file.as_fd();
        if i64::try_from(offset).is_err() {
            // `preadv2` takes the largest for the position of the descriptor
            return Err(Errno::INVAL.into());
        }
        let recent = HitRate::of(file);
        let (is_high, goes_on) = (recent.is_high(), recent.goes_on(file, offset, buffer.len()));
        // Where a file begins the kernel reads ahead, and the rate may be that of a file that had
        // the descriptor's number before.
        let is_tried = is_high && !goes_on && offset >= page_size();
        if buffer.len() <= PART_LEN_MIN {
            return self.read_part(file, buffer, offset, (recent, is_tried));
        }
        let mut done = 0;
        for part in buffer.chunks_mut(self.part_len(file)) {
            // What goes on where the last part ended makes the kernel read ahead.
            let is_tried = is_tried && done == 0;
            let place = offset.saturating_add(done as u64);
            match self.read_part(file, part, place, (recent, is_tried)) {
                Ok(read) => {
                    done += read;
                    if read < part.len() {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Brings what `file` has of `range` into the page cache, so that who reads it through a mapping
    /// finds it there: `class.prefetch(&file, ..)`. What is not in memory is read in parts of at most 1 MiB, each
    /// with a permit as in [`Class::read_at`]; what is there already is not read again. Nothing keeps
    /// it there: bring in what is read soon, and less than the memory holds.
    ///
    /// # Errors
    /// As for [`Class::read_at`]; the parts before are in memory then.
    pub fn prefetch(&self, file: impl AsFd, range: impl RangeBounds<u64>) -> io::Result<()> {
        let file = file.as_fd();
        let mut start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let end = end.min(file_len(file)?);
        let recent = HitRate::of(file);
        let mut buffer = Vec::new();
        while start < end {
            let left = usize::try_from(end - start).unwrap_or(usize::MAX);
            let len = left.min(self.part_len(file)).min(PREFETCHED_MAX);
            if missing_of(file, start, len) != Some(0) {
                buffer.resize(len.max(buffer.len()), 0);
                if self.read_watched(file, &mut buffer[..len], start, recent)? < len {
                    // It was cut meanwhile.
                    break;
                }
            }
            start += len as u64;
        }
        Ok(())
    }

    /// How much of `file` is read with a permit. Where the disk cannot be told a miss fails, and a
    /// hit does not.
    fn part_len(&self, file: BorrowedFd<'_>) -> usize {
        let part_len = Scheduler::of(&self.scheduler).disk_of_file(file).map_or(0, |disk| {
            let largest = disk.record.here().of(Op::Read).largest_request(Op::Read);
            usize::try_from(largest).unwrap_or(usize::MAX)
        });
        part_len.max(PART_LEN_MIN)
    }

    /// [`Class::read_at`] of what the disk may do at a time: tried without waiting first, if it is
    /// probably in memory.
    #[inline]
    fn read_part(
        &self,
        file: BorrowedFd<'_>,
        buffer: &mut [u8],
        offset: u64,
        (recent, is_tried): (&HitRate, bool),
    ) -> io::Result<usize> {
        if !is_tried {
            return self.read_watched(file, buffer, offset, recent);
        }
        let (done, is_over) = read_now(file, buffer, offset)?;
        if is_over {
            recent.add(true);
            self.record.reads.add_hit();
            return Ok(done);
        }
        recent.add(false);
        let pages = whole_pages(&(offset + done as u64..offset + buffer.len() as u64));
        let rest = pages.end - pages.start;
        self.read_missing(file, buffer, offset, (done, rest), None)
    }

    /// What the reads of this class through the page cache found, on all disks.
    pub fn page_cache_counters(&self) -> PageCacheCounters {
        self.record.reads.sum()
    }

    /// [`Class::read_at`] where it may well be that the disk is to do something.
    fn read_watched(
        &self,
        file: BorrowedFd<'_>,
        buffer: &mut [u8],
        offset: u64,
        recent: &HitRate,
    ) -> io::Result<usize> {
        let before = bytes_read_by_thread();
        let missing = missing_of(file, offset, buffer.len());
        let (mut done, is_over) = match missing {
            Some(1..) => (0, false),
            _ => read_now(file, buffer, offset)?,
        };
        recent.add(is_over || missing == Some(0));
        if !is_over && missing != Some(0) {
            // The disk reads whole pages, also where the buffer begins and ends within one.
            let len = missing.unwrap_or((buffer.len() - done) as u64);
            return self.read_missing(file, buffer, offset, (done, len), Some(before));
        }
        if !is_over {
            // It is on its way, and was charged to the caller that had it read ahead.
            done = read_all(file, buffer, offset, done)?;
        }
        self.record.reads.add_hit();
        self.charge(file, bytes_read_by_thread().saturating_sub(before))?;
        Ok(done)
    }

    /// Reads what comes after the first `done` bytes with a permit for `len`, and charges what the
    /// disk has read for the thread since `before` beyond that.
    #[cold]
    fn read_missing(
        &self,
        file: BorrowedFd<'_>,
        buffer: &mut [u8],
        offset: u64,
        (done, len): (usize, u64),
        before: Option<u64>,
    ) -> io::Result<usize> {
        self.record.reads.add_miss();
        let place = Op::Read.at(offset.saturating_add(done as u64));
        let permit = self.admit_for(&file, place, len).wait_required()?;
        let before = before.unwrap_or_else(bytes_read_by_thread);
        let result = read_all(file, buffer, offset, done);
        permit.complete(&result);
        let done = result?;
        self.charge(file, bytes_read_by_thread().saturating_sub(before).saturating_sub(len))?;
        Ok(done)
    }

    /// Charges bytes that the disk has read without a permit. Waits for their turn, in parts, as the
    /// kernel may read many MiB ahead.
    fn charge(&self, file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
        if bytes > 0 {
            self.record.reads.add_read_ahead(bytes);
            for (_, admit) in self.admit_for(&file, Op::Read, bytes).in_parts()? {
                drop(admit.wait_required()?);
            }
        }
        Ok(())
    }
}

/// Reads what can be read without waiting for the disk; how many bytes, and whether that is all
/// that there is.
#[inline]
fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<(usize, bool)> {
    let mut done = 0;
    while done < buffer.len() {
        let mut rest = [IoSliceMut::new(&mut buffer[done..])];
        match preadv2(file, &mut rest, offset + done as u64, ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok((done, false)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((done, true))
}

/// Reads what comes after the first `done` bytes, and waits for it; how many bytes there are now.
fn read_all(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
    mut done: usize,
) -> io::Result<usize> {
    while done < buffer.len() {
        match rustix::io::pread(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Bytes of the pages of a range that the file has and memory has not; `None` where nobody can tell.
fn missing_of(file: BorrowedFd<'_>, offset: u64, len: usize) -> Option<u64> {
    let missing = |end: u64| {
        let pages = whole_pages(&(offset..end));
        let len = pages.end - pages.start;
        let seen = residency(file, pages.start, len.max(1)).ok()?;
        Some(len.saturating_sub(seen.cached.saturating_mul(page_size())))
    };
    let end = offset.saturating_add(len as u64);
    let all = missing(end)?;
    if all == 0 {
        return Some(0);
    }
    match file_len(file) {
        Ok(len) if len <= offset => Some(0),
        Ok(len) if len < end => missing(len),
        _ => Some(all),
    }
}
