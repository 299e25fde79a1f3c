//! Memory that direct I/O accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{fmt, io, slice};

/// An owned, zero-initialized buffer whose address is a multiple of a chosen
/// alignment.
///
/// Direct I/O transfers between the disk and such a buffer without a copy. The
/// alignment a file needs is [`DirectFile::memory_alignment`]; 4096 satisfies
/// every file known and keeps a 4 KiB request within one page.
///
/// The memory stays where it is when the buffer is moved.
///
/// [`DirectFile::memory_alignment`]: crate::DirectFile::memory_alignment
pub struct AlignedBuf {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer is the only owner of its memory.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared reference gives only shared access to the memory.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// Allocates `len` bytes of zeros at a multiple of `alignment` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when `len` is zero or `alignment` is not a power of two;
    /// `OutOfMemory` when the memory is not to be had.
    pub fn new(len: usize, alignment: usize) -> io::Result<Self> {
        if len == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a buffer needs at least one byte",
            ));
        }
        let layout = Layout::from_size_align(len, alignment).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "no buffer of {len} bytes with alignment {alignment}: \
                     use a power of two and a smaller length"
                ),
            )
        })?;
        // SAFETY: the size of the layout is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, layout })
    }

    /// The alignment asked for, in bytes.
    pub fn alignment(&self) -> usize {
        self.layout.align()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this very layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `size` initialized bytes owned by `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
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
    fn refuses_what_cannot_be_allocated() {
        for (len, alignment) in [(0, 512), (1, 0), (1, 3), (usize::MAX, 512)] {
            let error = AlignedBuf::new(len, alignment).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{len} {alignment}");
        }
        let error = AlignedBuf::new(isize::MAX as usize - 4095, 512).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
