//! The disks and classes of a scheduler, with every class on every disk; its configuration; and the
//! state that all its handles share.

mod apply;
mod claims;
mod class;
mod config;
mod disk;
mod error;
mod layout;
mod lookups;
mod shared;
mod sharing;
mod slots;
mod unlisted;

use std::sync::Arc;

use forebay_core::{DiskModel, GroupConfig, IoGroup, Limits, Op, Policy};

pub(crate) use self::apply::{Applied, check};
pub(crate) use self::class::{ClassRecord, GroupRecord};
pub use self::config::DiskConfig;
pub(crate) use self::config::Rules;
pub(crate) use self::disk::DiskRecord;
pub use self::error::{ClassError, SchedulerError};
pub(crate) use self::layout::Layout;
pub use self::layout::{DEFAULT_CLASS, DEFAULT_DISK, IO_GROUPS_MAX};
pub(crate) use self::shared::{Beginning, Shared};
pub(crate) use self::sharing::start as start_sharing;
pub(crate) use self::unlisted::UnlistedRule;
pub use self::unlisted::{Unlisted, UnlistedError};

use self::class::{Node, Record, part_of};
use self::lookups::Lookups;
use self::slots::Slots;
use crate::disk_groups::DiskGroups;
use crate::events::Hook;
use crate::io_queues::{IoQueues, LOCAL_DEPTH_MIN};
use crate::io_thread::IoThreadsConfig;
use crate::messages;
use crate::permit::DiskGroup;
use crate::properties::{Coverage, DISKS_MAX};

/// The length of a request that is small for every disk, in bytes.
const SMALL_LEN: u64 = 4096;

/// The state that changes at run time, behind the scheduler's lock.
pub(crate) struct Registry {
    pub(crate) disks: Vec<Arc<DiskRecord>>,
    /// The devices below the disks.
    pub(crate) coverage: Coverage<Arc<DiskRecord>>,
    pub(crate) lookups: Lookups,
    pub(crate) classes: Vec<Arc<ClassRecord>>,
    pub(crate) groups: Vec<Arc<GroupRecord>>,
    /// The places for I/O groups in the records of classes.
    slots: Slots,
    /// The number of parts of each disk.
    parts: u64,
    /// Receives the events of the disks.
    hook: Hook,
}

impl Registry {
    pub(crate) fn new(slots: usize, parts: u64, hook: &Hook) -> Self {
        Self {
            disks: Vec::new(),
            coverage: Coverage::default(),
            lookups: Lookups::default(),
            classes: Vec::new(),
            groups: Vec::new(),
            slots: Slots::new(slots),
            parts,
            hook: hook.clone(),
        }
    }

    /// Adds a disk, with all classes on it.
    pub(crate) fn add_disk(
        &mut self,
        name: &str,
        model: &DiskModel,
        rules: &Rules,
        layout: Layout,
    ) -> Result<Arc<DiskRecord>, SchedulerError> {
        let hook = self.hook.clone();
        let mut group = || {
            let mut config = GroupConfig::new(model.clone(), rules.policy);
            config.order = rules.order;
            config.latency_target = rules.latency_target;
            config.control = rules.control;
            config.shards_max = layout.shards_max;
            config.requests_max = layout.requests_max;
            let make = |slot| Arc::new(DiskGroup::new(name, config, slot, hook.clone()));
            self.slots.take(make).ok_or(SchedulerError::DisksMax { count: DISKS_MAX + 1 })
        };
        let mut nodes = Vec::with_capacity(layout.io_groups);
        for _ in 0..layout.io_groups {
            let others = if rules.duplex { Some(group()?) } else { None };
            nodes.push(DiskGroups::new(group()?, others));
        }
        let depth = nodes.first().map_or(0, |node| depth(node, rules.policy, model));
        let io_threads = io_threads(name, depth, layout);
        let disk = DiskRecord::new(name.to_owned(), rules.policy, nodes, &io_threads);
        let disk = Arc::new(disk);
        for group in disk.groups() {
            // A group of classes comes after its parent.
            for record in &self.groups {
                refused(record, record.place(group, self.parts))?;
            }
            for record in &self.classes {
                refused(record, record.place(group, self.parts))?;
            }
        }
        self.disks.push(Arc::clone(&disk));
        Ok(disk)
    }

