//! Pools of reusable buffers.

use std::io;
use std::sync::Arc;

use super::aligned::AlignedBuf;
use super::allocation::Allocation;
use super::free_lists::FreeLists;

/// A pool of [`AlignedBuf`]s, to which their memory returns when they are dropped.
///
/// The allocation of a large buffer asks the kernel for pages and clears them. A buffer from the
/// pool costs a lock. Sizes are rounded up to powers of two. Clones are the same pool, which may be
/// used from every thread. Buffers may outlive the pool.
///
/// ```
/// let pool = forebay::BufferPool::new(4096, 1 << 20);
/// let buffer = pool.take(10_000)?;
/// assert_eq!(buffer.len(), 10_000);
/// drop(buffer);
/// assert_eq!(pool.kept_bytes(), 16_384);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BufferPool {
    free_lists: Arc<FreeLists>,
}

impl BufferPool {
    /// An empty pool of buffers at multiples of `alignment` bytes, a power of two, that keeps at
    /// most `bytes_max` bytes of unused memory.
    pub fn new(alignment: usize, bytes_max: usize) -> Self {
        Self { free_lists: Arc::new(FreeLists::new(alignment, bytes_max)) }
    }

    /// A buffer of `len` bytes. Its content is arbitrary: zeros, or that of an earlier buffer of
    /// this pool.
    ///
    /// # Errors
    ///
    /// As for [`AlignedBuf::new`].
    pub fn take(&self, len: usize) -> io::Result<AlignedBuf> {
        self.free_lists.process.check()?;
        let size = len.checked_next_power_of_two().unwrap_or(len);
        let size = if len == 0 { 0 } else { size };
        let allocation = match self.free_lists.take(size) {
            Some(allocation) => allocation,
            None => Allocation::new(size, self.free_lists.alignment)?,
        };
        self.free_lists.count_taken(size);
        let mut buffer = AlignedBuf::of(allocation, Arc::downgrade(&self.free_lists));
        buffer.truncate(len);
        Ok(buffer)
    }

    /// The bytes of unused memory that the pool keeps.
    pub fn kept_bytes(&self) -> usize {
        self.free_lists.free_bytes()
    }

    /// The bytes of memory of the buffers that were taken from this pool and not returned.
    pub fn taken_bytes(&self) -> usize {
        self.free_lists.taken_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_with_the_last_part() {
        let pool = BufferPool::new(512, 1 << 20);
        let mut buffer = pool.take(5000).unwrap();
        buffer.fill(7);
        let address = buffer.as_ptr();
        let rest = buffer.split_off(512).unwrap();
        drop(buffer);
        assert_eq!((pool.kept_bytes(), pool.taken_bytes()), (0, 8192));
        drop(rest);
        assert_eq!((pool.kept_bytes(), pool.taken_bytes()), (8192, 0));
        let again = pool.take(8000).unwrap();
        assert_eq!((again.as_ptr(), again.len(), again[511]), (address, 8000, 7));
        assert_eq!(pool.kept_bytes(), 0);
    }

    #[test]
    fn keeps_no_more_than_allowed_and_outlives_nothing() {
        let pool = BufferPool::new(512, 10_000);
        let buffers: Vec<_> = (0..4).map(|_| pool.take(4096).unwrap()).collect();
        drop(buffers);
        assert_eq!(pool.kept_bytes(), 8192);
        let buffer = pool.clone().take(1).unwrap();
        drop(pool);
        assert_eq!(*buffer, [0]);
    }

    #[test]
    fn refuses_what_no_buffer_can_be() {
        let pool = BufferPool::new(4096, 10_000);
        assert_eq!(pool.take(0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(pool.take(usize::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(BufferPool::new(3, 1).take(1).is_err());
    }
}
