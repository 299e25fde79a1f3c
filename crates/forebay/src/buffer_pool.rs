//! Buffers used again.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::AlignedBuf;
use crate::fork::Process;
use crate::io_buf::Allocation;

/// Sizes are powers of two, up to the size of the address space.
const SIZES: usize = usize::BITS as usize;

/// A pool of [`AlignedBuf`]s whose memory comes back when they are dropped.
///
/// Allocating a large buffer asks the kernel for pages and clears them; a
/// buffer from the pool costs a lock. Sizes are rounded up to powers of two.
/// Clones are the same pool, which may be used from every thread. Buffers may
/// outlive it.
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
    shelves: Arc<Shelves>,
}

/// The memory that a pool keeps, by size.
#[derive(Debug)]
pub(crate) struct Shelves {
    alignment: usize,
    bytes_max: usize,
    process: Process,
    stock: Mutex<Stock>,
}

#[derive(Debug)]
struct Stock {
    bytes: usize,
    taken_bytes: usize,
    by_size: [Vec<Allocation>; SIZES],
}

impl BufferPool {
    /// An empty pool of buffers at multiples of `alignment` bytes, a power of
    /// two, that keeps at most `bytes_max` bytes of memory that is not in use.
    pub fn new(alignment: usize, bytes_max: usize) -> Self {
        let stock = Stock { bytes: 0, taken_bytes: 0, by_size: [const { Vec::new() }; SIZES] };
        Self {
            shelves: Arc::new(Shelves {
                alignment,
                bytes_max,
                process: Process::current(),
                stock: Mutex::new(stock),
            }),
        }
    }

    /// A buffer of `len` bytes. What it holds is arbitrary: zeros, or what an
    /// earlier buffer of this pool held.
    ///
    /// # Errors
    ///
    /// As [`AlignedBuf::new`].
    pub fn take(&self, len: usize) -> io::Result<AlignedBuf> {
        self.shelves.process.check()?;
        let size = len.checked_next_power_of_two().unwrap_or(len);
        let size = if len == 0 { 0 } else { size };
        let allocation = match self.shelves.take(size) {
            Some(allocation) => allocation,
            None => Allocation::new(size, self.shelves.alignment)?,
        };
        self.shelves.stock().taken_bytes += size;
        let mut buffer = AlignedBuf::of(allocation, Arc::downgrade(&self.shelves));
        buffer.truncate(len);
        Ok(buffer)
    }

    /// Bytes of memory kept for the next buffers.
    pub fn kept_bytes(&self) -> usize {
        self.shelves.stock().bytes
    }

    /// Bytes of memory that buffers from this pool have now.
    pub fn taken_bytes(&self) -> usize {
        self.shelves.stock().taken_bytes
    }
}

impl Shelves {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, size: usize) -> Option<Allocation> {
        let mut stock = self.stock();
        let allocation = stock.by_size.get_mut(shelf(size))?.pop()?;
        stock.bytes -= allocation.len();
        Some(allocation)
    }

    /// Keeps an allocation of a buffer that is gone, or frees it when there is
    /// enough.
    pub(crate) fn keep(&self, allocation: Allocation) {
        if !self.process.is_here() {
            return;
        }
        let mut stock = self.stock();
        stock.taken_bytes -= allocation.len();
        let bytes = stock.bytes.saturating_add(allocation.len());
        if bytes > self.bytes_max {
            return;
        }
        if let Some(shelf) = stock.by_size.get_mut(shelf(allocation.len())) {
            shelf.push(allocation);
            stock.bytes = bytes;
        }
    }
}

/// Where allocations of `size` bytes, a power of two, are kept.
const fn shelf(size: usize) -> usize {
    size.trailing_zeros() as usize
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
