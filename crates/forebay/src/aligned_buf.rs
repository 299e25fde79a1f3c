//! Memory that direct I/O accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::{fmt, io, slice};

use crate::buffer_pool::Shelves;

/// An owned buffer whose address is a multiple of a chosen alignment; zeros
/// at first.
///
/// Direct I/O transfers between the disk and such a buffer without a copy. The
/// alignment a file needs is [`DirectFile::memory_alignment`]; 4096 satisfies
/// every file known and keeps a 4 KiB request within one page.
///
/// The memory stays where it is when the buffer is moved. A buffer can be cut
/// in two that share one allocation ([`AlignedBuf::split_off`]), so that the
/// parts of a large request go to the disk, and end there, each on its own.
///
/// [`DirectFile::memory_alignment`]: crate::DirectFile::memory_alignment
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    /// Where `start..start + len` lies; the other parts of it belong to other
    /// buffers.
    memory: Arc<Memory>,
}

/// What the parts of a cut buffer share.
struct Memory {
    /// `None` while it is dropped, and of a buffer of no bytes.
    allocation: Option<Allocation>,
    alignment: usize,
    /// Where the allocation goes when its last buffer is gone.
    pool: Weak<Shelves>,
}

/// Memory from the allocator, freed when dropped.
#[derive(Debug)]
pub(crate) struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory, which the allocator frees from any thread, and
// reaches into it only to free it: once, when the last buffer made of it is gone.
unsafe impl Send for Allocation {}
// SAFETY: a shared reference gives no access to the memory.
unsafe impl Sync for Allocation {}
// SAFETY: the buffer is the only one that reaches its range of the memory. What
// it shares with other parts is in an `Arc` whose content is `Send` and `Sync`.
unsafe impl Send for AlignedBuf {}
// SAFETY: a shared reference gives only shared access to the range.
unsafe impl Sync for AlignedBuf {}

impl Allocation {
    pub(crate) fn new(len: usize, alignment: usize) -> io::Result<Self> {
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

    pub(crate) const fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this very layout, and no buffer is
        // left that reaches it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(shelves) = self.pool.upgrade()
            && let Some(allocation) = self.allocation.take()
        {
            shelves.keep(allocation);
        }
    }
}

impl AlignedBuf {
    /// Allocates `len` bytes of zeros at a multiple of `alignment` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when `len` is zero or `alignment` is not a power of two;
    /// `OutOfMemory` when the memory is not to be had.
    pub fn new(len: usize, alignment: usize) -> io::Result<Self> {
        Ok(Self::of(Allocation::new(len, alignment)?, Weak::new()))
    }

    /// A buffer of a whole allocation, which goes to `pool` in the end.
    pub(crate) fn of(allocation: Allocation, pool: Weak<Shelves>) -> Self {
        let (start, len) = (allocation.start, allocation.len());
        let alignment = allocation.layout.align();
        let memory = Memory { allocation: Some(allocation), alignment, pool };
        Self { start, len, memory: Arc::new(memory) }
    }

    /// A buffer of no bytes, without memory.
    pub(crate) fn empty() -> Self {
        let memory = Memory { allocation: None, alignment: 1, pool: Weak::new() };
        Self { start: NonNull::dangling(), len: 0, memory: Arc::new(memory) }
    }

    /// The alignment asked for, in bytes. The second half of a buffer that was
    /// cut can lie at a smaller one.
    pub fn alignment(&self) -> usize {
        self.memory.alignment
    }

    /// Cuts the buffer: it keeps its first `at` bytes, and what follows is
    /// returned. `None`, and nothing changes, when one of the two would be
    /// empty.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Option<Self> {
        if at == 0 || at >= self.len {
            return None;
        }
        // SAFETY: `at` is within the range of this buffer, and with it within the
        // allocation.
        let start = unsafe { self.start.add(at) };
        let rest = Self { start, len: self.len - at, memory: Arc::clone(&self.memory) };
        self.len = at;
        Some(rest)
    }

    /// Joins `rest` to the end of this buffer again.
    ///
    /// # Errors
    ///
    /// Gives `rest` back when it is not what followed this buffer before
    /// [`AlignedBuf::split_off`].
    pub fn unsplit(&mut self, rest: Self) -> Result<(), Self> {
        let follows = Arc::ptr_eq(&self.memory, &rest.memory)
            && self.start.as_ptr().addr() + self.len == rest.start.as_ptr().addr();
        if !follows {
            return Err(rest);
        }
        self.len += rest.len;
        Ok(())
    }

    /// Shortens the buffer to `len` bytes; without effect when it is not
    /// longer, or `len` is zero. The memory stays allocated.
    pub fn truncate(&mut self, len: usize) {
        drop(self.split_off(len));
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is initialized, within `memory`, which lives as long as
        // `self`, and no other buffer's; where `len` is 0 there is none, and `start`
        // is not null. The kernel has the range only while its engine has `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
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
