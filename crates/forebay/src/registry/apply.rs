//! Application of a configuration to the disks of a scheduler, at its start and at a reload.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use forebay_block::{Machine, Stack};
use forebay_core::DiskModel;

use super::Registry;
use super::config::DiskConfig;
use super::disk::DiskRecord;
use super::error::SchedulerError;
use super::layout::{DEFAULT_DISK, Layout};
use crate::messages;
use crate::properties::{DISKS_MAX, Device, Sharing, TargetBelowBase};
use crate::siblings::Segment;

/// A configured disk whose figures and paths are valid.
pub(crate) struct Checked<'a> {
    config: &'a DiskConfig,
    /// The devices below its mountpoints.
    stacks: Vec<Stack>,
    model: DiskModel,
    segment: Option<Segment>,
}

/// A disk, and the devices below its mountpoints.
pub(crate) type Applied = (Arc<DiskRecord>, Vec<Stack>);

impl Registry {
    /// Applies the figures of `checked`. Known disks, found by device or by name, get another
    /// model, and others are added. Returns the disks with the devices below them. Their queues are
    /// to be [woken](DiskRecord::wake_queues) without the registry's lock. Also returns removed
    /// disks, which are to be dropped without that lock. These are disks with mountpoints that are
    /// no longer configured, and that nobody uses.
    ///
    /// If it fails, nothing has changed.
    pub(crate) fn apply(
        &mut self,
        checked: Vec<Checked<'_>>,
        layout: Layout,
    ) -> Result<(Vec<Applied>, Vec<Arc<DiskRecord>>), SchedulerError> {
        // These disks are in use from here on, so they are not removed as unused.
        let known: Vec<_> = checked.iter().map(|disk| self.known(disk)).collect();
        self.lookups.forget();
        let gone = self.unused();
        self.check_together(&checked, &known, &gone, layout)?;
        let stays = |disk: &Arc<DiskRecord>| !gone.iter().any(|other| Arc::ptr_eq(other, disk));
        self.coverage.retain(stays);
        self.disks.retain(stays);
        let mut applied = Vec::new();
        for (Checked { config, stacks, model, segment }, known) in checked.into_iter().zip(known) {
            config.warnings().for_each(messages::warn);
            let disk = if let Some(disk) = known {
                let model = config.properties.priced(model, &disk.policy, self.parts);
                for group in disk.groups() {
                    if let Some(base) = config.properties.measured.base_latency {
                        group.io.set_base_latency(base);
                    }
                    group.set_model(model.clone());
                    group.io.set_latency_target(config.properties.latency_target);
                }
                disk
            } else {
                let rules = config.rules();
                let model = config.properties.priced(model, &rules.policy, self.parts);
                self.add_disk(&config.name, &model, &rules, layout)?
            };
            for group in disk.groups() {
                group.io.set_ceiling(config.properties.measured.ceiling);
            }
            disk.set_sharing(&config.properties.sharing, segment);
            disk.set_rates(config.properties.rates());
            disk.set_sector(config.properties.physical_block_size);
            stacks.iter().for_each(|stack| self.coverage.add(stack, &disk));
            applied.push((disk, stacks));
        }
        Ok((applied, gone))
    }

    /// The disks with a mountpoint that only the registry holds. They are not in this reload, not
    /// the first disk, and no program has a handle or a file of them.
    fn unused(&self) -> Vec<Arc<DiskRecord>> {
        let is_unused = |disk: &&Arc<DiskRecord>| {
            let covered = self.coverage.disks().filter(|other| Arc::ptr_eq(other, disk)).count();
            covered > 0 && Arc::strong_count(disk) == covered + 1
        };
        self.disks.iter().filter(is_unused).cloned().collect()
    }

    fn known(&self, disk: &Checked<'_>) -> Option<Arc<DiskRecord>> {
        let mut stacks = disk.stacks.iter();
        let by_device = stacks.find_map(|stack| self.coverage.by_device(stack.number));
        by_device.or_else(|| self.disk(&disk.config.name)).cloned()
    }

