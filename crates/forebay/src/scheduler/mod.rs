//! The scheduler: disks, each with its budget, and the classes that share them.

mod builder;
mod snapshot;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use forebay_block::{FileStat, Machine, Stack};

pub use self::builder::SchedulerBuilder;

use crate::accounting;
use crate::class::{Class, ClassGroup, innermost};
use crate::disk::Disk;
use crate::properties::Properties;
use crate::registry::{Applied, ClassError, DiskConfig, SchedulerError, Shared, start_sharing};
use crate::sys::clock::Clock;

/// Disks, each with one budget, and the classes that share them. Cheap to clone. Every clone is the
/// same scheduler, and usable from any thread.
///
/// It lives as long as anything that was made with it: a class, a disk, a permit, or a waiting
/// future. Callers that wait when the last `Scheduler` is dropped are still served.
#[derive(Clone)]
pub struct Scheduler {
    shared: Arc<Shared>,
}

impl Scheduler {
    /// A scheduler for the disks of the io-properties file, or the
    /// `forebay.yaml`, at `path`: see [`Properties::load`].
    ///
    /// # Errors
    /// The file cannot be read or is invalid, a mountpoint cannot be looked up, or two entries are
    /// on one device.
    pub fn from_file(path: &Path) -> Result<Self, SchedulerError> {
        Self::builder().properties(&Properties::load(path)?).build()
    }

    /// The scheduler of `shared`, whose disks are `applied`.
    fn new(shared: Shared, applied: &[Applied]) -> Self {
        let shared = Arc::new(shared);
        accounting::watch(&shared, applied);
        start_sharing(&shared, applied);
        Self { shared }
    }

    /// The scheduler of a handle.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Loads the figures of `properties` without stopping I/O. Queued requests keep their cost, and
    /// later ones get the new one. An entry is identified by its device, or by its first
    /// mountpoint. New entries become disks, with all classes. A disk with a mountpoint that is no
    /// longer listed is removed with its counters, unless it is the first one, or the disk of
    /// [unlisted](SchedulerBuilder::unlisted) files. A disk that is in use by a [`Disk`], a class
    /// [on](Class::on) it, or a file stays until a later reload. The permits of a removed disk stay
    /// valid.
    ///
    /// # Errors
    /// As for [`SchedulerBuilder::build`]. After an error nothing has changed.
    pub fn reload(&self, properties: &Properties) -> Result<(), SchedulerError> {
        let disks: Vec<_> = properties.disks.iter().map(DiskConfig::from_properties).collect();
        let applied = self.shared.reload(&disks)?;
        accounting::watch(&self.shared, &applied);
        start_sharing(&self.shared, &applied);
        Ok(())
    }

    /// Adds a class with `shares` (1 to [`SHARES_MAX`](forebay_core::SHARES_MAX)) on all disks.
    ///
    /// # Errors
    /// The name is in use, the shares are out of range, or there are
    /// [`CLASSES_MAX`](forebay_core::CLASSES_MAX) classes already.
    pub fn add_class(&self, name: &str, shares: u32) -> Result<Class, ClassError> {
        let record = self.shared.registry()?.add_class(name, None, shares)?;
        Ok(Class::of(&self.shared, &record))
    }

    /// Adds a group of classes, which competes with classes and other groups as one class with
    /// `shares`.
    ///
    /// # Errors
    /// The name is in use, the shares are out of range, or there are
    /// [`CLASS_GROUPS_MAX`](forebay_core::CLASS_GROUPS_MAX) groups already.
    pub fn add_class_group(&self, name: &str, shares: u32) -> Result<ClassGroup, ClassError> {
        let record = self.shared.registry()?.add_class_group(name, None, shares)?;
        Ok(ClassGroup::of(&self.shared, record))
    }

    /// Removes a class from all disks.
    ///
    /// Its permits stay valid, but calls with its handles fail. Its counters are removed too: those
    /// of a new class of the same name begin at zero, as after a restart. The totals of disks do
    /// not change. Stop the threads or tasks of the class first, or drop their requests, because it
    /// cannot be removed while it has queued work.
    ///
    /// # Errors
    /// It has work queued on a disk, was removed before, belongs to another scheduler, or is the
    /// class of untagged work. Then it is not changed.
    pub fn remove_class(&self, class: &Class) -> Result<(), ClassError> {
        if !Arc::ptr_eq(&class.scheduler, &self.shared) {
            return Err(ClassError::OtherScheduler { name: class.name().to_owned() });
        }
        if Arc::ptr_eq(&class.record, &self.shared.untagged) {
            return Err(ClassError::DefaultClass);
        }
        self.shared.registry()?.remove_class(&class.record)
    }

