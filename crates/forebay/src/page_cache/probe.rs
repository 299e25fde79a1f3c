//! A test of the page-cache features in a directory.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::{ReadWriteFlags, preadv2, pwritev2};

use super::calls::{residency, write_back};

/// `RWF_DONTCACHE`, since Linux 6.14.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
/// The bytes of the test write.
const LEN: usize = 128 << 10;
/// The most checks, because pages leave memory a moment after their write-back has ended.
const TRIES: u32 = 20;

/// The page-cache features that work on the files of a directory. They are tested by their effects,
/// not by their return values: on an overlay `sync_file_range` succeeds without an effect, and
/// `cachestat` returns zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCacheSupport {
    /// Written pages are shown in memory (`cachestat`, Linux 6.5).
    pub residency: bool,
    /// Written pages are shown as dirty before they are on the disk. This is not so if writes go to
    /// the disk at once, or if there is no disk.
    pub dirty_pages: bool,
    /// A range can be written back alone (`sync_file_range`): its pages are shown as dirty before,
    /// and as clean afterwards. Otherwise each part of a file is written back with an `fdatasync`.
    pub ranges: bool,
    /// A write with `RWF_DONTCACHE` (Linux 6.14) leaves no pages in memory after it is on the disk.
    pub uncached_writes: bool,
    /// A read of pages in memory succeeds with `RWF_NOWAIT`.
    pub reads_without_waiting: bool,
}

impl PageCacheSupport {
    /// Tests the features with an unnamed file in `dir`.
    ///
    /// # Errors
    /// No file can be made there, or it cannot be written.
    pub fn of_directory(dir: impl AsRef<Path>) -> io::Result<Self> {
        Self::of_empty_file(&nameless_file(dir.as_ref())?)
    }

    fn of_empty_file(file: &OwnedFd) -> io::Result<Self> {
        let len = LEN as u64;
        let data = vec![7; LEN];
        rustix::io::pwrite(file, &data, 0)?;
        let written = residency(file, 0, len).unwrap_or_default();
        let wrote_back = write_back(file.as_fd(), 0, len).is_ok();
        let ended = residency(file, 0, len).unwrap_or_default();
        let ranges = wrote_back && written.dirty > 0 && ended.is_clean();
        let residency_seen = written.cached > 0;
        Ok(Self {
            residency: residency_seen,
            dirty_pages: written.dirty > 0,
            ranges,
            uncached_writes: residency_seen && writes_uncached(file, &data),
            reads_without_waiting: reads_without_waiting(file, &data),
        })
    }
}

fn writes_uncached(file: &OwnedFd, data: &[u8]) -> bool {
    let (offset, len) = (data.len() as u64, data.len() as u64);
    let written = pwritev2(file, &[IoSlice::new(data)], offset, DONTCACHE);
    if written != Ok(data.len()) || write_back(file.as_fd(), offset, len).is_err() {
        return false;
    }
    (0..TRIES).any(|_| {
        let is_gone = residency(file, offset, len).is_ok_and(|left| left.cached == 0);
        if !is_gone {
            thread::sleep(Duration::from_millis(1));
        }
        is_gone
    })
}

fn reads_without_waiting(file: &OwnedFd, data: &[u8]) -> bool {
    let mut page = [0; 512];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut page)], 0, ReadWriteFlags::NOWAIT);
    read == Ok(page.len()) && page == data[..page.len()]
}

/// A file in `dir` that is gone when it is closed.
fn nameless_file(dir: &Path) -> io::Result<OwnedFd> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    if let Ok(file) = rustix::fs::open(dir, flags | OFlags::TMPFILE, mode) {
        return Ok(file);
    }
    // FUSE and others have none
    let path = dir.join(format!(".forebay-probe-{}", std::process::id()));
    let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
    rustix::fs::unlink(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_a_directory_are_printed_together() {
        let dir = tempfile::tempdir().unwrap();
        for dir in [dir.path(), Path::new("."), Path::new("/dev/shm")] {
            let Ok(support) = PageCacheSupport::of_directory(dir) else { continue };
            assert!(support.residency || !support.dirty_pages, "{support:?}");
            assert!(support.dirty_pages || !support.ranges, "{support:?}");
            assert!(support.residency || !support.uncached_writes, "{support:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
        assert!(PageCacheSupport::of_directory("/nowhere").is_err());
    }
}
