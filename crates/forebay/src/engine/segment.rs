//! The buffers of a vectored operation in the kernel's layout.

/// One buffer of a vectored operation, laid out as the kernel's `iovec`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    base: *mut u8,
    len: usize,
}

impl Segment {
    pub(super) const fn new(buffer: &mut [u8]) -> Self {
        Self { base: buffer.as_mut_ptr(), len: buffer.len() }
    }
}
