//! Reads through the page cache, which need a permit only if the disk has to read.
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

/// The least number of bytes of a part, even on a slow disk.
const PART_LEN_MIN: usize = 128 << 10;
/// The most bytes of a part that is prefetched.
const PREFETCHED_MAX: usize = 1 << 20;

impl Class {
    /// Reads `file` at `offset` into `buffer`, through the page cache. Pages in memory are read at
    /// once and cost nothing. For the others it first waits for a permit on the disk of the file.
    /// Fills the buffer unless the file ends before, and returns the number of bytes read.
    ///
    /// A large read has a permit for each part that costs no more than the [effective
    /// goal](crate::Disk::effective_goal), or for each 128 KiB if that is more.
    ///
    /// The recent reads of the descriptor decide how misses are detected. While nine of ten hit,
    /// the read is tried without waiting (`RWF_NOWAIT`). A miss then starts the disk's work before
    /// it is charged. Otherwise the kernel is asked first (`cachestat`, Linux 6.5). If neither
    /// works (overlay, FUSE), each read has a permit for its length. Read-ahead of the kernel is
    /// charged afterwards, by the bytes that the disk has read for the thread. The same applies to
    /// a read that continues where the last one ended, or that begins at the start of the file.
    /// Reads through a memory mapping are not scheduled.
    ///
    /// # Errors
    /// Those of `pread(2)`, of [`Class::admit`] and
    /// [`Scheduler::disk_of_file`](crate::Scheduler::disk_of_file). An error after the first part
    /// ends the read with the bytes so far. A full queue and a removed class are no errors: the
    /// read waits for a place in the queue, and belongs to the class `untagged`.
    pub fn read_at(&self, file: impl AsFd, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = file.as_fd();
        if i64::try_from(offset).is_err() {
            // `preadv2` takes the largest offset for the position of the descriptor.
            return Err(Errno::INVAL.into());
        }
        let recent = HitRate::of(file);
        let (is_high, goes_on) = (recent.is_high(), recent.goes_on(file, offset, buffer.len()));
        // The kernel reads ahead at the start of a file, and the rate may be of a file that had
        // this descriptor number before.
        let is_tried = is_high && !goes_on && offset >= page_size();
        if buffer.len() <= PART_LEN_MIN {
            return self.read_part(file, buffer, offset, (recent, is_tried));
        }
        let mut done = 0;
        for part in buffer.chunks_mut(self.part_len(file)) {
            // The kernel reads ahead if a part continues where the last one ended.
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

    /// Reads `range` of `file` into the page cache, for example before it is read through a memory
    /// mapping: `class.prefetch(&file, ..)`. Pages that are not in memory are read in parts of at
    /// most 1 MiB, each with a permit as in [`Class::read_at`]. The pages are not locked in memory,
    /// so prefetch only bytes that are read soon, and fewer than fit into memory.
    ///
    /// # Errors
    /// As for [`Class::read_at`]. The parts before the error are in memory then.
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
                    // The file was truncated in the meantime.
                    break;
                }
            }
            start += len as u64;
        }
        Ok(())
    }

    /// The most bytes of `file` that are read with one permit. If the disk is unknown, misses fail
    /// and hits do not.
    fn part_len(&self, file: BorrowedFd<'_>) -> usize {
        let part_len = Scheduler::of(&self.scheduler).disk_of_file(file).map_or(0, |disk| {
            let largest = disk.record.here().of(Op::Read).largest_request(Op::Read);
            usize::try_from(largest).unwrap_or(usize::MAX)
        });
        part_len.max(PART_LEN_MIN)
    }

    /// [`Class::read_at`] for one part. If the part is probably in memory, it is first tried
    /// without waiting.
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

    /// The counters of this class's reads through the page cache, on all disks.
    pub fn page_cache_counters(&self) -> PageCacheCounters {
        self.record.reads.sum()
    }

    /// [`Class::read_at`] for a part that is probably not in memory.
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
            // The disk reads whole pages, even if the buffer begins or ends within one.
            let len = missing.unwrap_or((buffer.len() - done) as u64);
            return self.read_missing(file, buffer, offset, (done, len), Some(before));
        }
        if !is_over {
            // It is being read ahead, and was charged to the caller that caused this.
            done = read_all(file, buffer, offset, done)?;
        }
        self.record.reads.add_hit();
        self.charge(file, bytes_read_by_thread().saturating_sub(before))?;
        Ok(done)
    }

    /// Reads the bytes after the first `done` with a permit for `len` bytes. Then it charges what
    /// the disk has read for the thread since `before` beyond `len`.
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

/// Reads what is possible without waiting for the disk. Returns the number of bytes, and whether
/// the buffer is full or the file ends there.
#[inline]
fn read_now(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<(usize, bool)> {
    let mut done = 0;
    while done < buffer.len() {
        let mut rest = [IoSliceMut::new(&mut buffer[done..])];
        match preadv2(file, &mut rest, offset + done as u64, ReadWriteFlags::NOWAIT) {
            // Linux 5.9 and 5.10 also return 0 for pages that are not in memory.
            Ok(0) => return Ok((done, file_len(file)? <= offset + done as u64)),
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok((done, false)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((done, true))
}

/// Reads the bytes after the first `done`, and waits for the disk. Returns the number of bytes in
/// the buffer.
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

/// The bytes of a range's pages that are in the file but not in memory. `None` if the kernel does
/// not show them.
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
