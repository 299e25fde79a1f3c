//! Buffers of any kind, for requests.
//!
//! Decision: `docs/decisions/0028-lent-buffers.md`.

mod aligned;
mod allocation;
mod free_lists;
mod place;
mod pool;
mod region;
mod slice;
mod transfer;

pub use self::aligned::AlignedBuf;
pub use self::pool::BufferPool;
pub use self::slice::{Slice, SliceError};
pub use self::transfer::{ReadBuf, WriteBuf};

/// A buffer that can be passed to a request that writes it, like tokio-uring's and compio's traits
/// of the same name.
///
/// A request owns its buffer until the kernel is done with it, whatever its caller drops, and
/// returns it with the result. A [direct](crate::DirectFile::is_direct) file accepts it only at a
/// multiple of [`memory_alignment`](crate::DirectFile::memory_alignment), which an [`AlignedBuf`]
/// has, and a `Vec` only by chance. An I/O thread drops the buffer of a request whose handle was
/// dropped, so the drop must not block.
///
/// `Default` gives an empty buffer, which is returned if the buffer itself cannot be, because its
/// I/O thread has ended and the kernel may still use it.
///
/// # Safety
///
/// As long as the value is not touched, though it may be moved, and until it is
/// dropped:
///
/// - [`stable_ptr`](Self::stable_ptr) is the same, and points to
///   [`bytes_total`](Self::bytes_total) bytes of one allocation, of which the
///   first [`bytes_init`](Self::bytes_init), which are not more, are initialised;
/// - nobody else writes to these bytes.
///
/// ```
/// use forebay::IoBuf;
///
/// #[derive(Default)]
/// struct Page(Vec<u8>);
///
/// // SAFETY: a `Vec` that is not touched keeps its memory where it is.
/// unsafe impl IoBuf for Page {
///     fn stable_ptr(&self) -> *const u8 {
///         self.0.as_ptr()
///     }
///     fn bytes_init(&self) -> usize {
///         self.0.len()
///     }
///     fn bytes_total(&self) -> usize {
///         self.0.capacity()
///     }
/// }
/// ```
pub unsafe trait IoBuf: Default + Send + 'static {
    /// Where the buffer begins.
    fn stable_ptr(&self) -> *const u8;

    /// Bytes that are initialised, from the beginning on: what is written.
    fn bytes_init(&self) -> usize;

    /// Bytes that there are, initialised or not: what is read at most.
    fn bytes_total(&self) -> usize;

    /// A part of the buffer, to be read or written alone; the rest stays as it
    /// is. [`Slice::into_inner`] gives the whole back.
    ///
    /// # Errors
    /// The range does not end within the buffer, or begins beyond what is
    /// initialised.
    fn slice(self, range: impl std::ops::RangeBounds<usize>) -> Result<Slice<Self>, SliceError> {
        Slice::new(self, range)
    }
}

/// An [`IoBuf`] that can be read into.
///
/// # Safety
///
/// As for [`IoBuf`], and nobody else reads these bytes either. The pointer of
/// [`stable_mut_ptr`](Self::stable_mut_ptr) is that of
/// [`stable_ptr`](IoBuf::stable_ptr), and may be written through.
pub unsafe trait IoBufMut: IoBuf {
    /// Where the buffer begins.
    fn stable_mut_ptr(&mut self) -> *mut u8;

    /// Notes that the first `len` bytes are initialised; not that others are
    /// not.
    ///
    /// # Safety
    ///
    /// They are, and there are this many.
    unsafe fn set_init(&mut self, len: usize);
}

/// Reads fill its capacity, and it grows to what was read; it never shrinks.
// SAFETY: its memory stays where it is until it is touched or dropped, and its
// first `len` bytes are initialised.
unsafe impl IoBuf for Vec<u8> {
    fn stable_ptr(&self) -> *const u8 {
        self.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.len()
    }

    fn bytes_total(&self) -> usize {
        self.capacity()
    }
}

// SAFETY: it owns its memory alone.
unsafe impl IoBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    unsafe fn set_init(&mut self, len: usize) {
        if len > self.len() {
            // SAFETY: the caller says that this many are initialised, and there.
            unsafe { self.set_len(len) };
        }
    }
}

/// Buffers of one length, which are initialised as a whole.
macro_rules! initialised {
    ($($buffer:ty),+) => {$(
        // SAFETY: its memory stays where it is until it is dropped, is initialised, and nobody
        // else writes to it.
        unsafe impl IoBuf for $buffer {
            fn stable_ptr(&self) -> *const u8 {
                self.as_ptr()
            }

            fn bytes_init(&self) -> usize {
                self.len()
            }

            fn bytes_total(&self) -> usize {
                self.len()
            }
        }
    )+};
}

/// Those of them that can be read into.
macro_rules! writable {
    ($($buffer:ty),+) => {$(
        // SAFETY: its bytes are its own, also where others share the allocation.
        unsafe impl IoBufMut for $buffer {
            fn stable_mut_ptr(&mut self) -> *mut u8 {
                self.as_mut_ptr()
            }

            unsafe fn set_init(&mut self, _len: usize) {}
        }
    )+};
}

initialised!(&'static [u8], Box<[u8]>, AlignedBuf);
writable!(Box<[u8]>, AlignedBuf);
