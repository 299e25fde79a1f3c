//! The state that all handles of a scheduler share.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_block::{FileStat, Stack};
use forebay_core::Time;

use super::Registry;
use super::apply::{Applied, check};
use super::claims::Claims;
use super::class::{ClassRecord, Node, Record, Settings};
use super::config::DiskConfig;
use super::disk::DiskRecord;
use super::error::{ClassError, SchedulerError};
use super::layout::Layout;
use super::unlisted::UnlistedRule;
use crate::sys::fork::{Forked, OfProcess};
use crate::sys::lock::{HereGuard, Lock};

/// The disks and classes of a scheduler, for all its handles.
pub(crate) struct Shared {
    /// The disk of classes unless another one is chosen.
    pub(crate) first: Arc<DiskRecord>,
    pub(crate) default_disk: Arc<DiskRecord>,
    pub(crate) untagged: Arc<ClassRecord>,
    pub(crate) unlisted: UnlistedRule,
    claims: Claims,
    layout: Layout,
    registry: OfProcess<Lock<Registry>>,
}

/// The records that exist from the beginning, and the rule for files without an entry.
pub(crate) struct Beginning {
    pub(crate) first: Arc<DiskRecord>,
    pub(crate) default_disk: Arc<DiskRecord>,
    pub(crate) untagged: Arc<ClassRecord>,
    pub(crate) unlisted: UnlistedRule,
    pub(crate) layout: Layout,
}

impl Shared {
    /// The state of a new scheduler, whose configured disks are `applied`.
    pub(crate) fn new(beginning: Beginning, registry: Registry, applied: &[Applied]) -> Self {
        let Beginning { first, default_disk, untagged, unlisted, layout } = beginning;
        let (claims, registry) = (Claims::new(), OfProcess::new(Lock::new(registry)));
        let shared = Self { first, default_disk, untagged, unlisted, claims, layout, registry };
        shared.claim(applied);
        shared
    }

    /// Applies the configuration `disks`. Returns the disks with the devices below them.
    pub(crate) fn reload(&self, disks: &[DiskConfig]) -> Result<Vec<Applied>, SchedulerError> {
        self.registry.process().check()?;
        let checked = check(disks, self.layout.io_groups as u64)?;
        let (applied, gone) = self.registry()?.apply(checked, self.layout)?;
        gone.iter().for_each(|disk| self.claims.remove(&disk.name));
        // Dropped without the lock, because this waits for the I/O threads of the disks.
        drop(gone);
        applied.iter().for_each(|(disk, _)| disk.wake_queues());
        self.claim(&applied);
        Ok(applied)
    }

    /// Locks the registry. Fails in a child, because the lock may have been held at the fork.
    pub(crate) fn registry(&self) -> Result<HereGuard<'_, Registry>, Forked> {
        self.registry.process().check()?;
        Ok(self.registry.lock_here())
    }

    /// The present settings of a class or a group of classes. The defaults in a child.
    pub(crate) fn settings_of<Id: Node>(&self, record: &Record<Id>) -> Settings {
        if self.registry.process().is_here() {
            *record.settings.lock()
        } else {
            Settings::default()
        }
    }

    /// Changes classes, and wakes all queues, so that they notice the change. They are woken
    /// without the lock, because wakers run code of others.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&Registry) -> Result<(), ClassError>,
    ) -> Result<(), ClassError> {
        let registry = self.registry()?;
        let changed = change(&registry);
        let disks = registry.disks.clone();
        drop(registry);
        for group in disks.iter().flat_map(|disk| disk.groups()) {
            group.wakers.wake_all();
        }
        changed
    }

    /// The disk of a file, if the mounts need not be read for it.
    pub(crate) fn disk_known(
        &self,
        stat: &FileStat,
        now: Time,
    ) -> Result<Option<Arc<DiskRecord>>, Forked> {
        let registry = self.registry()?;
        if stat.number.is_block()
            && let Some(record) = registry.coverage.by_device(stat.number)
        {
            return Ok(Some(Arc::clone(record)));
        }
        let found = registry.lookups.get(stat, now);
        Ok(found.and_then(|found| found.or_else(|| self.unlisted.disk_again()).cloned()))
    }

    /// The disk of a file on `stack`. With the status of the file the result is cached.
    pub(crate) fn disk_on(
        &self,
        stack: Stack,
        stat: Option<(FileStat, Time)>,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<Arc<DiskRecord>> {
        let mut registry = self.registry()?;
        let covering = registry.coverage.of(&stack).cloned();
        if let Some((stat, then)) = stat {
            registry.lookups.add(&stat, then, covering.as_ref());
        }
        drop(registry);
        covering.map_or_else(|| self.unlisted.disk_of(path(), stack), Ok)
    }

    /// Warns of disks with a device in common.
    fn claim(&self, applied: &[Applied]) {
        for (disk, stacks) in applied {
            stacks.iter().for_each(|stack| self.claims.add(&disk.name, stack));
        }
    }
}
