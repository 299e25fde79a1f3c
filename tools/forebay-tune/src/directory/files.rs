//! The files that are measured: without names, so that nothing is left of them in any case.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay::{AlignedBuf, DirectFile};
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::error::Error;
use crate::load::{Area, Places};
use crate::phase::FileState;

/// Segments are whole multiples of it, so that every request fits.
pub(super) const SEGMENT_UNIT: u64 = 4 << 20;
/// On a disk that seeks small requests go to this many places, and no fewer are worth it.
const PLACES: u64 = 32;
const PLACES_MIN: u64 = 4;
/// Bytes of each, which every request fits into, also between sectors.
const PLACE_LEN: u64 = 2 * SEGMENT_UNIT;
/// A multiple of every alignment that filesystems ask of memory.
const FILL_ALIGNMENT: usize = 4096;

/// Files of equal length, one for each segment of the data.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) files: Vec<DirectFile>,
    pub(super) segment_len: u64,
    /// Where random requests go, if not anywhere.
    pub(super) places: Option<Places>,
}

impl Files {
    /// One file, of which this many bytes are used.
    pub(super) fn of(file: DirectFile, segment_len: u64) -> Self {
        Self { files: vec![file], segment_len, places: None }
    }

    pub(super) fn area(&self) -> Area {
        let Self { ref files, segment_len, places } = *self;
        Area { segments: files.len() as u64, segment_len, places }
    }

    /// Has random requests go to places all over `room` bytes from the start of the only file on,
    /// as many as `bytes_max` allows, and none if the file system cannot: it reserves the space and
    /// writes them, unless `is_device`. Says how many bytes were written.
    pub(super) fn spread(
        &mut self,
        room: u64,
        bytes_max: u64,
        is_device: bool,
        interrupt: &AtomicBool,
    ) -> rustix::io::Result<u64> {
        let [file] = self.files.as_slice() else { return Ok(0) };
        let count = (bytes_max / PLACE_LEN).min(PLACES);
        let apart = room / count.max(1) / SEGMENT_UNIT * SEGMENT_UNIT;
        if count < PLACES_MIN || apart < PLACE_LEN {
            return Ok(0);
        }
        let places = Places { count, apart, len: PLACE_LEN };
        if is_device {
            self.places = Some(places);
            return Ok(0);
        }
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, apart * count) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSPC) => return Ok(0),
            Err(error) => return Err(error),
        }
        for place in 0..count {
            fill(file, place * apart, PLACE_LEN, interrupt)?;
        }
        self.places = Some(places);
        Ok(count * PLACE_LEN)
    }

    /// New files in `dir` that hold `bytes` together: this many, or fewer of a [`SEGMENT_UNIT`].
    pub(super) fn make(dir: &Path, count: u32, bytes: u64) -> Result<Self, Error> {
        let most = u32::try_from(bytes / SEGMENT_UNIT).unwrap_or(u32::MAX);
        let count = count.min(most).max(1);
        let files = (0..count).map(|_| create(dir)).collect::<Result<_, _>>()?;
        let segment_len = bytes / u64::from(count) / SEGMENT_UNIT * SEGMENT_UNIT;
        Ok(Self { files, segment_len: segment_len.max(SEGMENT_UNIT), places: None })
    }

    /// A new file in `dir` in this state; `None` where the file system has no such state, or it
    /// is to be filled and so few bytes cannot be.
    pub(super) fn single(
        dir: &Path,
        state: FileState,
        bytes: u64,
        interrupt: &AtomicBool,
    ) -> Result<Option<Self>, Error> {
        if state == FileState::Filled && bytes < SEGMENT_UNIT {
            return Ok(None);
        }
        let made = Self::make(dir, 1, bytes)?;
        let done = made.files.iter().try_for_each(|file| match state {
            FileState::Truncated => rustix::fs::ftruncate(file, made.segment_len),
            FileState::Allocated => {
                rustix::fs::fallocate(file, FallocateFlags::empty(), 0, made.segment_len)
            }
            FileState::Filled => fill(file, 0, made.segment_len, interrupt),
            _ => Ok(()),
        });
        match done {
            Ok(()) => Ok(Some(made)),
            Err(Errno::OPNOTSUPP) => Ok(None),
            Err(Errno::CANCELED) => Err(Error::Interrupted),
            Err(error) => Err(Error::io(format!("prepare a file in `{}`", dir.display()))(error)),
        }
    }

    /// Waits until the disk has what was written, lest it counts for the next phase.
    pub(super) fn flush(&self) -> Result<(), Error> {
        self.files
            .iter()
            .try_for_each(rustix::fs::fdatasync)
            .map_err(Error::io("flush what was written"))
    }
}

/// Writes `len` bytes, a multiple of [`SEGMENT_UNIT`], from `from` on down to the disk, unless
/// interrupted.
fn fill(file: &DirectFile, from: u64, len: u64, interrupt: &AtomicBool) -> rustix::io::Result<()> {
    let no_memory = |_| Errno::NOMEM;
    let mut buffer = AlignedBuf::new(SEGMENT_UNIT as usize, FILL_ALIGNMENT).map_err(no_memory)?;
    buffer.fill(0xa5);
    let mut at = 0;
    while at < len {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Errno::CANCELED);
        }
        match rustix::io::pwrite(file, &buffer, from + at)? {
            written if written as u64 == SEGMENT_UNIT => at += SEGMENT_UNIT,
            _ => return Err(Errno::NOSPC),
        }
    }
    rustix::fs::fdatasync(file)
}

/// A file without a name that takes direct I/O.
pub(super) fn create(dir: &Path) -> Result<DirectFile, Error> {
    let shown = dir.display();
    let file: File = tempfile::tempfile_in(dir).map_err(|error| {
        Error::Refused(format!(
            "cannot make a file in `{shown}`: {error}; name a directory that can be written"
        ))
    })?;
    let flags = rustix::fs::fcntl_getfl(&file).map_err(Error::io("look at a file"))?;
    let direct = rustix::fs::fcntl_setfl(&file, flags | OFlags::DIRECT);
    let refused = || {
        Error::Refused(format!(
            "the file system of `{shown}` does no direct I/O, so memory would be measured instead \
             of the disk; name a directory on another one"
        ))
    };
    match direct {
        Ok(()) => {}
        Err(Errno::INVAL) => return Err(refused()),
        Err(error) => return Err(Error::io("ask for direct I/O")(error)),
    }
    let file = DirectFile::from_fd(file).map_err(Error::io("look at a file"))?;
    if file.is_direct() { Ok(file) } else { Err(refused()) }
}

/// A block device that nobody else uses, and its size.
pub(super) fn open_device(path: &Path) -> Result<(DirectFile, u64), Error> {
    let shown = path.display();
    // For a device, EXCL means that it is not mounted.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT | OFlags::EXCL;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::BUSY => Error::Refused(format!("`{shown}` is in use; unmount it")),
        Errno::ACCESS | Errno::PERM => Error::Refused(format!(
            "cannot open `{shown}`: {error}; run as a user that may write to it, or name another"
        )),
        _ => Error::io(format!("open `{shown}`"))(error),
    })?;
    let size = rustix::fs::seek(&fd, SeekFrom::End(0))
        .map_err(Error::io(format!("look up the size of `{shown}`")))?;
    let file = DirectFile::from_fd(fd).map_err(Error::io(format!("use `{shown}`")))?;
    Ok((file, size))
}
