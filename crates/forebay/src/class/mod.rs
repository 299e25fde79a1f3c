//! Priority classes: who shares the disks, and in which proportion.

mod current;
mod group;
mod record;

use std::fmt;
use std::sync::Arc;

use forebay_core::{ClassGroupId, ClassId, Limits};

pub use self::current::Entered;
pub(crate) use self::current::innermost;
pub use self::group::ClassGroup;
pub(crate) use self::record::{Node, Record, Settings, part_of};

use crate::Disk;
use crate::disk::{DiskGroup, DiskRecord};
use crate::scheduler::Shared;
use crate::sys::fork::Forked;

pub(crate) type ClassRecord = Record<ClassId>;
pub(crate) type GroupRecord = Record<ClassGroupId>;

/// Why a class or a group of classes could not be made, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassError {
    /// The name is in use.
    #[error("there is a class or group named `{name}` already; choose another name")]
    NameTaken {
        /// The name asked for.
        name: String,
    },
    /// The scheduler does not accept the change.
    #[error("class or group `{name}`: {source}")]
    Refused {
        /// Its name.
        name: String,
        /// What is wrong, and what is allowed.
        source: forebay_core::ClassError,
    },
    /// Untagged work needs a class.
    #[error("the class `{UNTAGGED}` takes the work that has no other class and cannot be removed")]
    Untagged,
    /// It belongs to another scheduler.
    #[error("`{name}` belongs to another scheduler")]
    OtherScheduler {
        /// Its name.
        name: String,
    },
    /// This is a child of the process that made the scheduler.
    #[error(transparent)]
    Forked(#[from] Forked),
}

/// Name of the class of work that has no other.
pub const UNTAGGED: &str = "untagged";

/// A priority class: its requests share the disks with those of other classes
/// in proportion to their shares. Cheap to clone.
///
/// A class exists on every disk of its scheduler, with the same shares. The
/// permits it is asked for are of one of them: the scheduler's first, unless it
/// was obtained with [`Class::on`]. Files and shards have a disk of their own,
/// on which they take any class.
#[derive(Clone)]
pub struct Class {
    pub(crate) scheduler: Arc<Shared>,
    pub(crate) record: Arc<ClassRecord>,
    pub(crate) disk: Arc<DiskRecord>,
    /// Whoever asks in it holds a permit: see [`Class::beside`].
    pub(crate) holder: bool,
}

impl Class {
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

    /// The disk that the class's verbs mean.
    pub fn disk(&self) -> Disk {
        Disk { scheduler: Arc::clone(&self.scheduler), record: Arc::clone(&self.disk) }
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

    /// Changes the upper limits: what the class may use at most of each disk,
    /// however idle it is. What is asked for [beside](Self::beside) a permit waits
    /// for them too; others go past the window meanwhile. On a disk that is
    /// [divided](crate::SchedulerBuilder::io_groups) each part has an equal part
    /// of them; on a [duplex](crate::DiskConfig::duplex) disk reads have them,
    /// and all other requests have them too.
    ///
    /// # Errors
    /// A limit of zero or above what any disk does, or a class that was removed.
    pub fn set_limits(&self, limits: &Limits) -> Result<(), ClassError> {
        self.scheduler.change(|registry| registry.set_limits(&self.record, limits))
    }

    /// Its number in an I/O group of one of its scheduler's disks; `None` once
    /// it is removed.
    pub(crate) fn id_on(&self, group: &DiskGroup) -> Option<ClassId> {
        self.record.id(group.slot).or_else(|| {
            // A removal that is being refused has it back before it unlocks.
            let _registry = self.scheduler.registry().ok()?;
            self.record.id(group.slot)
        })
    }
}

/// By name, disk and scheduler.
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
