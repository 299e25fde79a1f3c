//! Buffers of any kind for requests.
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

/// A buffer that can be passed to a request that writes it. It is like the traits of this name in
/// tokio-uring and compio.
///
/// A request owns its buffer until the kernel is done with it, even if the caller drops everything.
/// The buffer is returned with the result. A [direct](crate::DirectFile::is_direct) file accepts it
/// only at a multiple of [`memory_alignment`](crate::DirectFile::memory_alignment). An
/// [`AlignedBuf`] has that, and a `Vec` only by chance. An I/O thread drops the buffer of a request
/// whose handle was dropped, so the drop must not block.
///
/// `Default` is an empty buffer. It is returned if the buffer itself cannot be, because its I/O
/// thread has ended and the kernel may still use it.
///
/// # Safety
///
/// While the value is not accessed, even if it is moved, and until it is dropped:
///
/// - [`stable_ptr`](Self::stable_ptr) does not change. It points to
///   [`bytes_total`](Self::bytes_total) bytes of one allocation. The first
///   [`bytes_init`](Self::bytes_init) of these are initialised, which are at most `bytes_total`.
/// - Nobody else writes to these bytes.
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
    /// A pointer to the first byte of the buffer.
    fn stable_ptr(&self) -> *const u8;

    /// The number of initialised bytes, from the beginning of the buffer. A write writes these.
    fn bytes_init(&self) -> usize;

    /// The number of all bytes, initialised or not. A read reads at most as many.
    fn bytes_total(&self) -> usize;

    /// A part of the buffer, which is read or written alone; the rest does not change.
    /// [`Slice::into_inner`] returns the whole buffer.
    ///
    /// # Errors
    /// The range ends beyond the buffer, or begins beyond its initialised bytes.
    fn slice(self, range: impl std::ops::RangeBounds<usize>) -> Result<Slice<Self>, SliceError> {
        Slice::new(self, range)
    }
}

/// An [`IoBuf`] that can be read into.
///
/// # Safety
///
/// As for [`IoBuf`], and nobody else reads these bytes. The pointer of
/// [`stable_mut_ptr`](Self::stable_mut_ptr) is that of
/// [`stable_ptr`](IoBuf::stable_ptr), and may be written through.
pub unsafe trait IoBufMut: IoBuf {
    /// A pointer to the first byte of the buffer.
    fn stable_mut_ptr(&mut self) -> *mut u8;

    /// Notes that the first `len` bytes are initialised. Further bytes may be initialised too.
    ///
    /// # Safety
    ///
    /// The first `len` bytes are initialised, and `len` is at most
    /// [`bytes_total`](IoBuf::bytes_total).
    unsafe fn set_init(&mut self, len: usize);
}

/// A read fills its capacity. The `Vec` grows to the bytes that were read, and never shrinks.
// SAFETY: its memory does not move until the `Vec` is accessed or dropped, and its first `len`
// bytes are initialised.
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

// SAFETY: it alone owns its memory.
unsafe impl IoBufMut for Vec<u8> {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_ptr()
    }

    // SAFETY: the caller guarantees what `IoBufMut::set_init` requires.
    unsafe fn set_init(&mut self, len: usize) {
        if len > self.len() {
            // SAFETY: as the caller guarantees, `len` bytes are initialised and within the
            // capacity.
            unsafe { self.set_len(len) };
        }
    }
}

/// Buffers whose length does not change and whose bytes are all initialised.
macro_rules! initialised {
    ($($buffer:ty),+) => {$(
        // SAFETY: its memory does not move until it is dropped, is initialised, and nobody else
        // writes to it.
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
        // SAFETY: nobody else uses its bytes, even if others share the allocation.
        unsafe impl IoBufMut for $buffer {
            fn stable_mut_ptr(&mut self) -> *mut u8 {
                self.as_mut_ptr()
            }

            // SAFETY: all bytes are initialised from the beginning, so there is nothing to note.
            unsafe fn set_init(&mut self, _len: usize) {}
        }
    )+};
}

initialised!(&'static [u8], Box<[u8]>, AlignedBuf);
writable!(Box<[u8]>, AlignedBuf);