    pub(crate) fn disk(&self, name: &str) -> Option<&Arc<DiskRecord>> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    pub(crate) fn add_class(
        &mut self,
        name: &str,
        parent: Option<&Arc<GroupRecord>>,
        shares: u32,
    ) -> Result<Arc<ClassRecord>, ClassError> {
        let record = self.placed(name, parent, shares)?;
        self.classes.push(Arc::clone(&record));
        Ok(record)
    }

    pub(crate) fn add_class_group(
        &mut self,
        name: &str,
        parent: Option<&Arc<GroupRecord>>,
        shares: u32,
    ) -> Result<Arc<GroupRecord>, ClassError> {
        let record = self.placed(name, parent, shares)?;
        self.groups.push(Arc::clone(&record));
        Ok(record)
    }

    /// Removes a class from all disks, or from none.
    pub(crate) fn remove_class(&mut self, record: &Arc<ClassRecord>) -> Result<(), ClassError> {
        for group in self.disks.iter().flat_map(|disk| disk.groups()) {
            if let Some(id) = record.id(group.slot) {
                group.all_metrics().for_each(|queue| queue.note_removed(id));
            }
        }
        self.displace(record)?;
        record.forget_places();
        self.classes.retain(|class| !Arc::ptr_eq(class, record));
        Ok(())
    }

    /// Removes a group of classes from all disks, or from none.
    pub(crate) fn remove_group(&mut self, record: &Arc<GroupRecord>) -> Result<(), ClassError> {
        self.displace(record)?;
        record.forget_places();
        self.groups.retain(|group| !Arc::ptr_eq(group, record));
        Ok(())
    }

    pub(crate) fn set_shares<Id: Node>(
        &self,
        record: &Record<Id>,
        shares: u32,
    ) -> Result<(), ClassError> {
        self.change(record, |id, io| io.set_shares(id, shares))?;
        record.settings.lock().shares = shares;
        Ok(())
    }

    pub(crate) fn set_limits<Id: Node>(
        &self,
        record: &Record<Id>,
        limits: &Limits,
    ) -> Result<(), ClassError> {
        let part = part_of(limits, self.parts);
        self.change(record, |id, io| io.set_limits(id, &part))?;
        record.settings.lock().limits = *limits;
        Ok(())
    }

    /// Applies a change to a record in all I/O groups, until one refuses it.
    fn change<Id: Node>(
        &self,
        record: &Record<Id>,
        change: impl Fn(Id, &IoGroup) -> Result<(), forebay_core::ClassError>,
    ) -> Result<(), ClassError> {
        self.io_groups().try_for_each(|group| {
            let id = record.id(group.slot).ok_or(forebay_core::ClassError::Unknown);
            refused(record, id.and_then(|id| change(id, &group.io)))
        })
    }

    fn io_groups(&self) -> impl Iterator<Item = &DiskGroup> {
        self.disks.iter().flat_map(|disk| disk.groups().map(Arc::as_ref))
    }

    /// Adds a new class or group of classes to all disks.
    fn placed<Id: Node>(
        &self,
        name: &str,
        parent: Option<&Arc<GroupRecord>>,
        shares: u32,
    ) -> Result<Arc<Record<Id>>, ClassError> {
        let taken = self.classes.iter().any(|class| class.name == name)
            || self.groups.iter().any(|group| group.name == name);
        if taken {
            return Err(ClassError::NameTaken { name: name.to_owned() });
        }
        let record = Record::new(name.to_owned(), parent.cloned(), shares, self.slots.count());
        let placed = self.io_groups().try_for_each(|group| record.place(group, self.parts));
        if let Err(source) = placed {
            // Nobody has a handle of it yet, so it has no work that prevents its removal.
            for group in self.io_groups() {
                let _ = record.displace(&group.io, group.slot);
            }
            return refused(&record, Err(source)).map(|()| Arc::new(record));
        }
        Ok(Arc::new(record))
    }

