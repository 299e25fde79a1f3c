//! The operations and completions of an engine.

use std::ffi::CString;
use std::io;
use std::ops::{AddAssign, Range};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use forebay_core::Op;

use crate::buffer::{IoBuf, IoBufMut, ReadBuf, WriteBuf};
use crate::sys::fork::Forked;
use crate::{AlignedBuf, DirectFile};

/// The most buffers of one vectored operation.
pub const SEGMENTS_MAX: usize = 64;

/// The most bytes that Linux transfers in one call. A longer request is cut short.
const TRANSFER_LEN_MAX: usize = 0x7fff_f000;

/// One request to the disk, with everything that the kernel needs for it.
///
/// It goes into the engine with [`Engine::push`] and is returned in [`Completion::operation`], so
/// that the caller can reuse it.
///
/// [`Engine::push`]: super::Engine::push
#[derive(Debug)]
pub enum Operation {
    /// Reads into a part of one buffer.
    Read {
        /// The file to read.
        file: DirectFile,
        /// The position in the file, in bytes.
        offset: u64,
        /// Receives the data.
        buffer: ReadBuf,
        /// The part of `buffer` to fill; its length is that of the request.
        range: Range<usize>,
    },
    /// Writes a part of one buffer.
    Write {
        /// The file to write.
        file: DirectFile,
        /// The position in the file, in bytes.
        offset: u64,
        /// Holds the data.
        buffer: WriteBuf,
        /// The part of `buffer` to write; its length is that of the request.
        range: Range<usize>,
    },
    /// Reads consecutive bytes into several buffers, each filled whole.
    ReadVectored {
        /// The file to read.
        file: DirectFile,
        /// The position in the file, in bytes.
        offset: u64,
        /// Receive the data, in this order; 1 to [`SEGMENTS_MAX`] of them.
        buffers: Vec<AlignedBuf>,
    },
    /// Writes several whole buffers to consecutive bytes.
    WriteVectored {
        /// The file to write.
        file: DirectFile,
        /// The position in the file, in bytes.
        offset: u64,
        /// Hold the data, in this order; 1 to [`SEGMENTS_MAX`] of them.
        buffers: Vec<AlignedBuf>,
    },
    /// Makes completed writes durable, with the metadata that is needed to read them back
    /// (`fdatasync`).
    SyncData {
        /// The file to make durable.
        file: DirectFile,
    },
    /// Makes completed writes and all attributes durable (`fsync`).
    SyncAll {
        /// The file to make durable.
        file: DirectFile,
    },
    /// Reserves disk space for a range. The file grows if it ends before the end of the range.
    Allocate {
        /// The file to reserve for.
        file: DirectFile,
        /// Start of the range, in bytes.
        offset: u64,
        /// Length of the range, in bytes.
        len: u64,
    },
    /// Frees the disk space of a range, which then reads as zeros. The file keeps its length.
    PunchHole {
        /// The file to punch.
        file: DirectFile,
        /// Start of the range, in bytes.
        offset: u64,
        /// Length of the range, in bytes.
        len: u64,
    },
    /// Makes the file shorter, or longer with zeros (`ftruncate`).
    Truncate {
        /// The file to change.
        file: DirectFile,
        /// Its new length, in bytes.
        len: u64,
    },
    /// Removes a name from its directory.
    Unlink {
        /// The path of the name. A relative path is resolved at execution, in the working directory
        /// of that time. [`Operation::unlink`] makes it absolute.
        path: CString,
        /// The disk space that the unlink frees, in bytes. The scheduler charges a discard of this
        /// length. 0 if the file remains, for example under another name.
        len: u64,
    },
}

impl Operation {
    /// An [`Operation::Read`] that fills the whole buffer.
    pub fn read(file: DirectFile, offset: u64, buffer: impl IoBufMut) -> Self {
        let buffer = ReadBuf::new(buffer);
        let range = 0..buffer.len();
        Self::Read { file, offset, buffer, range }
    }

    /// An [`Operation::Write`] of all initialised bytes of the buffer.
    pub fn write(file: DirectFile, offset: u64, buffer: impl IoBuf) -> Self {
        let buffer = WriteBuf::new(buffer);
        let range = 0..buffer.len();
        Self::Write { file, offset, buffer, range }
    }