    /// Checks that there is room for the new disks, and that no known disk is configured twice.
    fn check_together(
        &self,
        checked: &[Checked<'_>],
        known: &[Option<Arc<DiskRecord>>],
        gone: &[Arc<DiskRecord>],
        layout: Layout,
    ) -> Result<(), SchedulerError> {
        let mut meant: HashSet<&str> = HashSet::from([DEFAULT_DISK]);
        for (disk, known) in checked.iter().zip(known) {
            let name = known.as_ref().map_or(&disk.config.name, |known| &known.name);
            if !meant.insert(name) {
                return Err(SchedulerError::NameTwice { name: name.clone() });
            }
            let duplex = disk.config.properties.duplex;
            if known.as_ref().is_some_and(|known| known.is_duplex() != duplex) {
                return Err(SchedulerError::Duplex { disk: name.clone(), duplex });
            }
        }
        let present = self.disks.iter().filter(|disk| disk.name != DEFAULT_DISK).count();
        let new = checked.iter().zip(known).filter(|(_, known)| known.is_none());
        let count = present - gone.len() + new.clone().count();
        let queues = |disk: &Checked<'_>| if disk.config.properties.duplex { 2 } else { 1 };
        let places: usize = new.map(|(disk, _)| layout.io_groups * queues(disk)).sum();
        if count > DISKS_MAX || places > self.slots.free() {
            return Err(SchedulerError::DisksMax { count });
        }
        Ok(())
    }
}

/// Checks each disk, and that no two of them share a device. It looks up mountpoints, so it must
/// not be called under a lock.
pub(crate) fn check(disks: &[DiskConfig], parts: u64) -> Result<Vec<Checked<'_>>, SchedulerError> {
    let mut owners: HashMap<Device, &str> = HashMap::new();
    let mut checked = Vec::new();
    let machine = Machine::this();
    for config in disks {
        let name = &config.name;
        let model = config.model(parts);
        let model = model.map_err(|source| SchedulerError::Rates { disk: name.clone(), source })?;
        TargetBelowBase::check(config.properties.latency_target, config.base_latency())
            .map_err(|source| SchedulerError::LatencyTarget { disk: name.clone(), source })?;
        config.properties.check_figures(name)?;
        let mut stacks = Vec::new();
        for mountpoint in &config.properties.mountpoints {
            let stack = Stack::of_path(&machine, mountpoint).map_err(|source| {
                let mountpoint = mountpoint.clone();
                SchedulerError::Mountpoint { disk: name.clone(), mountpoint, source }
            })?;
            let device = stack.number;
            match owners.insert(device, name) {
                Some(first) if first != name => {
                    let (first, second) = (first.to_owned(), name.clone());
                    return Err(SchedulerError::DeviceTwice { first, second, device });
                }
                _ => stacks.push(stack),
            }
        }
        let segment = match &config.properties.sharing {
            Sharing::Segment { path: Some(path) } => Segment::open(path, false).map(Some),
            Sharing::Segment { path: None } => Segment::of_disk(&machine, &stacks).map(Some),
            _ => Ok(None),
        };
        let segment =
            segment.map_err(|source| SchedulerError::Shared { disk: name.clone(), source })?;
        checked.push(Checked { config, stacks, model, segment });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use forebay_block::{DeviceNumber, Layer};
    use forebay_core::{DiskRates, Op};

    use super::*;
    use crate::events::Hook;
    use crate::io_thread::IoThreadsConfig;

    const RATES: DiskRates = DiskRates {
        read_iops: 1000,
        write_iops: 1000,
        read_bandwidth: 100_000_000,
        write_bandwidth: 100_000_000,
    };

    fn layout() -> Layout {
        let io_threads = IoThreadsConfig::default();
        Layout { io_groups: 1, shards_max: 1, requests_max: 100, io_threads }
    }

    fn registry() -> Registry {
        Registry::new(2 * DISKS_MAX, 1, &Hook::default())
    }

    /// Reloads with one disk on each of these devices.
    fn reload(
        registry: &mut Registry,
        minors: std::ops::Range<u32>,
    ) -> Result<Vec<Applied>, SchedulerError> {
        let named = |minor| DiskConfig::new(format!("disk {minor}"), RATES);
        let configs: Vec<_> = minors.clone().map(named).collect();
        let checked = configs.iter().zip(minors).map(|(config, minor)| {
            let number = DeviceNumber { major: 4001, minor };
            let below = DeviceNumber { major: 4002, minor };
            let layers = vec![Layer::Device(number), Layer::Device(below)];
            let stack = Stack { number, mount: None, layers };
            Checked { config, stacks: vec![stack], model: config.model(1).unwrap(), segment: None }
        });
        registry.apply(checked.collect(), layout()).map(|(applied, _)| applied)
    }

    fn names(registry: &Registry) -> Vec<&str> {
        registry.disks.iter().map(|disk| disk.name.as_str()).collect()
    }

    #[test]
    fn a_disk_that_is_not_named_any_more_gives_its_place_back() {
        let mut registry = registry();
        for n in 0..1000 {
            let minor = n * 2;
            drop(reload(&mut registry, minor..minor + 1 + n % 2).unwrap());
            assert_eq!(registry.disks.len(), 1 + n as usize % 2, "{n}");
        }
        // All at once, too.
        for n in 0..5 {
            let count = DISKS_MAX as u32;
            drop(reload(&mut registry, n * count..(n + 1) * count).unwrap());
            assert_eq!(registry.disks.len(), DISKS_MAX);
        }
    }

    #[test]
    fn a_disk_stays_while_anybody_holds_it_or_has_named_it_without_a_mountpoint() {
        let mut registry = registry();
        let config = DiskConfig::new("by name", RATES);
        let checked = Checked {
            config: &config,
            stacks: vec![],
            model: config.model(1).unwrap(),
            segment: None,
        };
        drop(registry.apply(vec![checked], layout()).unwrap());
        let mut held = reload(&mut registry, 0..1).unwrap();
        let disk = held.remove(0).0;
        drop(reload(&mut registry, 1..2).unwrap());
        assert_eq!(names(&registry), ["by name", "disk 0", "disk 1"]);
        drop(disk);
        drop(reload(&mut registry, 2..3).unwrap());
        assert_eq!(names(&registry), ["by name", "disk 2"]);
    }

    #[test]
    fn a_reload_that_is_refused_keeps_all_disks() {
        let mut registry = registry();
        drop(reload(&mut registry, 0..3).unwrap());
        assert!(reload(&mut registry, 100..101 + DISKS_MAX as u32).is_err());
        assert_eq!(names(&registry), ["disk 0", "disk 1", "disk 2"]);
        let found = registry.coverage.by_device(DeviceNumber { major: 4001, minor: 2 });
        assert_eq!(found.map(|disk| disk.name.as_str()), Some("disk 2"));
    }

    #[test]
    fn the_place_of_a_group_of_which_a_permit_is_held_is_not_given_again() {
        let mut registry = registry();
        let removed = registry.add_class("removed", None, 10).unwrap();
        let applied = reload(&mut registry, 0..1).unwrap();
        let group = Arc::clone(applied[0].0.here().of(Op::Read));
        drop(applied);
        registry.remove_class(&removed).unwrap();
        let class = registry.add_class("class", None, 10).unwrap();
        for n in 1..200 {
            let applied = reload(&mut registry, n..n + 1).unwrap();
            let other = applied[0].0.here().of(Op::Read);
            assert_ne!(other.slot, group.slot);
            assert!(class.id(other.slot).is_some());
            assert_eq!(removed.id(other.slot), None);
        }
        let slot = group.slot;
        drop(group);
        let applied = reload(&mut registry, 500..501).unwrap();
        assert_eq!(applied[0].0.here().of(Op::Read).slot, slot);
        assert_eq!(removed.id(slot), None, "the class was removed before");
    }
}
