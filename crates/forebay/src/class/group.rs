//! Groups of classes.

use std::fmt;
use std::sync::Arc;

use forebay_core::Limits;

use super::Class;
use crate::registry::{ClassError, GroupRecord, Shared};

/// A group of classes, which competes with its siblings as one class with its shares. Its classes
/// divide the group's disk time. Cheap to clone.
#[derive(Clone)]
pub struct ClassGroup {
    pub(crate) scheduler: Arc<Shared>,
    pub(crate) record: Arc<GroupRecord>,
}

impl ClassGroup {
    pub(crate) fn of(scheduler: &Arc<Shared>, record: Arc<GroupRecord>) -> Self {
        Self { scheduler: Arc::clone(scheduler), record }
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Adds a class to the group.
    ///
    /// # Errors
    /// As for [`Scheduler::add_class`](crate::Scheduler::add_class); also when
    /// the group was removed.
    pub fn add_class(&self, name: &str, shares: u32) -> Result<Class, ClassError> {
        let record = self.scheduler.registry()?.add_class(name, Some(&self.record), shares)?;
        Ok(Class::of(&self.scheduler, &record))
    }

    /// Adds a group to the group.
    ///
    /// # Errors
    /// As for [`ClassGroup::add_class`]; also when groups nest deeper than
    /// [`CLASS_GROUP_DEPTH_MAX`](forebay_core::CLASS_GROUP_DEPTH_MAX).
    pub fn add_class_group(&self, name: &str, shares: u32) -> Result<Self, ClassError> {
        let record =
            self.scheduler.registry()?.add_class_group(name, Some(&self.record), shares)?;
        Ok(Self::of(&self.scheduler, record))
    }

    /// The present shares; 0 in a forked child.
    pub fn shares(&self) -> u32 {
        self.scheduler.settings_of(&self.record).shares
    }

    /// Changes the shares, on all disks.
    ///
    /// # Errors
    /// Shares outside 1 to [`SHARES_MAX`](forebay_core::SHARES_MAX), or a group
    /// that was removed.
    pub fn set_shares(&self, shares: u32) -> Result<(), ClassError> {
        self.scheduler.change(|registry| registry.set_shares(&self.record, shares))
    }

    /// The present upper limits; none in a forked child.
    pub fn limits(&self) -> Limits {
        self.scheduler.settings_of(&self.record).limits
    }

    /// Changes the upper limits of its classes together, on each disk: see
    /// [`Class::set_limits`].
    ///
    /// # Errors
    /// A limit of zero or above what any disk does, or a group that was removed.
    pub fn set_limits(&self, limits: &Limits) -> Result<(), ClassError> {
        self.scheduler.change(|registry| registry.set_limits(&self.record, limits))
    }
}

impl fmt::Debug for ClassGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassGroup").field("name", &self.record.name).finish_non_exhaustive()
    }
}
