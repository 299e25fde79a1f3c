//! Unused memory of a pool.

use super::allocation::Allocation;
use crate::sys::fork::Process;
use crate::sys::lock::Lock;

/// The number of sizes: the powers of two up to the size of the address space.
const SIZES: usize = usize::BITS as usize;

/// Unused allocations by size, and the number of bytes in use.
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

    /// The bytes of unused allocations.
    pub(super) fn free_bytes(&self) -> usize {
        self.lists.lock().free_bytes
    }

    /// The bytes in use.
    pub(super) fn taken_bytes(&self) -> usize {
        self.lists.lock().taken_bytes
    }

    /// Takes an unused allocation of `size` bytes, a power of two.
    pub(super) fn take(&self, size: usize) -> Option<Allocation> {
        let mut lists = self.lists.lock();
        let allocation = lists.by_size.get_mut(index(size))?.pop()?;
        lists.free_bytes -= allocation.len();
        Some(allocation)
    }

    /// Counts `size` bytes as in use, from a list or from the allocator.
    pub(super) fn count_taken(&self, size: usize) {
        self.lists.lock().taken_bytes += size;
    }

    /// Keeps the allocation of a dropped buffer, or frees it if the lists are full.
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

/// The index of the list of allocations of `size` bytes, a power of two.
const fn index(size: usize) -> usize {
    size.trailing_zeros() as usize
}
