//! The writes of a writer, and what each makes dirty.

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

/// A write that is refused as invalid is tried with half of that if it has this many bytes at
/// least: FUSE sends so much at a time.
const REFUSED_LEN_MIN: usize = 1 << 20;

impl<F: AsFd> BufferedWriter<F> {
    /// Writes what fits of `buffer`, at the end of the file if there is no offset.
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

    /// As much of `buffer` as is written at a time, unless something went wrong before.
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
        file.path.look_after_write(self.file.as_fd(), &range);
        if file.mark(&range, reserved) {
            part::ask(file, holder);
        }
        Ok((range.end - range.start) as usize)
    }

    /// Waits until `bytes` more may be dirty. Fails where parts get no permit, as it might wait for
    /// ever.
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

    /// Where a write is at the disk when it returns.
    async fn write_through(
        &self,
        buffer: &[u8],
        offset: Option<u64>,
        holder: bool,
    ) -> io::Result<usize> {
        let file = self.dirty_file();
        let (class, access) = (file.class.clone(), file.access(offset.unwrap_or(0)));
        let admit = AdmitFuture::required(Class { holder, ..class }, access, buffer.len() as u64);
        let permit = admit.await?;
        let errors = file.failures.errors();
        let result = self.put(buffer, offset).and_then(|range| {
            file.failures.wrote(&range, errors);
            if file.path.look_after_write(self.file.as_fd(), &range) {
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

    /// The write itself; where it went.
    ///
    /// FUSE cuts a long write to a file without a page cache where the pages of `buffer` end. Where
    /// that is within a sector of what is behind it, the write is refused, and a shorter one is
    /// not.
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

/// At a position of its own, which begins where the descriptor's is; at the end of the file with
/// `O_APPEND`.
impl<F: AsFd> Write for BufferedWriter<F> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let offset = (!self.appends).then_some(self.position);
        let written = self.write_some(buffer, offset)?;
        self.position = match offset {
            Some(offset) => offset + written as u64,
            // Such a write leaves the descriptor's position behind its bytes.
            None => rustix::fs::tell(&self.file)?,
        };
        Ok(written)
    }

    /// Fails while bytes of the file are failed, and does nothing else: what was written is in the
    /// page cache, and [`BufferedWriter::sync_data`] makes it durable.
    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.dirty_file().failure_for_flush(&self.file)
    }
}

/// Moves the writer's own position, and never that of the descriptor. The end is that of the file
/// or block device at the time of the call. With `O_APPEND` the next write goes to the end all the
/// same.
impl<F: AsFd> Seek for BufferedWriter<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.check()?;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(by) => file_len(&self.file)?.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        // As `lseek(2)`: no offset is larger.
        let valid = position.filter(|position| i64::try_from(*position).is_ok());
        self.position = valid.ok_or_else(|| {
            let why = "a position is at least 0 and less than 2^63: seek within that";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        Ok(self.position)
    }
}

/// Bytes of the pages that a write makes dirty at most.
fn pages_of(buffer: &[u8], offset: Option<u64>) -> u64 {
    let len = buffer.len() as u64;
    let Some(offset) = offset else { return len.saturating_add(2 * page_size()) };
    let pages = whole_pages(&(offset..offset.saturating_add(len)));
    pages.end - pages.start
}
