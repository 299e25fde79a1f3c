//! From configured disks to those of a scheduler, when it is made and when it
//! is reloaded.

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
use crate::properties::{DISKS_MAX, Device, TargetBelowBase};

/// A disk whose figures and paths were found to be good.
pub(crate) struct Checked<'a> {
    config: &'a DiskConfig,
    /// What its mountpoints lie on.
    stacks: Vec<Stack>,
    model: DiskModel,
}

/// A disk, and what its mountpoints lie on.
pub(crate) type Applied = (Arc<DiskRecord>, Vec<Stack>);

impl Registry {
    /// Takes over the figures of `checked`: those that are there already, known
    /// by device or by name, get another model, the others are added. Returns
    /// the disks, whose queues are to be [woken](DiskRecord::wake_queues)
    /// without the registry's lock, and what each now lies on.
    ///
    /// Changes nothing if it fails.
    pub(crate) fn apply(
        &mut self,
        checked: Vec<Checked<'_>>,
        layout: Layout,
    ) -> Result<Vec<Applied>, SchedulerError> {
        let known: Vec<_> = checked.iter().map(|disk| self.known(disk)).collect();
        self.check_together(&checked, &known)?;
        self.lookups.forget();
        let mut applied = Vec::new();
        for (Checked { config, stacks, model }, known) in checked.into_iter().zip(known) {
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
            disk.set_rates(config.properties.rates());
            disk.set_sector(config.properties.physical_block_size);
            stacks.iter().for_each(|stack| self.coverage.add(stack, &disk));
            applied.push((disk, stacks));
        }
        Ok(applied)
    }

    fn known(&self, disk: &Checked<'_>) -> Option<Arc<DiskRecord>> {
        let mut stacks = disk.stacks.iter();
        let by_device = stacks.find_map(|stack| self.coverage.listed(stack.number));
        by_device.or_else(|| self.disk(&disk.config.name)).cloned()
    }

    /// Whether there is room for the new ones, and none of the known ones is
    /// meant twice.
    fn check_together(
        &self,
        checked: &[Checked<'_>],
        known: &[Option<Arc<DiskRecord>>],
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
        let count = present + known.iter().filter(|known| known.is_none()).count();
        if count > DISKS_MAX {
            return Err(SchedulerError::DisksMax { count });
        }
        Ok(())
    }
}

/// Checks each disk, and that no two of them have a device in common. Looks up
/// mountpoints: not for who holds a lock.
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
        checked.push(Checked { config, stacks, model });
    }
    Ok(checked)
}
