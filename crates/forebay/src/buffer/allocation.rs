//! Memory from the allocator.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

/// Memory from the allocator, freed when dropped.
#[derive(Debug)]
pub(super) struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory. The allocator frees it from any thread. `Allocation` accesses the
// memory only to free it, once, when the last region of it is dropped.
unsafe impl Send for Allocation {}
// SAFETY: a shared reference gives no access to the memory.
unsafe impl Sync for Allocation {}

impl Allocation {
    pub(super) fn new(len: usize, alignment: usize) -> io::Result<Self> {
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

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) const fn len(&self) -> usize {
        self.layout.size()
    }

    pub(super) const fn alignment(&self) -> usize {
        self.layout.align()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout, and no region of it is left.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
