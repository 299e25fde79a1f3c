//! Files that bypass the page cache, and the alignment that they require.
//!
//! Decision: `docs/decisions/0037-whole-sectors.md`.

mod options;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FileType, OFlags, Stat, StatxFlags};

pub use options::FileOptions;

/// An open file whose requests bypass the page cache if that is possible.
///
/// Clones share one descriptor, which is closed after the last clone and the last operation on it
/// are dropped.
#[derive(Clone, Debug)]
pub struct DirectFile {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    /// The [`file_number`] of the file.
    number: u64,
    /// The required alignment; `None` for a buffered file.
    direct: Option<Alignment>,
    /// The sector size of the disk in bytes, if the disk misreports it; otherwise 1.
    sector: AtomicUsize,
    /// Whether the file system does not support requests that do not block.
    always_blocks: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alignment {
    memory: usize,
    offset: usize,
}

impl DirectFile {
    /// The same as [`FileOptions::new`].
    pub const fn options() -> FileOptions {
        FileOptions::new()
    }

    /// Takes over an open descriptor. The file is direct if the descriptor has `O_DIRECT`.
    ///
    /// # Errors
    ///
    /// Those of `fcntl(2)` and `statx(2)`. `InvalidInput` for a descriptor with `O_APPEND`: Linux
    /// then writes at the end of the file and ignores the offset, so the parts of a large write
    /// would be misplaced.
    pub fn from_fd(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        let fd = fd.into();
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        if flags.contains(OFlags::APPEND) {
            return Err(invalid(IGNORES_OFFSETS));
        }
        let number = file_number(fd.as_fd())?;
        let direct = if flags.contains(OFlags::DIRECT) { alignment(&fd)? } else { None };
        let (sector, always_blocks) = (AtomicUsize::new(1), AtomicBool::new(false));
        Ok(Self { shared: Arc::new(Shared { fd, number, direct, sector, always_blocks }) })
    }

    /// A number that is the same for all handles of one file, and hardly ever that of another file.
    pub(crate) fn number(&self) -> u64 {
        self.shared.number
    }

    /// Whether requests bypass the page cache according to the kernel. tmpfs accepts `O_DIRECT` but
    /// stays in memory.
    ///
    /// Reads of a buffered file may come from memory, and its writes complete before they reach the
    /// disk, so their disk time is unknown.
    pub fn is_direct(&self) -> bool {
        self.shared.direct.is_some()
    }

    /// The required alignment of a buffer's address, in bytes; 1 for a buffered file.
    pub fn memory_alignment(&self) -> usize {
        self.shared.direct.map_or(1, |alignment| alignment.memory)
    }

    /// Whether the file system supports requests that do not block (`RWF_NOWAIT`), as far as is
    /// known.
    pub(crate) fn may_not_block(&self) -> bool {
        !self.shared.always_blocks.load(Ordering::Relaxed)
    }

    /// Notes that the file system does not support requests that do not block.
    pub(crate) fn always_blocks(&self) {
        self.shared.always_blocks.store(true, Ordering::Relaxed);
    }

    /// The required alignment of a request's offset and length, in bytes; 1 for a buffered file.
    /// See also [`write_alignment`](Self::write_alignment).
    pub fn offset_alignment(&self) -> usize {
        self.shared.direct.map_or(1, |alignment| alignment.offset)
    }

    /// The required alignment of a write's offset and length, in bytes. It is larger than for a
    /// read if the file was opened through a scheduler that knows its disk's real sectors
    /// ([`DiskProperties::physical_block_size`]). Otherwise the disk would have to read, change and
    /// write back a sector.
    ///
    /// [`DiskProperties::physical_block_size`]:
    ///     crate::properties::DiskProperties::physical_block_size
    pub fn write_alignment(&self) -> usize {
        let sector = self.shared.sector.load(Ordering::Relaxed);
        self.shared.direct.map_or(1, |alignment| alignment.offset.max(sector))
    }

    /// Sets the sector size of the file's disk in bytes, a power of two.
    pub(crate) fn set_sector(&self, bytes: usize) {
        self.shared.sector.store(bytes, Ordering::Relaxed);
    }
}

impl AsFd for DirectFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

/// A number of the open file. It is not zero, and hardly ever that of another file.
pub(crate) fn file_number(file: BorrowedFd<'_>) -> io::Result<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(file, "", flags, StatxFlags::INO)?;
    Ok(number_of(stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
}

/// The [number](file_number) of the file with this status.
pub(crate) fn file_number_of(stat: &Stat) -> u64 {
    number_of(rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev), stat.st_ino)
}

fn number_of(major: u32, minor: u32, inode: u64) -> u64 {
    let device = u64::from(major) << 32 | u64::from(minor);
    (device.rotate_left(40) ^ inode).max(1)
}

/// The error for files with `O_APPEND`.
const IGNORES_OFFSETS: &str = "a file that is open with O_APPEND ignores offsets: open it without";

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// The alignment that direct I/O on `fd` requires. `None` if the kernel accepts `O_DIRECT` for the
/// file but does no direct I/O.
fn alignment(fd: &OwnedFd) -> io::Result<Option<Alignment>> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN;
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, mask)?;
    if StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::DIOALIGN) {
        let (memory, offset) = (stat.stx_dio_mem_align, stat.stx_dio_offset_align);
        return Ok((memory > 0 && offset > 0)
            .then(|| Alignment { memory: power_of_two(memory), offset: power_of_two(offset) }));
    }
    if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::BlockDevice {
        return Ok(Some(uniform(rustix::fs::ioctl_blksszget(fd)?)));
    }
    // The preferred size of network and striped file systems can be megabytes. The required
    // alignment is never more than a page.
    Ok(Some(uniform(stat.stx_blksize.clamp(512, page_size()))))
}

fn uniform(bytes: u32) -> Alignment {
    let bytes = power_of_two(bytes);
    Alignment { memory: bytes, offset: bytes }
}

/// The next power of two from `bytes` on. 1, no requirement, if there is none.
fn power_of_two(bytes: u32) -> usize {
    bytes.checked_next_power_of_two().unwrap_or(1) as usize
}

fn page_size() -> u32 {
    u32::try_from(rustix::param::page_size()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;

    use super::*;

    fn writable() -> FileOptions {
        DirectFile::options().read(true).write(true)
    }

    #[test]
    fn alignment_is_a_power_of_two_and_one_when_buffered() {
        let dir = tempfile::tempdir().unwrap();
        let direct = writable().create(true).open(dir.path().join("a")).unwrap();
        assert!(direct.memory_alignment().is_power_of_two());
        assert!(direct.offset_alignment().is_power_of_two());
        let buffered = writable().direct(false).open(dir.path().join("a")).unwrap();
        assert!(!buffered.is_direct());
        assert_eq!((buffered.memory_alignment(), buffered.offset_alignment()), (1, 1));
    }

    #[test]
    fn a_descriptor_is_taken_as_it_is() {
        let file = DirectFile::from_fd(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(!file.is_direct());
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(!flags.contains(OFlags::DIRECT));
    }

    #[test]
    fn a_descriptor_that_ignores_offsets_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let log = File::options().create(true).append(true).open(dir.path().join("a"));
        let error = DirectFile::from_fd(log.unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_uniform_alignment_is_a_power_of_two() {
        assert_eq!(uniform(512), Alignment { memory: 512, offset: 512 });
        assert_eq!(uniform(3000), Alignment { memory: 4096, offset: 4096 });
    }
}
