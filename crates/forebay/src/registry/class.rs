//! A class, or a group of classes, on all disks of a scheduler.

use std::sync::Arc;

use crossbeam_utils::atomic::AtomicCell;
use forebay_core::{ClassError, ClassGroupId, ClassId, ClassNode, IoGroup, Limits};

use crate::group::GroupState;
use crate::messages;
use crate::metrics::DiscardCounts;
use crate::page_cache::ReadCounts;
use crate::sys::lock::Lock;

/// A class on all disks.
pub(crate) type ClassRecord = Record<ClassId>;
/// A group of classes on all disks.
pub(crate) type GroupRecord = Record<ClassGroupId>;

/// The number of a class or of a group of classes in an I/O group.
pub(crate) trait Node: Copy + Send + Into<ClassNode> + 'static {
    fn add(io: &IoGroup, parent: Option<ClassGroupId>, shares: u32) -> Result<Self, ClassError>;
    /// Sets its name in the I/O group, if it has requests of its own.
    fn name(self, group: &GroupState, name: &str);
}

impl Node for ClassId {
    fn add(io: &IoGroup, parent: Option<ClassGroupId>, shares: u32) -> Result<Self, ClassError> {
        io.add_class(parent, shares)
    }

    fn name(self, group: &GroupState, name: &str) {
        group.name_class(self, name);
    }
}

impl Node for ClassGroupId {
    fn add(io: &IoGroup, parent: Option<Self>, shares: u32) -> Result<Self, ClassError> {
        io.add_class_group(parent, shares)
    }

    fn name(self, _: &GroupState, _: &str) {}
}

/// The settings of a class, which apply to new disks too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) shares: u32,
    pub(crate) limits: Limits,
}

/// The limits on each of `parts` equal parts of a disk: at least 1 per second.
pub(crate) fn part_of(limits: &Limits, parts: u64) -> Limits {
    let part = |rate: u64| if rate == 0 { 0 } else { (rate / parts).max(1) };
    Limits {
        bytes_per_second: limits.bytes_per_second.map(part),
        operations_per_second: limits.operations_per_second.map(part),
    }
}

/// A class or a group of classes: its name, and its number in each I/O group.
pub(crate) struct Record<Id: Node> {
    pub(crate) name: String,
    pub(crate) parent: Option<Arc<Record<ClassGroupId>>>,
    /// The counters of a class's reads through the page cache.
    pub(crate) reads: ReadCounts,
    /// The counters of a class's deleters.
    pub(crate) discards: DiscardCounts,
    /// The present settings.
    pub(crate) settings: Lock<Settings>,
    ids: Box<[AtomicCell<Place<Id>>]>,
}

/// A number in an I/O group, if there is one. It is as large as an atomic, so that reading takes no
/// lock.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Place<Id>(Option<Id>);

impl<Id: Node> Record<Id> {
    /// A record with places for `slots` I/O groups, and in none of them yet.
    pub(crate) fn new(
        name: String,
        parent: Option<Arc<Record<ClassGroupId>>>,
        shares: u32,
        slots: usize,
    ) -> Self {
        let settings = Lock::new(Settings { shares, limits: Limits::default() });
        let ids = (0..slots).map(|_| AtomicCell::new(Place(None))).collect();
        let (reads, discards) = (ReadCounts::default(), DiscardCounts::default());
        Self { name, parent, reads, discards, settings, ids }
    }

    /// Its number in the I/O group of `slot`. `None` once it is removed.
    pub(crate) fn id(&self, slot: usize) -> Option<Id> {
        self.ids.get(slot)?.load().0
    }

    /// Adds it to an I/O group, one of `parts` of its disk, with its present settings.
    pub(crate) fn place(&self, group: &GroupState, parts: u64) -> Result<(), ClassError> {
        let (io, slot) = (&group.io, group.slot);
        let parent = match &self.parent {
            Some(parent) => Some(parent.id(slot).ok_or(ClassError::Unknown)?),
            None => None,
        };
        let Settings { shares, limits } = *self.settings.lock();
        let id = Id::add(io, parent, shares)?;
        io.set_limits(id, &part_of(&limits, parts))?;
        id.name(group, &self.name);
        match self.ids.get(slot) {
            Some(cell) => cell.store(Place(Some(id))),
            None => messages::report_invariant("a class has no place for an I/O group"),
        }
        Ok(())
    }

    /// Forgets all numbers, because it is removed. The number in the I/O group of a removed disk
    /// must not be used for the next group in that slot.
    pub(crate) fn forget_places(&self) {
        self.ids.iter().for_each(|id| id.store(Place(None)));
    }

    /// Removes it from the I/O group of `slot`, if it is there.
    pub(crate) fn displace(&self, io: &IoGroup, slot: usize) -> Result<(), ClassError> {
        let Some(id) = self.id(slot) else { return Ok(()) };
        io.remove(id)?;
        self.ids[slot].store(Place(None));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_numbers_are_read_without_a_lock() {
        assert!(AtomicCell::<Place<ClassId>>::is_lock_free());
        assert!(AtomicCell::<Place<ClassGroupId>>::is_lock_free());
    }
}
