//! Priority classes, which share the disks in proportion to their shares.

mod current;
mod group;

use std::fmt;
use std::sync::Arc;

use forebay_core::{ClassId, Limits, Op};
use forebay_driver::QueueClass;

pub use self::current::Entered;
pub(crate) use self::current::innermost;
pub use self::group::ClassGroup;

use crate::disk::Disk;
use crate::disk_groups::DiskGroups;
use crate::group::GroupState;
use crate::registry::{ClassError, ClassRecord, DiskRecord, Shared};

/// A priority class: its requests share the disks with those of other classes
/// in proportion to their shares. Cheap to clone.
///
/// A class exists on every disk of its scheduler, with the same shares. Its permits are for one
/// disk: the scheduler's first, unless the class was obtained with [`Class::on`]. Files and shards
/// use their own disk, whatever the class's disk is.
#[derive(Clone)]
pub struct Class {
    pub(crate) scheduler: Arc<Shared>,
    pub(crate) record: Arc<ClassRecord>,
    pub(crate) disk: Arc<DiskRecord>,
    /// Whether the caller holds a permit: see [`Class::nested_in`].
    pub(crate) holder: bool,
}

impl Class {
    /// A class of `scheduler`, on its first disk.
    pub(crate) fn of(scheduler: &Arc<Shared>, record: &Arc<ClassRecord>) -> Self {
        Self {
            scheduler: Arc::clone(scheduler),
            record: Arc::clone(record),
            disk: Arc::clone(&scheduler.first),
            holder: false,
        }
    }

    /// The class's name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// The same class, on `disk`.
    ///
    /// # Errors
    /// `disk` belongs to another scheduler.
    pub fn on(&self, disk: &Disk) -> Result<Self, ClassError> {
        if !Arc::ptr_eq(&self.scheduler, &disk.scheduler) {
            return Err(ClassError::OtherScheduler { name: disk.name().to_owned() });
        }
        Ok(Self { disk: Arc::clone(&disk.record), ..self.clone() })
    }

    /// The disk on which this class asks for permits.
    pub fn disk(&self) -> Disk {
        Disk::of(&self.scheduler, &self.disk)
    }

    /// The present shares; 0 in a forked child.
    pub fn shares(&self) -> u32 {
        self.scheduler.settings_of(&self.record).shares
    }

    /// Changes the shares, on all disks, from the next dispatch on.
    ///
    /// # Errors
    /// Shares outside 1 to [`SHARES_MAX`](forebay_core::SHARES_MAX), or a class
    /// that was removed.
    pub fn set_shares(&self, shares: u32) -> Result<(), ClassError> {
        self.scheduler.change(|registry| registry.set_shares(&self.record, shares))
    }

    /// The present upper limits; none in a forked child.
    pub fn limits(&self) -> Limits {
        self.scheduler.settings_of(&self.record).limits
    }

    /// Changes the upper limits of the class on each disk, which apply even if the disk is idle.
    /// Nested requests of [a holder](Self::nested_in) wait for them too; other requests may bypass
    /// the window in that time. On a [divided](crate::SchedulerBuilder::io_groups) disk each part
    /// has an equal part of the limits. On a [duplex](crate::DiskConfig::duplex) disk they apply to
    /// reads, and separately to all other requests.
    ///
    /// # Errors
    /// A limit of zero or above what any disk does, or a class that was removed.
    pub fn set_limits(&self, limits: &Limits) -> Result<(), ClassError> {
        self.scheduler.change(|registry| registry.set_limits(&self.record, limits))
    }

    /// Its number in an I/O group of one of its scheduler's disks. `None` once it is removed.
    #[inline]
    pub(crate) fn id_on(&self, group: &GroupState) -> Option<ClassId> {
        self.record.id(group.slot).or_else(|| self.id_after_removal(group))
    }

    #[cold]
    fn id_after_removal(&self, group: &GroupState) -> Option<ClassId> {
        // A removal that is refused restores the number before it unlocks the registry.
        let _registry = self.scheduler.registry().ok()?;
        self.record.id(group.slot)
    }

    /// The class in the queue for requests of `op`. `None` once it is removed.
    pub(crate) fn in_queue(&self, groups: &DiskGroups, op: Op) -> Option<QueueClass> {
        let id = self.id_on(groups.of(op))?;
        Some(QueueClass { queue: groups.number_of(op), id, holder: self.holder })
    }
}

/// Classes are equal if their name, disk and scheduler are equal.
impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.record, &other.record) && Arc::ptr_eq(&self.disk, &other.disk)
    }
}

impl Eq for Class {}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Class")
            .field("name", &self.record.name)
            .field("disk", &self.disk.name)
            .finish_non_exhaustive()
    }
}
