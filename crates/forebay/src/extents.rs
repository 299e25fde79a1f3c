//! The blocks of a file on the device.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The most extents of one query.
pub(crate) const EXTENTS_MAX: usize = 64;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` and its extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_MAX],
}

/// `FIEMAP_EXTENT_DELALLOC`: data that is only in memory, and has no blocks yet.
const FIEMAP_EXTENT_DELALLOC: u32 = 0x4;

/// `FIEMAP_FLAG_SYNC`: data that is only in memory gets its blocks first.
const FIEMAP_FLAG_SYNC: u32 = 0x1;

/// `FIEMAP_EXTENT_LAST`.
const FIEMAP_EXTENT_LAST: u32 = 0x1;

/// `FIEMAP_EXTENT_UNKNOWN`: the location is unknown.
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;

/// A run of a file's blocks that are contiguous on the device of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The offset on the device, in bytes.
    pub device_offset: u64,
    /// The length, in bytes.
    pub bytes: u64,
}

impl FileExtent {
    /// All extents of a file, in order. Dirty pages are written first. Extents that are contiguous
    /// in the file and on the device count as one, whether they are written or not. At most a
    /// million are examined.
    ///
    /// # Errors
    /// The file system does not report extents (`EOPNOTSUPP`).
    pub fn all(file: impl AsFd) -> io::Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        let mut start = 0;
        for _ in 0..MAPS_MAX {
            let map = fiemap(file.as_fd(), &(start..u64::MAX), FIEMAP_FLAG_SYNC)?;
            let found = map.extents.iter().take(map.mapped_extents as usize);
            let Some(last) = found.clone().next_back() else { break };
            start = last.logical.saturating_add(last.length);
            let known = found.filter(|extent| extent.flags & FIEMAP_EXTENT_UNKNOWN == 0);
            known.for_each(|extent| extent.join(&mut all));
            if last.flags & FIEMAP_EXTENT_LAST != 0 {
                break;
            }
        }
        Ok(all)
    }
}

/// The most queries for all extents of a file.
const MAPS_MAX: usize = 1 << 14;

impl FiemapExtent {
    fn join(&self, all: &mut Vec<FileExtent>) {
        let Self { logical: offset, physical: device_offset, length: bytes, .. } = *self;
        match all.last_mut() {
            Some(last)
                if last.offset + last.bytes == offset
                    && last.device_offset + last.bytes == device_offset =>
            {
                last.bytes += bytes;
            }
            _ => all.push(FileExtent { offset, device_offset, bytes }),
        }
    }
}

/// The extents of a file between two offsets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extents {
    /// The first extents in order, at most [`EXTENTS_MAX`], cut to the offsets.
    pub(crate) found: Vec<Range<u64>>,
    /// Whether there may be more after them.
    pub(crate) is_cut: bool,
}

/// The method of finding the blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtentMap {
    /// By extents.
    Fiemap,
    /// By data and holes. Each run of data counts as one extent.
    Seek,
}

impl ExtentMap {
    /// The extents between two offsets. If FIEMAP is not supported, the method becomes
    /// [`ExtentMap::Seek`].
    pub(crate) fn extents(
        &mut self,
        file: BorrowedFd<'_>,
        within: &Range<u64>,
    ) -> io::Result<Extents> {
        let cut = |extent: Range<u64>| extent.start.max(within.start)..extent.end.min(within.end);
        let all = match self {
            Self::Fiemap => match mapped(file, within) {
                Err(Errno::NOTSUP | Errno::NOTTY | Errno::NOSYS | Errno::INVAL) => {
                    *self = Self::Seek;
                    data(file, within)?
                }
                // The file system does not support such offsets (ext4: beyond 16 TiB).
                Err(Errno::FBIG) => Extents { found: Vec::new(), is_cut: false },
                found => found?,
            },
            Self::Seek => data(file, within)?,
        };
        let found = all.found.into_iter().map(cut).filter(|extent| !extent.is_empty()).collect();
        Ok(Extents { found, ..all })
    }
}

fn mapped(file: BorrowedFd<'_>, within: &Range<u64>) -> Result<Extents, Errno> {
    let map = fiemap(file, within, 0)?;
    let mapped = map.extents.iter().take(map.mapped_extents as usize);
    let is_cut = mapped.len() == EXTENTS_MAX;
    let on_disk = mapped.filter(|extent| extent.flags & FIEMAP_EXTENT_DELALLOC == 0);
    let range =
        |extent: &FiemapExtent| extent.logical..extent.logical.saturating_add(extent.length);
    Ok(Extents { found: on_disk.map(range).collect(), is_cut })
}

fn fiemap(file: BorrowedFd<'_>, within: &Range<u64>, flags: u32) -> Result<Fiemap, Errno> {
    let map = MaybeUninit::<Fiemap>::zeroed();
    // SAFETY: it consists of integers, for which all zero bits are a value.
    let mut map = unsafe { map.assume_init() };
    (map.start, map.length, map.flags) = (within.start, within.end - within.start, flags);
    map.extent_count = EXTENTS_MAX as u32;
    loop {
        // SAFETY: the descriptor is open, and `map` is a `struct fiemap` with room for as many
        // extents as it states.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
        if result >= 0 {
            return Ok(map);
        }
        let error = io::Error::last_os_error();
        match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
            Errno::INTR => {}
            errno => return Err(errno),
        }
    }
}

/// The extents by `SEEK_DATA` and `SEEK_HOLE`.
fn data(file: BorrowedFd<'_>, within: &Range<u64>) -> Result<Extents, Errno> {
    let mut found = Vec::new();
    let mut at = within.start;
    while at < within.end && found.len() < EXTENTS_MAX {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < within.end => start,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno),
        };
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end,
            // The file was truncated.
            Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno),
        };
        found.push(start..end);
        at = end.max(start + 1);
    }
    let is_cut = found.len() == EXTENTS_MAX;
    Ok(Extents { found, is_cut })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn both_ways_find_what_a_sparse_file_has() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        for at in [0, 7 * MIB, 1 << 39] {
            file.write_all_at(&[1; 8192], at).unwrap();
        }
        file.sync_all().unwrap();
        for mut map in [ExtentMap::Fiemap, ExtentMap::Seek] {
            let all = map.extents(file.as_fd(), &(0..1 << 40)).unwrap().found;
            let bytes: u64 = all.iter().map(|extent| extent.end - extent.start).sum();
            assert!((3 * 8192..MIB).contains(&bytes), "{map:?}: {all:?}");
            let within = 7 * MIB + 4096..8 * MIB;
            let some = map.extents(file.as_fd(), &within).unwrap().found;
            assert_eq!(some[0].start, within.start, "{map:?}");
            assert!(some[0].end <= within.end && some.len() == 1, "{map:?}");
            let none = Extents { found: Vec::new(), is_cut: false };
            assert_eq!(map.extents(file.as_fd(), &(2 << 30..3 << 30)).unwrap(), none);
        }
    }

    #[test]
    fn all_extents_of_a_file_cover_its_data_once() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 30).unwrap();
        // More extents than one query returns.
        for n in 0..200 {
            file.write_all_at(&[1; 8192], n * MIB).unwrap();
        }
        match FileExtent::all(&file) {
            Ok(all) => {
                assert!(all.is_sorted_by_key(|extent| extent.offset));
                let bytes: u64 = all.iter().map(|extent| extent.bytes).sum();
                assert!((200 * 8192..=200 * MIB).contains(&bytes), "{all:?}");
                assert!(all.windows(2).all(|two| two[0].offset + two[0].bytes <= two[1].offset));
                for n in 0..200 {
                    let holds = |extent: &FileExtent| {
                        (extent.offset..extent.offset + extent.bytes).contains(&(n * MIB))
                    };
                    assert_eq!(all.iter().filter(|extent| holds(extent)).count(), 1, "{n}");
                }
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}"),
        }
    }

    #[test]
    fn extents_that_follow_each_other_on_the_device_are_one() {
        let extent = |logical, physical| FiemapExtent {
            logical,
            physical,
            length: 8,
            reserved64: [0; 2],
            flags: 0,
            reserved: [0; 3],
        };
        let mut all = Vec::new();
        for (logical, physical) in [(0, 100), (8, 108), (16, 200), (32, 208)] {
            extent(logical, physical).join(&mut all);
        }
        let found: Vec<_> =
            all.iter().map(|one| (one.offset, one.device_offset, one.bytes)).collect();
        assert_eq!(found, [(0, 100, 16), (16, 200, 8), (32, 208, 8)]);
    }

    #[test]
    fn files_without_extents_are_reported() {
        let (reader, _writer) = io::pipe().unwrap();
        let error = ExtentMap::Fiemap.extents(reader.as_fd(), &(0..MIB)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESPIPE));
        let null = File::open("/dev/null").unwrap();
        let _ = ExtentMap::Fiemap.extents(null.as_fd(), &(0..MIB));
    }
}
