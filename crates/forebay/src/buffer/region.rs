//! Memory that a request uses, and its owner.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::{Arc, Weak};

use super::IoBuf;
use super::allocation::Allocation;
use super::free_lists::FreeLists;
use super::place::Place;
use crate::messages;

/// The most owners that a thread keeps for the next lent buffers.
const KEPT_MAX: usize = 256;

thread_local! {
    static KEPT: RefCell<Vec<Arc<Owner>>> = const { RefCell::new(Vec::new()) };
}

/// A range of memory that nothing else accesses. It can be split into regions that share its owner.
pub(crate) struct Region {
    start: NonNull<u8>,
    len: usize,
    /// Keeps the memory of `start..start + len`. Other parts of that memory belong to other
    /// regions.
    owner: Arc<Owner>,
}

/// The owner of the memory of regions.
enum Owner {
    /// A region of no bytes.
    Nobody,
    /// An allocation of the library.
    Memory(Memory),
    /// A buffer of the caller.
    Lent(Lent),
}

/// The allocation that its regions share.
struct Memory {
    /// `None` while it is dropped.
    allocation: Option<Allocation>,
    alignment: usize,
    /// The pool to which the allocation returns after its last region is dropped.
    pool: Weak<FreeLists>,
}

/// A buffer that a caller lends for a request.
struct Lent {
    buffer: Place,
    /// Notes in the buffer how many of its bytes are initialised.
    set_init: SetInit,
}

/// Calls [`IoBufMut::set_init`](super::IoBufMut::set_init) of the buffer in a place, with its
/// safety contract.
pub(super) type SetInit = unsafe fn(&mut Place, usize);

// SAFETY: only this region accesses its range of the memory. It shares its owner with other regions
// through an `Arc`, whose content is `Send` and `Sync`.
unsafe impl Send for Region {}
// SAFETY: a shared reference gives only shared access to the range.
unsafe impl Sync for Region {}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade()
            && let Some(allocation) = self.allocation.take()
        {
            pool.put(allocation);
        }
    }
}

impl Region {
    /// The region of a whole allocation, which returns to `pool` after the last use.
    pub(crate) fn of_allocation(allocation: Allocation, pool: Weak<FreeLists>) -> Self {
        let (start, len) = (allocation.start(), allocation.len());
        let alignment = allocation.alignment();
        let memory = Memory { allocation: Some(allocation), alignment, pool };
        Self { start, len, owner: Arc::new(Owner::Memory(memory)) }
    }

    pub(crate) fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0, owner: Arc::new(Owner::Nobody) }
    }

    /// An empty region, in place of one that is missing.
    #[cold]
    pub(super) fn lost() -> Self {
        messages::report_invariant("a buffer was handed over that has no place");
        Self::empty()
    }

    /// The memory of `buffer`. `range` returns its pointer and length.
    ///
    /// # Safety
    ///
    /// Pointer and length are those of the contract of [`IoBuf`] for this buffer. `set_init` has no
    /// effect, or is that of the type of the buffer. Code that writes to the region may write to the
    /// buffer.
    pub(super) unsafe fn of_buffer<B: IoBuf>(
        buffer: B,
        range: impl FnOnce(&mut B) -> (*mut u8, usize),
        set_init: SetInit,
    ) -> Self {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let lent = Lent { buffer: Place::empty(), set_init };
        let mut owner = kept.unwrap_or_else(|| Arc::new(Owner::Nobody));
        let Some(place) = Arc::get_mut(&mut owner) else { return Self::lost() };
        *place = Owner::Lent(lent);
        let Owner::Lent(Lent { buffer: place, .. }) = place else { return Self::lost() };
        // The buffer is not moved until it is returned.
        let (start, len) = range(place.put(buffer));
        match NonNull::new(start) {
            Some(start) => Self { start, len, owner },
            None => Self { start: NonNull::dangling(), len: 0, owner },
        }
    }

    /// The lent buffer, which is told that its first `init` bytes are initialised. `None` if it is
    /// not a `B`, or if parts of it are still in use.
    ///
    /// # Safety
    ///
    /// The first `init` bytes are initialised, and the buffer has as many.
    pub(super) unsafe fn into_buffer<B: IoBuf>(mut self, init: usize) -> Option<B> {
        let Some(Owner::Lent(lent)) = Arc::get_mut(&mut self.owner) else { return None };
        // SAFETY: as the caller guarantees.
        unsafe { (lent.set_init)(&mut lent.buffer, init) };
        let buffer = lent.buffer.take()?;
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_MAX {
                kept.push(self.owner);
            }
        });
        Some(buffer)
    }

    /// Whether it is a caller's buffer.
    pub(super) fn is_lent(&self) -> bool {
        matches!(*self.owner, Owner::Lent(_))
    }

    /// The alignment of its allocation, in bytes; 1 for other memory.
    pub(crate) fn alignment(&self) -> usize {
        match &*self.owner {
            Owner::Memory(memory) => memory.alignment,
            Owner::Nobody | Owner::Lent(_) => 1,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    pub(crate) const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The address and length of `range`. `None` if it is not within the region.
    pub(super) fn location(&self, range: &Range<usize>) -> Option<(usize, usize)> {
        let is_within = range.start <= range.end && range.end <= self.len;
        is_within.then(|| (self.as_ptr().addr() + range.start, range.len()))
    }

    /// The first `len` bytes.
    ///
    /// # Safety
    ///
    /// They are initialised, and the region has at least `len` bytes.
    pub(crate) const unsafe fn bytes(&self, len: usize) -> &[u8] {
        // SAFETY: the bytes are within memory that the owner keeps as long as `self` exists, and
        // belong to no other region. The kernel uses them only while its engine has `self`. `start`
        // is never null, even for an empty region.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), len) }
    }

    /// The first `len` bytes, for changes.
    ///
    /// # Safety
    ///
    /// They are initialised, the region has at least `len` bytes, and the owner of the memory
    /// allows writes.
    pub(crate) const unsafe fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`. `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Splits the region: it keeps its first `at` bytes, and the rest is returned. If one of the
    /// two would be empty, it returns `None` and changes nothing.
    pub(crate) fn split_off(&mut self, at: usize) -> Option<Self> {
        if at == 0 || at >= self.len {
            return None;
        }
        // SAFETY: `at` is within this region, and so within the memory.
        let start = unsafe { self.start.add(at) };
        let rest = Self { start, len: self.len - at, owner: Arc::clone(&self.owner) };
        self.len = at;
        Some(rest)
    }

    /// Joins `rest` to its end again. Returns `rest` if it did not follow this region before the
    /// split.
    pub(crate) fn unsplit(&mut self, rest: Self) -> Result<(), Self> {
        let follows = Arc::ptr_eq(&self.owner, &rest.owner)
            && self.start.as_ptr().addr() + self.len == rest.start.as_ptr().addr();
        if !follows {
            return Err(rest);
        }
        self.len += rest.len;
        Ok(())
    }
}
