//! Memory that waits to be used again.

use super::allocation::Allocation;
use crate::sys::fork::Process;
use crate::sys::lock::Lock;

/// Sizes are powers of two, up to the size of the address space.
const SIZES: usize = usize::BITS as usize;

/// Allocations that are not in use, by size; those in use are counted.
#[derive(Debug)]
pub(super) struct FreeLists {
    pub(super) alignment: usize,
    bytes_max: usize,
    pub(super) process: Process,
    lists: Lock<Lists>,
}

#[derive(Debug)]
struct Lists {
    free_bytes: usize,
    taken_bytes: usize,
    by_size: [Vec<Allocation>; SIZES],
}

impl Default for Lists {
    fn default() -> Self {
        Self { free_bytes: 0, taken_bytes: 0, by_size: [const { Vec::new() }; SIZES] }
    }
}

impl FreeLists {
    /// Empty lists that keep at most `bytes_max` bytes.
    pub(super) fn new(alignment: usize, bytes_max: usize) -> Self {
        Self { alignment, bytes_max, process: Process::current(), lists: Lock::default() }
    }

    /// Bytes that are free.
    pub(super) fn free_bytes(&self) -> usize {
        self.lists.lock().free_bytes
    }

    /// Bytes that are in use.
    pub(super) fn taken_bytes(&self) -> usize {
        self.lists.lock().taken_bytes
    }

    /// A free allocation of `size` bytes, a power of two.
    pub(super) fn take(&self, size: usize) -> Option<Allocation> {
        let mut lists = self.lists.lock();
        let allocation = lists.by_size.get_mut(index(size))?.pop()?;
        lists.free_bytes -= allocation.len();
        Some(allocation)
    }

    /// Counts `size` bytes that were taken, here or from the allocator.
    pub(super) fn count_taken(&self, size: usize) {
        self.lists.lock().taken_bytes += size;
    }

    /// Keeps an allocation of a buffer that is gone, or frees it when there is
    /// enough.
    pub(super) fn put(&self, allocation: Allocation) {
        if !self.process.is_here() {
            return;
        }
        let mut lists = self.lists.lock();
        lists.taken_bytes -= allocation.len();
        let bytes = lists.free_bytes.saturating_add(allocation.len());
        if bytes > self.bytes_max {
            return;
        }
        if let Some(list) = lists.by_size.get_mut(index(allocation.len())) {
            list.push(allocation);
            lists.free_bytes = bytes;
        }
    }
}

/// Where allocations of `size` bytes, a power of two, are kept.
const fn index(size: usize) -> usize {
    size.trailing_zeros() as usize
}
