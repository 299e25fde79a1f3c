//! Disks of schedulers with the devices below them, as far as they belong together.

use std::sync::{Arc, Weak};

use forebay_block::Machine;
use forebay_core::Op;

use super::device::{Device, Reading};
use super::ledger::{Ledger, Outstanding};
use super::warning::Minute;
use crate::metrics::DeviceTraffic;
use crate::registry::DiskRecord;

/// The directions that the kernel counts.
pub(super) const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Discard];
pub(super) const WRITES: usize = 1;

/// A disk, and how many bytes of it were admitted when it was last looked at.
#[derive(Debug)]
struct AdmitForFuture {
    disk: Weak<DiskRecord>,
    counted: [u64; 4],
}

/// Disks that lie on the same devices. Of different schedulers, or two entries for one device,
/// they are seen together: nobody can tell them apart below.
#[derive(Debug)]
pub(super) struct Unit {
    disks: Vec<AdmitForFuture>,
    pub(super) devices: Vec<Device>,
    pub(super) ledgers: [Ledger; 3],
    /// Why nothing is known of what is below.
    unknown: Option<String>,
    pub(super) minute: Minute,
}

/// What was done since the last look.
pub(super) struct Step {
    /// By the devices; nothing where they cannot be seen.
    pub(super) done: Option<[u64; 3]>,
    /// With permits of all its disks.
    pub(super) admitted: [u64; 3],
}

impl Unit {
    pub(super) fn new(disk: &Arc<DiskRecord>, devices: Vec<Device>, unknown: String) -> Self {
        let admitting = AdmitForFuture { disk: Arc::downgrade(disk), counted: disk.bytes() };
        Self {
            disks: vec![admitting],
            devices,
            ledgers: Default::default(),
            unknown: Some(unknown),
            minute: Minute::default(),
        }
    }

    pub(super) fn has(&self, disk: &Arc<DiskRecord>) -> bool {
        self.disks.iter().any(|of| of.disk.as_ptr() == Arc::as_ptr(disk))
    }

    /// Whether they have a disk or a device in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let same_disk = |of: &AdmitForFuture| other.disks.iter().any(|it| it.disk.ptr_eq(&of.disk));
        let same_device = |of: &Device| other.devices.iter().any(|it| it.disk == of.disk);
        self.disks.iter().any(same_disk) || self.devices.iter().any(same_device)
    }

    /// Takes over what `other` has alongside this one.
    pub(super) fn absorb(&mut self, other: Self) {
        self.ledgers.iter_mut().zip(&other.ledgers).for_each(|(to, from)| to.absorb(from));
        for disk in other.disks {
            if !self.disks.iter().any(|of| of.disk.ptr_eq(&disk.disk)) {
                self.disks.push(disk);
            }
        }
        for device in other.devices {
            if !self.devices.iter().any(|of| of.disk == device.disk) {
                self.devices.push(device);
            }
        }
    }

    /// Its disks that some scheduler still has.
    pub(super) fn upgraded(&self) -> Vec<Arc<DiskRecord>> {
        self.disks.iter().filter_map(|of| of.disk.upgrade()).collect()
    }

    /// Whether some scheduler still has it.
    pub(super) fn is_used(&mut self) -> bool {
        self.disks.retain(|of| of.disk.strong_count() > 0);
        !self.disks.is_empty()
    }

    /// What is dirty of its writers, to be admitted yet.
    pub(super) fn dirty_of_writers(&self) -> u64 {
        let disks = self.disks.iter().filter_map(|of| of.disk.upgrade());
        disks.map(|disk| disk.dirty_limits.total()).sum()
    }

    /// What was done since the last look. First the devices, then what was admitted: the disk is
    /// behind rather than ahead.
    pub(super) fn step(&mut self, machine: &Machine) -> Step {
        let mut done = [0; 3];
        let mut unknown = None;
        for device in &mut self.devices {
            match device.read(machine) {
                Reading::Traffic(more) => {
                    done.iter_mut().zip(more).for_each(|(to, from)| *to += from);
                }
                Reading::Unavailable(why) => unknown = Some(why),
            }
        }
        if !self.devices.is_empty() {
            self.unknown = unknown;
        }
        let mut admitted = [0; 3];
        for of in &mut self.disks {
            let Some(disk) = of.disk.upgrade() else { continue };
            let now = disk.bytes();
            let then = std::mem::replace(&mut of.counted, now);
            for (to, op) in admitted.iter_mut().zip(OPS) {
                *to += now[op.index()].saturating_sub(then[op.index()]);
            }
        }
        Step { done: self.unknown.is_none().then_some(done), admitted }
    }

    /// A second has passed.
    pub(super) fn tick(&mut self, own: &[Outstanding; 2]) {
        let [reads, writes, discards] = &mut self.ledgers;
        reads.tick(0);
        writes.tick(own[WRITES].bytes());
        discards.tick(0);
    }

    pub(super) fn traffic(&self, unattributed: u64) -> DeviceTraffic {
        let names: Vec<&str> = self.devices.iter().map(|of| of.disk.name.as_str()).collect();
        let [read, written, discarded] = &self.ledgers;
        DeviceTraffic {
            device: names.join(" and "),
            unknown_because: self.unknown.clone(),
            read: read.total,
            written: written.total,
            discarded: discarded.total,
            unattributed,
            members: self.devices.iter().flat_map(Device::members).cloned().collect(),
        }
    }
}
