//! Asks the system about a directory. Small files without names are made in it, and
//! what is written to them is read.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::path::Path;
use std::thread;
use std::time::Duration;

use forebay::engine::{BackendChoice, Engine, EngineConfig};
use forebay::{AlignedBuf, PageCacheSupport};
use forebay_block::Stack;
use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::environment::{Direct, Environment, FileIo, FreeSpace, Nowait, PageCache};

/// What is written and read; a multiple of every alignment that filesystems ask for.
const BLOCK_BYTES: usize = 64 << 10;
/// A write that must not block is tried so often: the first after a pause also changes the
/// time of the file.
const WRITES: u32 = 4;
/// Longer than the kernel's tick, by which times of files change.
const PAUSE: Duration = Duration::from_millis(12);

/// What system calls say about `dir`, a full path without links, which lies on `stack`.
pub(crate) fn environment(dir: &Path, stack: &Stack) -> io::Result<Environment> {
    Ok(Environment {
        dir: dir.to_owned(),
        device: stack.block_device().unwrap_or(stack.number),
        space: space(dir).map_err(|error| error.to_string()),
        io: file_io(dir).map_err(|error| unwritable(&error)),
        page_cache: PageCacheSupport::of_directory(dir).ok().map(page_cache),
        io_uring_refused: io_uring_refused(),
    })
}

fn space(dir: &Path) -> rustix::io::Result<FreeSpace> {
    let stat = rustix::fs::statvfs(dir)?;
    // blocks are counted in fragments, which are of the same size on all local filesystems
    let block = if stat.f_frsize > 0 { stat.f_frsize } else { stat.f_bsize };
    Ok(FreeSpace {
        block,
        blocks: stat.f_blocks,
        blocks_free: stat.f_bavail,
        files: stat.f_files,
        files_free: stat.f_ffree,
    })
}

fn file_io(dir: &Path) -> io::Result<FileIo> {
    let file = tempfile::tempfile_in(dir)?;
    let block = AlignedBuf::new(BLOCK_BYTES, BLOCK_BYTES)?;
    let mut into = AlignedBuf::new(BLOCK_BYTES, BLOCK_BYTES)?;
    let direct = direct(&file, &block)?;
    let read = |into: &mut [u8]| {
        rustix::io::preadv2(&file, &mut [IoSliceMut::new(into)], 0, ReadWriteFlags::NOWAIT)
    };
    let write = || rustix::io::pwritev2(&file, &[IoSlice::new(&block)], 0, ReadWriteFlags::NOWAIT);
    let nowait_read = nowait(read(&mut into));
    let mut nowait_write = Nowait::Done;
    for _ in 0..WRITES {
        thread::sleep(PAUSE);
        nowait_write = nowait(write());
        if nowait_write != Nowait::Done {
            break;
        }
    }
    Ok(FileIo { direct, nowait_read, nowait_write })
}

/// Writes the block past the page cache, or else through it, and down to the disk.
fn direct(file: &File, block: &AlignedBuf) -> io::Result<Direct> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    let set = rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT);
    match set.and_then(|()| rustix::io::pwrite(file, block, 0)) {
        Ok(_) => {}
        Err(Errno::INVAL | Errno::OPNOTSUPP) => {
            rustix::fs::fcntl_setfl(file, flags)?;
            rustix::io::pwrite(file, block, 0)?;
            return Ok(Direct::Refused);
        }
        Err(error) => return Err(error.into()),
    }
    rustix::fs::fdatasync(file)?;
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if !StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN) {
        return Ok(Direct::Unsaid);
    }
    match (stat.stx_dio_mem_align.into(), stat.stx_dio_offset_align.into()) {
        (0, _) | (_, 0) => Ok(Direct::Refused),
        (memory, offset) => Ok(Direct::Aligned { memory, offset }),
    }
}

fn nowait(result: rustix::io::Result<usize>) -> Nowait {
    match result {
        Ok(_) => Nowait::Done,
        Err(Errno::AGAIN) => Nowait::WouldBlock,
        Err(Errno::OPNOTSUPP) => Nowait::Unsupported,
        Err(_) => Nowait::Failed,
    }
}

fn page_cache(support: PageCacheSupport) -> PageCache {
    let PageCacheSupport { residency, dirty_pages, ranges, .. } = support;
    PageCache { residency, dirty_pages, ranges }
}

fn io_uring_refused() -> Option<String> {
    let config =
        EngineConfig { backend: BackendChoice::Auto, depth_max: 1, ..EngineConfig::default() };
    match Engine::new(&config) {
        Ok(engine) => engine.fallback_reason().map(str::to_owned),
        Err(error) => Some(error.to_string()),
    }
}

/// Why no file could be made and tried.
fn unwritable(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS | Errno::PERM) => "this user may not write there".into(),
        Some(Errno::ROFS) => "it is mounted read-only".into(),
        Some(Errno::NOSPC | Errno::DQUOT) => "there is no space left for a file".into(),
        _ => format!("a file there cannot be written: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_block::Machine;

    use super::*;

    #[test]
    fn a_directory_is_asked_and_nothing_stays_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let environment =
            environment(&path, &Stack::of_path(&Machine::this(), &path).unwrap()).unwrap();
        assert!(environment.space.unwrap().blocks > 0);
        assert!(environment.io.is_ok() && environment.page_cache.is_some());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_reported_with_the_reason() {
        for (errno, words) in [
            (Errno::ACCESS, "this user"),
            (Errno::ROFS, "read-only"),
            (Errno::NOSPC, "no space"),
            (Errno::IO, "Input/output error"),
        ] {
            let said = unwritable(&errno.into());
            assert!(said.contains(words), "{said}");
        }
    }
}
