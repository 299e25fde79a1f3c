//! Buffers for direct I/O.

use std::ops::{Deref, DerefMut};
use std::sync::Weak;
use std::{fmt, io};

use super::allocation::Allocation;
use super::free_lists::FreeLists;
use super::region::Region;

/// An owned buffer whose address is a multiple of a chosen alignment. It is filled with zeros at
/// first.
///
/// Direct I/O transfers data between the disk and this buffer without a copy. The alignment that a
/// file needs is [`DirectFile::memory_alignment`]. 4096 satisfies every known file, and keeps a 4
/// KiB request within one page.
///
/// Moving the buffer does not move its memory. It can be split into two buffers that share one
/// allocation ([`AlignedBuf::split_off`]), so that the parts of a large request go to the disk and
/// end separately.
///
/// [`DirectFile::memory_alignment`]: crate::DirectFile::memory_alignment
pub struct AlignedBuf {
    /// The bytes of the buffer, all of them initialised.
    region: Region,
}

impl AlignedBuf {
    /// Allocates `len` bytes of zeros at a multiple of `alignment` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `len` is 0 or `alignment` is not a power of two; `OutOfMemory` if the
    /// allocation fails.
    pub fn new(len: usize, alignment: usize) -> io::Result<Self> {
        Ok(Self::of(Allocation::new(len, alignment)?, Weak::new()))
    }

    /// A buffer of a whole allocation, which returns to `pool` after the last use.
    pub(super) fn of(allocation: Allocation, pool: Weak<FreeLists>) -> Self {
        Self { region: Region::of_allocation(allocation, pool) }
    }

    /// The requested alignment, in bytes. The second part of a split buffer may have a smaller one.
    pub fn alignment(&self) -> usize {
        self.region.alignment()
    }

    /// Splits the buffer: it keeps its first `at` bytes, and the rest is returned. If one of the
    /// two would be empty, it returns `None` and changes nothing.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Option<Self> {
        Some(Self { region: self.region.split_off(at)? })
    }

    /// Joins `rest` to the end of this buffer again.
    ///
    /// # Errors
    ///
    /// Returns `rest` if it did not follow this buffer before [`AlignedBuf::split_off`].
    pub fn unsplit(&mut self, rest: Self) -> Result<(), Self> {
        self.region.unsplit(rest.region).map_err(|region| Self { region })
    }

    /// Shortens the buffer to `len` bytes. It has no effect if the buffer is not longer, or if
    /// `len` is zero. The memory stays allocated.
    pub fn truncate(&mut self, len: usize) {
        drop(self.split_off(len));
    }

    pub(super) fn into_region(self) -> Region {
        self.region
    }

    /// The buffer of a region that [`Self::into_region`] returned, or of a part of it.
    pub(super) const fn from_region(region: Region) -> Self {
        Self { region }
    }
}

/// A buffer of 0 bytes, without memory.
impl Default for AlignedBuf {
    fn default() -> Self {
        Self { region: Region::empty() }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: all of the region is initialised.
        unsafe { self.region.bytes(self.region.len()) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and an allocation may be written to.
        unsafe { self.region.bytes_mut(self.region.len()) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf")
            .field("len", &self.len())
            .field("alignment", &self.alignment())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_zeroed_aligned_and_writable() {
        for alignment in [1, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuf::new(5000, alignment).unwrap();
            assert_eq!(buffer.len(), 5000);
            assert_eq!(buffer.alignment(), alignment);
            assert_eq!(buffer.as_ptr().addr() % alignment, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
            buffer.fill(7);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn stays_in_place_when_sent_to_another_thread() {
        let mut buffer = AlignedBuf::new(4096, 4096).unwrap();
        let address = buffer.as_ptr().addr();
        buffer[4095] = 1;
        let buffer = std::thread::spawn(move || buffer).join().unwrap();
        assert_eq!(buffer.as_ptr().addr(), address);
        assert_eq!(buffer[4095], 1);
    }

    #[test]
    fn parts_are_independent_and_join_again() {
        let mut first = AlignedBuf::new(8192, 4096).unwrap();
        assert!(first.split_off(0).is_none() && first.split_off(8192).is_none());
        let mut second = first.split_off(4096).unwrap();
        let third = second.split_off(1000).unwrap();
        first.fill(1);
        std::thread::scope(|scope| {
            scope.spawn(|| second.fill(2));
            first.fill(3);
        });
        let Err(third) = first.unsplit(third) else { panic!("a gap was joined") };
        let Err(other) = first.unsplit(AlignedBuf::new(1, 1).unwrap()) else {
            panic!("another buffer was joined");
        };
        assert_eq!(other.len(), 1);
        first.unsplit(second).unwrap();
        first.unsplit(third).unwrap();
        assert_eq!(first.len(), 8192);
        assert!(first[..4096].iter().all(|&byte| byte == 3));
        assert_eq!((first[4096], first[5095], first[5096]), (2, 2, 0));
    }

    #[test]
    fn a_part_keeps_the_memory_of_the_whole() {
        let mut whole = AlignedBuf::new(8192, 4096).unwrap();
        let mut rest = whole.split_off(4096).unwrap();
        drop(whole);
        rest.fill(7);
        rest.truncate(100);
        assert_eq!(*rest, [7; 100]);
    }

    #[test]
    fn refuses_what_cannot_be_allocated() {
        for (len, alignment) in [(0, 512), (1, 0), (1, 3), (usize::MAX, 512)] {
            let error = AlignedBuf::new(len, alignment).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{len} {alignment}");
        }
        let error = AlignedBuf::new(isize::MAX as usize - 4095, 512).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
