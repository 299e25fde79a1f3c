//! redb's storage as a part of a file that goes through the scheduler.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use forebay::{BufResult, BufferPool, File, Scheduler};
use redb::StorageBackend;

/// A part of a file that begins at `start`. Requests are made in the current
/// class of the thread that calls redb.
pub(crate) struct Region {
    scheduler: Scheduler,
    file: File,
    start: u64,
    len: AtomicU64,
    len_max: u64,
    buffers: BufferPool,
    /// Writes that begin or end within a block read it first.
    partial: Mutex<()>,
}

impl Region {
    /// An empty storage in bytes `start` to `start + len_max` of `file`.
    pub(crate) fn new(scheduler: &Scheduler, file: File, start: u64, len_max: u64) -> Self {
        let alignment = file.direct_file().memory_alignment();
        Self {
            scheduler: scheduler.clone(),
            file,
            start,
            len: AtomicU64::new(0),
            len_max,
            buffers: BufferPool::new(alignment, 16 << 20),
            partial: Mutex::new(()),
        }
    }

    /// Forgets what an earlier run may have left: redb tells by the first bytes.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut block = self.buffers.take(self.blocks(0, 4096).1)?;
        block.fill(0);
        self.write_blocks(0, block)
    }

    /// The blocks that hold these bytes: where they begin, and how long they are.
    fn blocks(&self, offset: u64, len: usize) -> (u64, usize) {
        let block = self.file.direct_file().offset_alignment() as u64;
        let first = offset / block * block;
        let end = (offset + len as u64).next_multiple_of(block);
        (first, (end - first) as usize)
    }

    /// Reads whole blocks, with zeros behind the end of the file.
    fn read_blocks(&self, first: u64, len: usize) -> io::Result<forebay::AlignedBuf> {
        let buffer = self.buffers.take(len)?;
        let class = self.scheduler.current_class();
        let BufResult(read, mut buffer) =
            self.file.read_at(&class, buffer, self.start + first).wait();
        buffer[read?..].fill(0);
        Ok(buffer)
    }

    fn write_blocks(&self, first: u64, buffer: forebay::AlignedBuf) -> io::Result<()> {
        let len = buffer.len();
        let class = self.scheduler.current_class();
        let BufResult(written, _) = self.file.write_at(&class, buffer, self.start + first).wait();
        if written? < len { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }
}

impl StorageBackend for Region {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(Ordering::Acquire))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (first, len) = self.blocks(offset, out.len());
        let at = (offset - first) as usize;
        out.copy_from_slice(&self.read_blocks(first, len)?[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.len_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.len.store(len, Ordering::Release);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data(&self.scheduler.current_class()).wait()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (first, len) = self.blocks(offset, data.len());
        if len == data.len() {
            let mut buffer = self.buffers.take(len)?;
            buffer.copy_from_slice(data);
            return self.write_blocks(first, buffer);
        }
        let _partial = self.partial.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = self.read_blocks(first, len)?;
        let at = (offset - first) as usize;
        buffer[at..at + data.len()].copy_from_slice(data);
        self.write_blocks(first, buffer)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("start", &self.start).finish_non_exhaustive()
    }
}