    /// Removes a group of classes from all disks.
    ///
    /// # Errors
    /// It has classes, was removed before, or belongs to another scheduler.
    pub fn remove_class_group(&self, group: &ClassGroup) -> Result<(), ClassError> {
        if !Arc::ptr_eq(&group.scheduler, &self.shared) {
            return Err(ClassError::OtherScheduler { name: group.name().to_owned() });
        }
        self.shared.registry()?.remove_group(&group.record)
    }

    /// The class of that name. `None` in a forked child.
    pub fn class(&self, name: &str) -> Option<Class> {
        let registry = self.shared.registry().ok()?;
        let record = registry.classes.iter().find(|class| class.name == name)?;
        Some(Class::of(&self.shared, record))
    }

    /// All classes, in the order in which they were added. Empty in a forked child.
    pub fn classes(&self) -> Vec<Class> {
        let Ok(registry) = self.shared.registry() else { return Vec::new() };
        registry.classes.iter().map(|record| Class::of(&self.shared, record)).collect()
    }

    /// The class of work that names no class, on threads that have entered none.
    pub fn default_class(&self) -> Class {
        Class::of(&self.shared, &self.shared.untagged)
    }

    /// The class for calls that name no class: the class that the calling thread has
    /// [entered](Class::enter) last, else [the default one](Self::default_class).
    pub fn current_class(&self) -> Class {
        innermost(&self.shared).unwrap_or_else(|| self.default_class())
    }

    /// All disks, including the default one. Empty in a forked child.
    pub fn disks(&self) -> Vec<Disk> {
        let Ok(registry) = self.shared.registry() else { return Vec::new() };
        registry.disks.iter().map(|record| Disk::of(&self.shared, record)).collect()
    }

    /// The disk of that name. `None` in a forked child.
    pub fn disk(&self, name: &str) -> Option<Disk> {
        let registry = self.shared.registry().ok()?;
        registry.disk(name).map(|record| Disk::of(&self.shared, record))
    }

    /// The disk of unlisted devices. Their rates are unknown, so it has no limit. Classes and
    /// counters work as on other disks.
    pub fn default_disk(&self) -> Disk {
        Disk::of(&self.shared, &self.shared.default_disk)
    }

    /// The disk of `path`: the one with a mountpoint on the same file system, else on the nearest
    /// device below that.
    ///
    /// Below a partition is its whole disk, below a volume or an array (LVM, dm, md, btrfs) are its
    /// members, and below a loop device is the disk of its file. An overlay is on the disk of its
    /// upper directory, if that is visible. The datasets of a ZFS pool are on one disk. So all
    /// partitions of a listed disk belong to it, whichever of them is a mountpoint.
    /// [`SchedulerBuilder::unlisted`] determines the disk of other paths.
    ///
    /// Network and FUSE mounts are not accessed. So a hanging mount does not block this call or a
    /// reload, and paths in it need not exist.
    ///
    /// # Errors
    /// `path` cannot be looked up; an [`UnlistedError`](crate::UnlistedError), if files that no entry
    /// covers are refused; [`Forked`](crate::Forked) in a child.
    pub fn disk_of(&self, path: &Path) -> io::Result<Disk> {
        let stack = Stack::of_path(&Machine::this(), path)?;
        let record = self.shared.disk_on(stack, None, || path.to_owned())?;
        Ok(Disk::of(&self.shared, &record))
    }

    /// [`Scheduler::disk_of`] for an open file or directory, by its mount. The disk of a mount is
    /// looked up at most once a second, and after each [reload](Self::reload). The result is cached
    /// for 1024 mounts.
    ///
    /// # Errors
    /// As for [`Scheduler::disk_of`].
    pub fn disk_of_file(&self, file: impl AsFd) -> io::Result<Disk> {
        let (now, stat) = (Clock::of_process().now(), FileStat::of_file(&file)?);
        if let Some(record) = self.shared.disk_known(&stat, now)? {
            return Ok(Disk::of(&self.shared, &record));
        }
        let stack = Stack::of_file(&Machine::this(), &file)?;
        let record = self.shared.disk_on(stack, Some((stat, now)), || {
            let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            std::fs::read_link(link).unwrap_or_default()
        })?;
        Ok(Disk::of(&self.shared, &record))
    }
}

/// Makes a scheduler for the disks in the text of an io-properties file.
impl FromStr for Scheduler {
    type Err = SchedulerError;

    fn from_str(text: &str) -> Result<Self, SchedulerError> {
        Self::builder().properties(&Properties::parse("io-properties", text)?).build()
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(registry) = self.shared.registry() else {
            return f.debug_struct("Scheduler").finish_non_exhaustive();
        };
        let disks: Vec<_> = registry.disks.iter().map(|disk| &disk.name).collect();
        let classes: Vec<_> = registry.classes.iter().map(|class| &class.name).collect();
        f.debug_struct("Scheduler").field("disks", &disks).field("classes", &classes).finish()
    }
}
