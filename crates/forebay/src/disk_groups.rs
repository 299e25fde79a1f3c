//! The I/O groups of a disk: one, or one for each direction of a duplex disk.

use std::sync::Arc;

use forebay_core::Op;
use forebay_driver::queue_for;

use crate::permit::DiskGroup;

/// The I/O groups of a disk: one for all requests, or on a duplex disk one for reads and one for
/// all others. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DiskGroups {
    reads: Arc<DiskGroup>,
    /// The group of other requests, if they are not in that of reads.
    others: Option<Arc<DiskGroup>>,
}

impl DiskGroups {
    pub(crate) const fn new(reads: Arc<DiskGroup>, others: Option<Arc<DiskGroup>>) -> Self {
        Self { reads, others }
    }

    pub(crate) const fn is_duplex(&self) -> bool {
        self.others.is_some()
    }

    /// The number of the I/O group for requests of `op`.
    pub(crate) const fn number_of(&self, op: Op) -> usize {
        queue_for(op, if self.is_duplex() { 2 } else { 1 })
    }

    /// The I/O group for requests of `op`.
    pub(crate) fn of(&self, op: Op) -> &Arc<DiskGroup> {
        match &self.others {
            Some(others) if op != Op::Read => others,
            _ => &self.reads,
        }
    }

    /// All I/O groups, by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<DiskGroup>> {
        std::iter::once(&self.reads).chain(&self.others)
    }
}