    /// An [`Operation::Unlink`] of `path`, a file of `len` bytes. A relative path is resolved in
    /// the present working directory.
    ///
    /// It is charged as one discard of `len` bytes, however large, because a file can only be
    /// unlinked as a whole. On a file system with online discard the disk gets all of its extents
    /// at once, some time later. To keep others from waiting for that, punch holes first.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the path is empty or contains a NUL byte. Those of `getcwd(2)` if it is
    /// relative.
    pub fn unlink(path: impl AsRef<Path>, len: u64) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let path = CString::new(path.into_os_string().into_vec())?;
        Ok(Self::Unlink { path, len })
    }

    /// Takes the place of a lost operation. It has the empty path, which no file has.
    pub(crate) fn nothing() -> Self {
        Self::Unlink { path: CString::default(), len: 0 }
    }

    /// The buffer of a plain read or write: the original one, with the bytes that were read. If it
    /// is not a `B`, it is dropped, and this returns `None`.
    pub fn into_buffer<B: IoBuf>(self) -> Option<B> {
        match self {
            Self::Read { buffer, .. } => buffer.into_inner(),
            Self::Write { buffer, .. } => buffer.into_inner(),
            _ => None,
        }
    }

    /// The file of a read or a write, and its direction.
    pub(crate) const fn transfer(&self) -> Option<(&DirectFile, Op)> {
        match self {
            Self::Read { file, .. } | Self::ReadVectored { file, .. } => Some((file, Op::Read)),
            Self::Write { file, .. } | Self::WriteVectored { file, .. } => Some((file, Op::Write)),
            _ => None,
        }
    }

    /// The number of bytes that the operation transfers, unless the kernel cuts it short. 0 for
    /// operations that transfer none.
    pub fn transfer_len(&self) -> usize {
        let len = match self {
            Self::Read { range, .. } | Self::Write { range, .. } => range.len(),
            Self::ReadVectored { buffers, .. } | Self::WriteVectored { buffers, .. } => {
                buffers.iter().map(|buffer| buffer.len()).fold(0, usize::saturating_add)
            }
            _ => 0,
        };
        len.min(TRANSFER_LEN_MAX)
    }

    /// Notes that a backend has transferred `len` bytes.
    ///
    /// # Safety
    ///
    /// The backend has transferred them, or they were initialised before.
    pub(super) unsafe fn set_transferred(&mut self, len: usize) {
        if let Self::Read { buffer, range, .. } = self {
            // SAFETY: the caller guarantees that these bytes are initialised.
            unsafe { buffer.set_filled(range.start, len) };
        }
    }

    /// Checks what the backends rely on: ranges are within their buffers, vectors have 1 to
    /// [`SEGMENTS_MAX`] segments, and offsets are less than 2^63. (io_uring would take an offset of
    /// all ones as the position of the descriptor.)
    pub(crate) fn check(&self) -> Result<(), PushError> {
        let offset = match self {
            Self::Read { offset, buffer, range, .. } => {
                buffer.location(range).ok_or(PushError::RangeOutsideBuffer)?;
                *offset
            }
            Self::Write { offset, buffer, range, .. } => {
                buffer.location(range).ok_or(PushError::RangeOutsideBuffer)?;
                *offset
            }
            Self::ReadVectored { offset, buffers, .. }
            | Self::WriteVectored { offset, buffers, .. } => {
                if !(1..=SEGMENTS_MAX).contains(&buffers.len()) {
                    return Err(PushError::SegmentCount);
                }
                *offset
            }
            Self::Allocate { offset, len, .. } | Self::PunchHole { offset, len, .. } => {
                offset.saturating_add(*len)
            }
            Self::Truncate { len, .. } => *len,
            _ => 0,
        };
        if i64::try_from(offset).is_err() {
            return Err(PushError::OffsetTooLarge);
        }
        Ok(())
    }
}

/// A completed operation.
#[derive(Debug)]
pub struct Completion {
    /// The token that the caller passed to [`Engine::push`](super::Engine::push).
    pub token: u64,
    /// The number of bytes transferred, or the error. It can be less than requested: a read ends at
    /// the end of the file. 0 for operations that transfer none. The error is `ECANCELED` for a
    /// cancelled operation.
    pub result: io::Result<usize>,
    /// The operation, with its buffers.
    pub operation: Operation,
}

