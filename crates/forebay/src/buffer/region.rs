//! Memory that a request has, and what it goes back to.

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

/// A thread keeps this many owners for the next buffers that it lends.
const KEPT_MAX: usize = 256;

thread_local! {
    static KEPT: RefCell<Vec<Arc<Owner>>> = const { RefCell::new(Vec::new()) };
}

/// A range of memory that nothing else reaches. It can be cut in parts that
/// share its owner.
pub(crate) struct Region {
    start: NonNull<u8>,
    len: usize,
    /// Keeps `start..start + len`; other parts of it belong to other regions.
    owner: Arc<Owner>,
}

/// Whose memory it is.
enum Owner {
    /// A region of no bytes.
    Nobody,
    /// Ours.
    Memory(Memory),
    /// A caller's buffer.
    Lent(Lent),
}

/// What the parts of a cut allocation share.
struct Memory {
    /// `None` while it is dropped.
    allocation: Option<Allocation>,
    alignment: usize,
    /// Where the allocation goes when its last region is gone.
    pool: Weak<FreeLists>,
}

/// A buffer that a caller lends for a request.
struct Lent {
    buffer: Place,
    /// Tells the buffer how many of its bytes are initialised.
    set_init: SetInit,
}

/// See [`IoBufMut::set_init`](super::IoBufMut::set_init).
pub(super) type SetInit = unsafe fn(&mut Place, usize);

// SAFETY: the region is the only one that reaches its range of the memory. What
// it shares with other parts is in an `Arc` whose content is `Send` and `Sync`.
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
    /// All of an allocation, which goes to `pool` in the end.
    pub(crate) fn of_allocation(allocation: Allocation, pool: Weak<FreeLists>) -> Self {
        let (start, len) = (allocation.start(), allocation.len());
        let alignment = allocation.alignment();
        let memory = Memory { allocation: Some(allocation), alignment, pool };
        Self { start, len, owner: Arc::new(Owner::Memory(memory)) }
    }

    pub(crate) fn empty() -> Self {
        Self { start: NonNull::dangling(), len: 0, owner: Arc::new(Owner::Nobody) }
    }

    /// In the place of a region that is not there.
    #[cold]
    pub(super) fn lost() -> Self {
        messages::report_invariant("a buffer was handed over that has no place");
        Self::empty()
    }

    /// The memory of `buffer` as `range` tells of it: its pointer and length.
    ///
    /// # Safety
    ///
    /// They are what the contract of [`IoBuf`] says of the buffer, and
    /// `set_init` is nothing, or that of its type; the writer of the region
    /// knows that it may.
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
        // It is not moved from here on until it is given back.
        let (start, len) = range(place.put(buffer));
        match NonNull::new(start) {
            Some(start) => Self { start, len, owner },
            None => Self { start: NonNull::dangling(), len: 0, owner },
        }
    }

    /// The buffer that was lent, told that the first `init` of its bytes are
    /// initialised; `None` if it is no `B`, or parts of it are still elsewhere.
    ///
    /// # Safety
    ///
    /// They are.
    pub(super) unsafe fn into_buffer<B: IoBuf>(mut self, init: usize) -> Option<B> {
        let Some(Owner::Lent(lent)) = Arc::get_mut(&mut self.owner) else { return None };
        // SAFETY: as the caller says.
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

    /// What an allocation was made with, in bytes; else 1.
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

    /// Address and length of `range`; `None` if there is no such range.
    pub(super) fn location(&self, range: &Range<usize>) -> Option<(usize, usize)> {
        let is_within = range.start <= range.end && range.end <= self.len;
        is_within.then(|| (self.as_ptr().addr() + range.start, range.len()))
    }

    /// Its bytes.
    ///
    /// # Safety
    ///
    /// The first `len` are initialised, and there are this many.
    pub(crate) const unsafe fn bytes(&self, len: usize) -> &[u8] {
        // SAFETY: they are within memory that the owner keeps as long as `self`
        // does, and no other region's. The kernel has them only while its engine
        // has `self`. Where there are none, `start` is not null.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), len) }
    }

    /// Its bytes, to be changed.
    ///
    /// # Safety
    ///
    /// The first `len` are initialised, there are this many, and whose they are
    /// allows it.
    pub(crate) const unsafe fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Cuts it: it keeps its first `at` bytes, and what follows is returned.
    /// `None`, and nothing changes, when one of the two would be empty.
    pub(crate) fn split_off(&mut self, at: usize) -> Option<Self> {
        if at == 0 || at >= self.len {
            return None;
        }
        // SAFETY: `at` is within the range of this region, and with it within the
        // memory.
        let start = unsafe { self.start.add(at) };
        let rest = Self { start, len: self.len - at, owner: Arc::clone(&self.owner) };
        self.len = at;
        Some(rest)
    }

    /// Joins `rest` to its end again; gives it back when it is not what
    /// followed before it was cut.
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
