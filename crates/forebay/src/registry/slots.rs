//! Places of I/O groups in the records of classes.

use std::sync::{Arc, Weak};

use crate::permit::DiskGroup;

/// The used places. A group keeps its place until its last permit ends, even if its disk is
/// removed. After that the numbers of classes in that place are no longer looked up.
#[derive(Debug)]
pub(crate) struct Slots {
    groups: Box<[Weak<DiskGroup>]>,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { groups: (0..count).map(|_| Weak::new()).collect() }
    }

    /// The number of places.
    pub(crate) fn count(&self) -> usize {
        self.groups.len()
    }

    /// The number of free places.
    pub(crate) fn free(&self) -> usize {
        self.groups.iter().filter(|group| group.strong_count() == 0).count()
    }

    /// Takes a free place for the group that `make` makes for it. `None` if there is none.
    pub(crate) fn take(
        &mut self,
        make: impl FnOnce(usize) -> Arc<DiskGroup>,
    ) -> Option<Arc<DiskGroup>> {
        let slot = self.groups.iter().position(|group| group.strong_count() == 0)?;
        let group = make(slot);
        self.groups[slot] = Arc::downgrade(&group);
        Some(group)
    }
}
