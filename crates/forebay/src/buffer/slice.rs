//! Parts of buffers.

use std::ops::{Bound, Deref, Range, RangeBounds};
use std::slice;

use super::{IoBuf, IoBufMut};

/// A part of a buffer, made with [`IoBuf::slice`].
///
/// It dereferences to the initialised bytes of the part.
#[derive(Debug, Default)]
pub struct Slice<B> {
    buffer: B,
    /// The range within the buffer. It begins within the initialised bytes.
    range: Range<usize>,
}

/// The error for a range that is not a part of the buffer. The buffer is dropped.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no part {start}..{end} of a buffer of {total} bytes, {init} of them initialised: let it begin \
     within these and end within the buffer"
)]
pub struct SliceError {
    /// The beginning of the range.
    pub start: usize,
    /// The end of the range.
    pub end: usize,
    /// The number of initialised bytes of the buffer.
    pub init: usize,
    /// The number of bytes of the buffer.
    pub total: usize,
}

forebay_core::debug_as_display!(SliceError);

impl<B: IoBuf> Slice<B> {
    pub(super) fn new(buffer: B, range: impl RangeBounds<usize>) -> Result<Self, SliceError> {
        let (init, total) = (buffer.bytes_init(), buffer.bytes_total());
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => total,
        };
        // A gap before the part would count as initialised after a read.
        if start > init || start > end || end > total {
            return Err(SliceError { start, end, init, total });
        }
        Ok(Self { buffer, range: start..end })
    }

    /// The whole buffer.
    pub fn into_inner(self) -> B {
        self.buffer
    }

    /// The range of the part in the buffer.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

// SAFETY: it is a part of the memory of a buffer that keeps the contract. Its initialised bytes
// begin where the part begins.
unsafe impl<B: IoBuf> IoBuf for Slice<B> {
    fn stable_ptr(&self) -> *const u8 {
        // SAFETY: the range is within the buffer.
        unsafe { self.buffer.stable_ptr().add(self.range.start) }
    }

    fn bytes_init(&self) -> usize {
        self.buffer.bytes_init().min(self.range.end) - self.range.start
    }

    fn bytes_total(&self) -> usize {
        self.range.len()
    }
}

// SAFETY: as for the buffer itself.
unsafe impl<B: IoBufMut> IoBufMut for Slice<B> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        // SAFETY: the range is within the buffer.
        unsafe { self.buffer.stable_mut_ptr().add(self.range.start) }
    }

    // SAFETY: the caller guarantees what `IoBufMut::set_init` requires, for the part.
    unsafe fn set_init(&mut self, len: usize) {
        // SAFETY: the bytes before the part are initialised, and so are the first `len` bytes of
        // the part.
        unsafe { self.buffer.set_init(self.range.start + len) };
    }
}

impl<B: IoBuf> Deref for Slice<B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes_init` bytes are initialised there, and nobody writes to them while `self`
        // is borrowed.
        unsafe { slice::from_raw_parts(self.stable_ptr(), self.bytes_init()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(init: usize, total: usize) -> Vec<u8> {
        let mut vector = Vec::with_capacity(total);
        vector.extend(0..init as u8);
        vector
    }

    #[test]
    fn a_part_is_within_its_buffer_and_leaves_no_gap() {
        let total = vector(10, 100).capacity();
        for (start, end) in [(11, 20), (0, total + 1), (5, 4)] {
            let refused = vector(10, 100).slice((Bound::Included(start), Bound::Excluded(end)));
            assert_eq!(refused.unwrap_err(), SliceError { start, end, init: 10, total });
        }
        assert!(vector(10, 100).slice(..=usize::MAX).is_err());
        assert_eq!(vector(10, 100).slice(10..).unwrap().bytes_total(), total - 10);
        assert_eq!(*vector(10, 100).slice(2..=4).unwrap(), [2, 3, 4]);
    }

    #[test]
    fn reading_into_a_nested_slice_lengthens_the_buffer() {
        let mut part = vector(10, 100).slice(4..60).unwrap().slice(3..20).unwrap();
        assert_eq!((part.bytes_init(), part.bytes_total()), (3, 17));
        // SAFETY: 5 bytes are within the part, and were written before.
        unsafe {
            part.stable_mut_ptr().write_bytes(9, 5);
            part.set_init(5);
        }
        let whole = part.into_inner().into_inner();
        assert_eq!(whole, [0, 1, 2, 3, 4, 5, 6, 9, 9, 9, 9, 9]);
    }

    #[test]
    fn a_part_never_shortens_the_whole() {
        let mut part = vector(10, 100).slice(0..5).unwrap();
        // SAFETY: they are initialised.
        unsafe { part.set_init(2) };
        assert_eq!(part.into_inner().len(), 10);
    }
}