    /// Removes a record from all disks, or from none if one refuses.
    fn displace<Id: Node>(&self, record: &Record<Id>) -> Result<(), ClassError> {
        // After a refusal a record is added again, with new counters. The check before makes that
        // rare: it happens only if work arrives between the two steps.
        self.change(record, |id, io| io.check_removable(id))?;
        let mut displaced = Vec::new();
        for group in self.io_groups() {
            if let Err(source) = record.displace(&group.io, group.slot) {
                for group in displaced {
                    let group: &DiskGroup = group;
                    refused(record, record.place(group, self.parts))?;
                }
                return refused(record, Err(source));
            }
            displaced.push(group);
        }
        Ok(())
    }
}

/// The number of requests of 4 KiB that keep a disk busy, as far as its figures tell.
fn depth(groups: &DiskGroups, policy: Policy, model: &DiskModel) -> u64 {
    match policy {
        Policy::Concurrency { requests } => requests.into(),
        _ => {
            let window = groups.of(Op::Read).io.busy_window();
            window.units().div_ceil(model.max_cost(SMALL_LEN).units().max(1))
        }
    }
}

/// The I/O threads of a disk of this depth: the requested number, or fewer.
fn io_threads(disk: &str, depth: u64, layout: Layout) -> IoThreadsConfig {
    let configured = layout.io_threads.io_queues;
    let wanted = u32::try_from(configured).unwrap_or(u32::MAX);
    let queues = IoQueues::recommended(depth, wanted, 1);
    if queues.count < wanted {
        messages::info(format!(
            "the disk `{disk}` gets {} I/O threads instead of {configured}: {depth} requests of 4 KiB \
             fill its window, and a queue needs {LOCAL_DEPTH_MIN} of them",
            queues.count
        ));
    }
    IoThreadsConfig { io_queues: queues.count as usize, ..layout.io_threads }
}

fn refused<Id: Node>(
    record: &Record<Id>,
    result: Result<(), forebay_core::ClassError>,
) -> Result<(), ClassError> {
    result.map_err(|source| ClassError::Refused { name: record.name.clone(), source })
}

#[cfg(test)]
mod tests {
    use forebay_core::{Control, ServiceOrder, Time};

    use super::*;

    /// The requests of a class that each I/O group dispatches in a second.
    fn served(registry: &Registry, class: &ClassRecord) -> Vec<usize> {
        let served = registry.io_groups().map(|group| {
            let mut queue = group.io.join().unwrap();
            let id = class.id(group.slot).unwrap();
            for _ in 0..500 {
                queue.enqueue(Time::ZERO, id, Op::Read, 4096).unwrap();
            }
            (0..1000)
                .filter(|ms| queue.poll_dispatch(Time::from_nanos(ms * 1_000_000)).is_some())
                .count()
        });
        served.collect()
    }

    #[test]
    fn limits_are_divided_with_the_disk() {
        let mut registry = Registry::new(8, 4, &Hook::default());
        let io_threads = IoThreadsConfig::default();
        let layout = Layout { io_groups: 4, shards_max: 1, requests_max: 1000, io_threads };
        let rules = Rules {
            policy: Policy::Unlimited,
            order: ServiceOrder::StartTime,
            duplex: false,
            latency_target: None,
            control: Control::Rates,
        };
        let add = |registry: &mut Registry, name| {
            registry.add_disk(name, &DiskModel::unmeasured(), &rules, layout).unwrap();
        };
        add(&mut registry, "before");
        let class = registry.add_class("class", None, 100).unwrap();
        let limits = Limits { operations_per_second: Some(400), ..Limits::default() };
        registry.set_limits(&class, &limits).unwrap();
        add(&mut registry, "behind");
        let served = served(&registry, &class);
        assert!(served.iter().all(|count| (95..=115).contains(count)), "{served:?}");
        assert_eq!(class.settings.lock().limits, limits);
    }
}