/// The number of failed first attempts without blocking. Another thread then did the operation: one
/// of the engine's pool, or of the kernel (`io-wq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Reads of data that was not in memory, or that had to wait for a lock.
    pub reads: u64,
    /// Writes that had to wait for memory, space or a lock.
    pub writes: u64,
}

impl Retries {
    /// Counts a read or a write.
    pub(super) const fn count(&mut self, op: Op) {
        match op {
            Op::Read => self.reads += 1,
            _ => self.writes += 1,
        }
    }
}

impl AddAssign for Retries {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

/// Why an operation was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The engine has [`EngineConfig::depth_max`](super::EngineConfig::depth_max) operations in
    /// flight.
    #[error("the engine is at its depth: pop completions first")]
    Full,
    /// The process was forked after it made the engine, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
    /// The range is not within the buffer.
    #[error("the range reaches beyond the buffer: shorten it")]
    RangeOutsideBuffer,
    /// A vectored operation has no buffer, or more than [`SEGMENTS_MAX`].
    #[error("a vectored operation takes 1 to {SEGMENTS_MAX} buffers: split it")]
    SegmentCount,
    /// The offset, or the end of the range, is 2^63 or more.
    #[error("the offset is above 2^63 - 1: no file is that long")]
    OffsetTooLarge,
}

forebay_core::debug_as_display!(PushError);

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> DirectFile {
        DirectFile::options().read(true).write(true).open("/dev/null").unwrap()
    }

    fn buffer() -> AlignedBuf {
        AlignedBuf::new(4096, 512).unwrap()
    }

    #[test]
    fn a_range_must_lie_within_its_buffer() {
        let check = |range| {
            Operation::Read { file: null(), offset: 0, buffer: buffer().into(), range }.check()
        };
        assert_eq!(check(0..4096), Ok(()));
        assert_eq!(check(4096..4096), Ok(()));
        assert_eq!(check(1..4097), Err(PushError::RangeOutsideBuffer));
        #[expect(clippy::reversed_empty_ranges, reason = "the mistake under test")]
        let reversed = 2..1;
        assert_eq!(check(reversed), Err(PushError::RangeOutsideBuffer));
    }

    #[test]
    fn a_vector_has_one_to_sixty_four_segments() {
        let check = |count| {
            let buffers = (0..count).map(|_| buffer()).collect();
            Operation::WriteVectored { file: null(), offset: 0, buffers }.check()
        };
        assert_eq!(check(0), Err(PushError::SegmentCount));
        assert_eq!(check(1), Ok(()));
        assert_eq!(check(SEGMENTS_MAX), Ok(()));
        assert_eq!(check(SEGMENTS_MAX + 1), Err(PushError::SegmentCount));
    }

    #[test]
    fn the_cursor_of_a_descriptor_is_not_an_offset() {
        assert_eq!(Operation::read(null(), i64::MAX as u64, buffer()).check(), Ok(()));
        let error = Operation::read(null(), u64::MAX, buffer()).check();
        assert_eq!(error, Err(PushError::OffsetTooLarge));
    }

    #[test]
    fn a_path_with_a_nul_byte_is_an_error() {
        assert_eq!(Operation::unlink("a\0b", 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_relative_path_starts_where_the_program_is_when_the_operation_is_made() {
        let here = std::env::current_dir().unwrap();
        for name in ["name", "./name", "dir/../name", "/name"] {
            let Operation::Unlink { path, .. } = Operation::unlink(name, 0).unwrap() else {
                panic!("not an unlink");
            };
            let path = Path::new(path.to_str().unwrap());
            assert!(path.is_absolute() && path.ends_with("name"), "{path:?}");
            assert_eq!(path.starts_with(&here), name != "/name", "{path:?}");
        }
    }

    #[test]
    fn lengths_count_what_is_transferred() {
        let buffers = vec![buffer(), buffer()];
        let vectored = Operation::ReadVectored { file: null(), offset: 0, buffers };
        assert_eq!(vectored.transfer_len(), 8192);
        assert_eq!(Operation::write(null(), 0, buffer()).transfer_len(), 4096);
        assert_eq!(Operation::SyncAll { file: null() }.transfer_len(), 0);
    }
}
