//! The data of a served disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_core::Op;
use rustix::fs::{FallocateFlags, MemfdFlags, SeekFrom};
use rustix::io::Errno;

use crate::config::ServeConfig;
use crate::refusal::refuse;
use crate::write_cache::{Mark, WriteCache, WriteCacheStats};

/// A sparse file that holds what was written.
pub(crate) struct Store {
    file: File,
    /// The most bytes it may hold; `None` if its file system says so.
    held_max: Option<u64>,
    /// Whether a write has failed for that.
    was_full: AtomicBool,
    cache: Option<Mutex<WriteCache>>,
}

impl Store {
    /// An empty store of the disk's capacity.
    pub(crate) fn new(config: &ServeConfig) -> io::Result<Self> {
        let (file, held_max) = match &config.backing {
            Some(path) => {
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).create(true).truncate(true).open(path);
                (
                    file.map_err(|e| {
                        refuse(format!(
                            "backing {}: {e}; name a file that can be written",
                            path.display()
                        ))
                    })?,
                    None,
                )
            }
            None => {
                let file: OwnedFd = rustix::fs::memfd_create("forebay-disk", MemfdFlags::CLOEXEC)?;
                (file.into(), Some(config.memory_max))
            }
        };
        file.set_len(config.capacity)?;
        let cache = config.write_cache.clone();
        let cache = cache.map(|cache| Mutex::new(WriteCache::new(cache, config.sector)));
        Ok(Self { file, held_max, was_full: AtomicBool::new(false), cache })
    }

    /// Appends `len` bytes from `offset` on to `data`; fewer at the disk's end.
    pub(crate) fn read(&self, offset: u64, len: usize, data: &mut Vec<u8>) -> io::Result<()> {
        let end = data.len() + len;
        data.reserve_exact(len);
        while data.len() < end {
            let position = offset + data.len() as u64;
            let spare = rustix::buffer::spare_capacity(data);
            match rustix::io::pread(&self.file, spare, position) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        data.truncate(end);
        Ok(())
    }

    /// Writes `data` at `offset`; with that the power may go.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> io::Result<Mark> {
        let len = data.len() as u64;
        let mut cache = self.cache();
        let mark = self.remember(&mut cache, offset..offset + len)?;
        if self.lacks_room(offset, len)? {
            self.was_full.store(true, Ordering::Relaxed);
            return Err(Errno::NOSPC.into());
        }
        self.file.write_all_at(data, offset)?;
        if let Some(cache) = &mut cache
            && cache.counts_down()
        {
            cache.cut(&self.file);
        }
        Ok(mark)
    }

    /// Forgets a range; it reads as zeros.
    pub(crate) fn discard(&self, offset: u64, len: u64) -> io::Result<Mark> {
        let mut cache = self.cache();
        let mark = self.remember(&mut cache, offset..offset + len)?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, len)?;
        Ok(mark)
    }

    /// Marks a request that changes nothing.
    pub(crate) fn mark(&self) -> Mark {
        self.cache().map_or_else(Mark::default, |mut cache| cache.mark())
    }

    /// The disk has completed a request, and a flush with it what it covers. False if the power
    /// went meanwhile: then it has failed.
    pub(crate) fn complete(&self, op: Op, mark: Mark) -> bool {
        self.cache().is_none_or(|mut cache| cache.complete(op, mark))
    }

    /// The power goes when this many more writes have arrived; at once if that is none.
    pub(crate) fn cut_after(&self, writes: u64) {
        let Some(mut cache) = self.cache() else { return };
        match writes {
            0 => cache.cut(&self.file),
            _ => cache.cut_after(writes),
        }
    }

    /// The power comes back; an error is one of the cut.
    pub(crate) fn restore(&self) -> io::Result<()> {
        self.cache().map_or(Ok(()), |mut cache| cache.restore())
    }

    /// Whether a write has failed since it held all that it may hold.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    /// What the write cache has done, if there is one.
    pub(crate) fn cache_stats(&self) -> Option<WriteCacheStats> {
        self.cache().map(|cache| cache.stats())
    }

    fn cache(&self) -> Option<MutexGuard<'_, WriteCache>> {
        Some(self.cache.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn remember(
        &self,
        cache: &mut Option<MutexGuard<'_, WriteCache>>,
        range: Range<u64>,
    ) -> io::Result<Mark> {
        match cache {
            Some(cache) => cache.remember(&self.file, range),
            None => Ok(Mark::default()),
        }
    }

    /// Bytes it holds.
    fn held(&self) -> io::Result<u64> {
        let blocks = rustix::fs::fstat(&self.file)?.st_blocks;
        Ok(u64::try_from(blocks).unwrap_or(0).saturating_mul(512))
    }

    /// Whether a write would need more memory than is allowed.
    fn lacks_room(&self, offset: u64, len: u64) -> io::Result<bool> {
        let Some(held_max) = self.held_max else { return Ok(false) };
        if self.held()?.saturating_add(len) <= held_max {
            return Ok(false);
        }
        // what is held already can be written again
        let hole = rustix::fs::seek(&self.file, SeekFrom::Hole(offset))?;
        Ok(hole < offset.saturating_add(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: &Store, offset: u64, len: usize) -> Vec<u8> {
        let mut data = Vec::new();
        store.read(offset, len, &mut data).unwrap();
        data
    }

    #[test]
    fn written_bytes_are_read_and_discarded_bytes_are_zero() {
        let store = Store::new(&ServeConfig::new(1 << 20)).unwrap();
        store.write(8192, &[7; 8192]).unwrap();
        assert_eq!(read(&store, 8192, 4096), [7; 4096]);
        store.discard(8192, 4096).unwrap();
        assert_eq!(read(&store, 8192, 4096), [0; 4096]);
        assert_eq!(read(&store, 12288, 4096), [7; 4096]);
        assert_eq!(read(&store, (1 << 20) - 512, 4096), [0; 512], "the disk ends");
    }

    #[test]
    fn memory_is_bounded_and_what_is_held_can_be_written_again() {
        let config = ServeConfig { memory_max: 8192, ..ServeConfig::new(1 << 20) };
        let store = Store::new(&config).unwrap();
        store.write(0, &[1; 8192]).unwrap();
        let error = store.write(8192, &[2; 4096]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        store.write(4096, &[3; 4096]).unwrap();
        store.discard(0, 4096).unwrap();
        store.write(8192, &[4; 4096]).unwrap();
        assert_eq!(read(&store, 4096, 8192), [[3; 4096], [4; 4096]].concat());
    }

    #[test]
    fn a_backing_file_holds_the_data() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let backing = Some(file.path().to_owned());
        let config = ServeConfig { backing, ..ServeConfig::new(1 << 20) };
        Store::new(&config).unwrap().write(4096, &[9; 512]).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap()[4096..4608], [9; 512]);
    }
}
