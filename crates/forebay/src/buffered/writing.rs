//! The writes of a writer, which mark their ranges dirty.

use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::Poll;

use rustix::io::Errno;

use super::part;
use super::sync::wait;
use super::waiter::Waiter;
use super::writer::BufferedWriter;
use crate::Class;
use crate::admit::AdmitFuture;
use crate::page_cache::{file_len, page_size, whole_pages, write_back};
use crate::permit::holds_permit_now;

/// A write of at least this many bytes that is refused as invalid is repeated with half its length,
/// because FUSE sends this many bytes at a time.
const REFUSED_LEN_MIN: usize = 1 << 20;

impl<F: AsFd> BufferedWriter<F> {
    /// Writes the beginning of `buffer`, at the end of the file if `offset` is `None`. Returns the
    /// number of bytes.
    pub(super) fn write_some(&self, buffer: &[u8], offset: Option<u64>) -> io::Result<usize> {
        let buffer = self.begin(buffer, offset)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.dirty_file().path.is_through() {
            return wait(self.write_through(buffer, offset, holds_permit_now()));
        }
        let (reserved, holder) = (pages_of(buffer, offset), holds_permit_now());
        if holder {
            self.dirty_file().dirt.reserve_for_holder(reserved);
        } else if !self.dirty_file().dirt.try_reserve(reserved) {
            wait(self.reserve(reserved))?;
        }
        self.write_reserved(buffer, offset, reserved, holder)
    }

    /// [`Self::write_some`] for a task.
    pub(super) async fn write_in_task(
        &self,
        buffer: &[u8],
        offset: Option<u64>,
    ) -> io::Result<usize> {
        let buffer = self.begin(buffer, offset)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.dirty_file().path.is_through() {
            return self.write_through(buffer, offset, false).await;
        }
        let reserved = pages_of(buffer, offset);
        if !self.dirty_file().dirt.try_reserve(reserved) {
            self.reserve(reserved).await?;
        }
        self.write_reserved(buffer, offset, reserved, false)
    }

    /// The part of `buffer` for one write. Fails with an error of earlier writes.
    fn begin<'a>(&self, buffer: &'a [u8], offset: Option<u64>) -> io::Result<&'a [u8]> {
        self.check()?;
        let file = self.dirty_file();
        file.failure_for_write()?;
        Ok(&buffer[..file.dirt.len_at_once(offset.unwrap_or(0), buffer.len())])
    }

    fn write_reserved(
        &self,
        buffer: &[u8],
        offset: Option<u64>,
        reserved: u64,
        holder: bool,
    ) -> io::Result<usize> {
        let file = self.dirty_file();
        file.held.open();
        let errors = file.failures.errors();
        let range = self.put(buffer, offset).inspect_err(|_| file.dirt.release(reserved))?;
        file.failures.wrote(&range, errors);
        file.path.check_after_write(self.file.as_fd(), &range);
        if file.mark(&range, reserved) {
            part::ask(file, holder);
        }
        Ok((range.end - range.start) as usize)
    }

    /// Waits until `bytes` more may be dirty. Fails if parts get no permit, because it might wait
    /// for ever.
    async fn reserve(&self, bytes: u64) -> io::Result<()> {
        let file = self.dirty_file();
        let waiter = Waiter::of(&file.dirt);
        poll_fn(|context| {
            if waiter.poll_reserve(bytes, context.waker()).is_ready() {
                return Poll::Ready(Ok(()));
            }
            file.failure_for_write()?;
            file.hand_over_all();
            part::ask(file, false);
            Poll::Pending
        })
        .await
    }

    /// A write that reaches the disk before it returns, and needs a permit first.
    async fn write_through(
        &self,
        buffer: &[u8],
        offset: Option<u64>,
        holder: bool,
    ) -> io::Result<usize> {
        let file = self.dirty_file();
        let (class, access) = (file.asking(), file.access(offset.unwrap_or(0)));
        let admit = AdmitFuture::required(Class { holder, ..class }, access, buffer.len() as u64);
        let permit = admit.await?;
        let errors = file.failures.errors();
        let result = self.put(buffer, offset).and_then(|range| {
            file.failures.wrote(&range, errors);
            if file.path.check_after_write(self.file.as_fd(), &range) {
                let (start, len) = (range.start, range.end - range.start);
                let call = file.failures.begin_part(&range);
                let result = file.held.call(move |fd| write_back(fd, start, len));
                call.end(&result);
                result?;
            }
            Ok(range)
        });
        permit.complete(&result);
        result.map(|range| (range.end - range.start) as usize)
    }

    /// Does the write, and returns its range.
    ///
    /// FUSE splits a long write to a file without a page cache at the ends of the pages of
    /// `buffer`. If that is within a sector of the disk below, the write is refused, but a shorter
    /// one is not.
    fn put(&self, mut buffer: &[u8], offset: Option<u64>) -> io::Result<Range<u64>> {
        loop {
            let written = match offset {
                Some(offset) => rustix::io::pwrite(&self.file, buffer, offset),
                None => rustix::io::write(&self.file, buffer),
            };
            let written = match written {
                Ok(written) => written as u64,
                Err(Errno::INTR) => continue,
                Err(Errno::INVAL) if buffer.len() >= REFUSED_LEN_MIN => {
                    buffer = &buffer[..REFUSED_LEN_MIN / 2];
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let start = match offset {
                Some(offset) => offset,
                None => rustix::fs::tell(&self.file)?.saturating_sub(written),
            };
            return Ok(start..start + written);
        }
    }
}

/// Writes at the writer's own position, which begins at that of the descriptor. With `O_APPEND` it
/// writes at the end of the file.
impl<F: AsFd> Write for BufferedWriter<F> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let offset = (!self.appends).then_some(self.position);
        let written = self.write_some(buffer, offset)?;
        self.position = match offset {
            Some(offset) => offset + written as u64,
            // A write with `O_APPEND` moves the descriptor's position to the end of its bytes.
            None => rustix::fs::tell(&self.file)?,
        };
        Ok(written)
    }

    /// Only fails while bytes of the file are failed. The writes are in the page cache, and
    /// [`BufferedWriter::sync_data`] makes them durable.
    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.dirty_file().failure_for_flush(&self.file)
    }
}

/// Moves the writer's own position, not that of the descriptor. The end is that of the file or
/// block device at the time of the call. With `O_APPEND` the next write still goes to the end.
impl<F: AsFd> Seek for BufferedWriter<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.check()?;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => file_len(&self.file)?.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        // As in `lseek(2)`, offsets are less than 2^63.
        let valid = position.filter(|position| i64::try_from(*position).is_ok());
        self.position = valid.ok_or_else(|| {
            let why = "a position is at least 0 and less than 2^63: seek within that";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        Ok(self.position)
    }
}

/// The most bytes of pages that a write can make dirty.
fn pages_of(buffer: &[u8], offset: Option<u64>) -> u64 {
    let len = buffer.len() as u64;
    let Some(offset) = offset else { return len.saturating_add(2 * page_size()) };
    let pages = whole_pages(&(offset..offset.saturating_add(len)));
    pages.end - pages.start
}
