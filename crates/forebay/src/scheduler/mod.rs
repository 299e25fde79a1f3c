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

/// Disks, each with one budget, and the classes that share them. Cheap to
/// clone; every clone is the same scheduler, usable from any thread.
///
/// It lives as long as anything that was made with it: a class, a disk, a
/// permit, a future that waits. A caller that waits when the last `Scheduler` is
/// dropped is still served.
#[derive(Clone)]
pub struct Scheduler {
    shared: Arc<Shared>,
}

impl Scheduler {
    /// A scheduler for the disks of the io-properties file, or the
    /// `forebay.yaml`, at `path`: see [`Properties::load`].
    ///
    /// # Errors
    /// The file cannot be read or is not as it must be, a mountpoint cannot be
    /// looked up, or two entries are on one device.
    pub fn from_file(path: &Path) -> Result<Self, SchedulerError> {
        Self::builder().properties(&Properties::load(path)?).build()
    }

    /// The one of these disks, which lie on `applied`.
    fn new(shared: Shared, applied: &[Applied]) -> Self {
        let shared = Arc::new(shared);
        accounting::watch(&shared, applied);
        start_sharing(&shared, applied);
        Self { shared }
    }

    /// The one that a handle belongs to.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Takes over the figures of `properties` while everything goes on: what
    /// is queued keeps its cost, what comes later has the new one. An entry is
    /// known by the device it is on, or by its first mountpoint. New ones
    /// become disks, with all classes. A disk with a mountpoint that is not
    /// listed any more goes with its counters, unless it is the first one, that
    /// of [unlisted](SchedulerBuilder::unlisted) files, or held: by a [`Disk`],
    /// a class [on](Class::on) it, or a file. Then it stays as it is, until a
    /// reload after that. Permits of it stay valid.
    ///
    /// # Errors
    /// As for [`SchedulerBuilder::build`]; nothing has changed then.
    pub fn reload(&self, properties: &Properties) -> Result<(), SchedulerError> {
        let disks: Vec<_> = properties.disks.iter().map(DiskConfig::from_properties).collect();
        let applied = self.shared.reload(&disks)?;
        accounting::watch(&self.shared, &applied);
        start_sharing(&self.shared, &applied);
        Ok(())
    }

    /// Adds a class of `shares` (1 to [`SHARES_MAX`](forebay_core::SHARES_MAX))
    /// on all disks.
    ///
    /// # Errors
    /// The name is in use, the shares are out of range, or there are
    /// [`CLASSES_MAX`](forebay_core::CLASSES_MAX) classes already.
    pub fn add_class(&self, name: &str, shares: u32) -> Result<Class, ClassError> {
        let record = self.shared.registry()?.add_class(name, None, shares)?;
        Ok(Class::of(&self.shared, &record))
    }

    /// Adds a group of classes, which competes with classes and other groups
    /// as one class of `shares`.
    ///
    /// # Errors
    /// The name is in use, the shares are out of range, or there are
    /// [`CLASS_GROUPS_MAX`](forebay_core::CLASS_GROUPS_MAX) groups already.
    pub fn add_class_group(&self, name: &str, shares: u32) -> Result<ClassGroup, ClassError> {
        let record = self.shared.registry()?.add_class_group(name, None, shares)?;
        Ok(ClassGroup::of(&self.shared, record))
    }

    /// Removes a class from all disks. Permits of it that are in use stay
    /// valid; its handles are not accepted any more. Its counters go with it: those of a class of
    /// the same name begin at zero, as after a restart; a disk's totals stay.
    ///
    /// A class that is still asked in may have work queued at any time: stop
    /// its threads or tasks first, or drop their requests.
    ///
    /// # Errors
    /// It has work queued on a disk, was removed before, belongs to another
    /// scheduler, or is the one of untagged work. It is unchanged then.
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

    /// The class of that name; none in a forked child.
    pub fn class(&self, name: &str) -> Option<Class> {
        let registry = self.shared.registry().ok()?;
        let record = registry.classes.iter().find(|class| class.name == name)?;
        Some(Class::of(&self.shared, record))
    }

    /// All classes, in the order in which they were added; none in a forked
    /// child.
    pub fn classes(&self) -> Vec<Class> {
        let Ok(registry) = self.shared.registry() else { return Vec::new() };
        registry.classes.iter().map(|record| Class::of(&self.shared, record)).collect()
    }

    /// The class of work that names none and whose thread has entered none.
    pub fn default_class(&self) -> Class {
        Class::of(&self.shared, &self.shared.untagged)
    }

    /// The class of what the calling thread does without naming one: the
    /// innermost that it has [entered](Class::enter), else
    /// [the default one](Self::default_class).
    pub fn current_class(&self) -> Class {
        innermost(&self.shared).unwrap_or_else(|| self.default_class())
    }

    /// All disks, the default one among them; none in a forked child.
    pub fn disks(&self) -> Vec<Disk> {
        let Ok(registry) = self.shared.registry() else { return Vec::new() };
        registry.disks.iter().map(|record| Disk::of(&self.shared, record)).collect()
    }

    /// The disk of that name; none in a forked child.
    pub fn disk(&self, name: &str) -> Option<Disk> {
        let registry = self.shared.registry().ok()?;
        registry.disk(name).map(|record| Disk::of(&self.shared, record))
    }

    /// The disk of devices that are not listed. Nothing is known of them, so
    /// its budget is open; classes and counters work as on any other.
    pub fn default_disk(&self) -> Disk {
        Disk::of(&self.shared, &self.shared.default_disk)
    }

    /// The disk that `path` is on: the one with a mountpoint on the same file
    /// system, else on the nearest device below that.
    ///
    /// The way down leads from a partition to its whole disk, from a volume or
    /// an array (LVM, dm, md, btrfs) to its members, and from a loop device to
    /// the disk of its file. An overlay is on the disk of its upper directory,
    /// where that can be seen from here. The datasets of a ZFS pool are on one
    /// disk. So all partitions of a disk that is listed belong to it, whichever
    /// of them is a mountpoint. What no entry covers goes by
    /// [`SchedulerBuilder::unlisted`].
    ///
    /// A mount that another machine or a program answers for is asked nothing:
    /// one that hangs does not hold up this, nor a reload, and what is in it
    /// need not exist.
    ///
    /// # Errors
    /// `path` cannot be looked up; an [`UnlistedError`](crate::UnlistedError), if files that no entry
    /// covers are refused; [`Forked`](crate::Forked) in a child.
    pub fn disk_of(&self, path: &Path) -> io::Result<Disk> {
        let stack = Stack::of_path(&Machine::this(), path)?;
        let record = self.shared.disk_on(stack, None, || path.to_owned())?;
        Ok(Disk::of(&self.shared, &record))
    }

    /// [`Scheduler::disk_of`] an open file or directory, known by its mount
    /// wherever it was opened. What the mount lies on is looked up once a
    /// second at most, and after each [reload](Self::reload); it is remembered
    /// of 1024 mounts.
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

/// A scheduler for the disks of the text of an io-properties file.
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
