//! Disks of schedulers, grouped by common devices below them.

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

/// A disk, and its admitted bytes at the last update.
#[derive(Debug)]
struct AdmittedDisk {
    disk: Weak<DiskRecord>,
    counted: [u64; 4],
}

/// Disks on the same devices, of different schedulers or of two entries for one device. They are
/// counted together, because the kernel's counters do not tell them apart.
#[derive(Debug)]
pub(super) struct Unit {
    disks: Vec<AdmittedDisk>,
    pub(super) devices: Vec<Device>,
    pub(super) ledgers: [Ledger; 3],
    /// Why the traffic of the devices is unknown.
    unknown: Option<String>,
    pub(super) minute: Minute,
}

/// The bytes since the last update.
pub(super) struct Step {
    /// The bytes of the devices; `None` if they cannot be read.
    pub(super) done: Option<[u64; 3]>,
    /// The bytes of the permits of all its disks.
    pub(super) admitted: [u64; 3],
}

impl Unit {
    pub(super) fn new(disk: &Arc<DiskRecord>, devices: Vec<Device>, unknown: String) -> Self {
        let admitted = AdmittedDisk { disk: Arc::downgrade(disk), counted: disk.bytes() };
        Self {
            disks: vec![admitted],
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
        let same_disk = |of: &AdmittedDisk| other.disks.iter().any(|it| it.disk.ptr_eq(&of.disk));
        let same_device = |of: &Device| other.devices.iter().any(|it| it.disk == of.disk);
        self.disks.iter().any(same_disk) || self.devices.iter().any(same_device)
    }

    /// Takes over the disks and devices of `other`.
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

    /// The disks that a scheduler still has.
    pub(super) fn upgraded(&self) -> Vec<Arc<DiskRecord>> {
        self.disks.iter().filter_map(|of| of.disk.upgrade()).collect()
    }

    /// Whether a scheduler still has one of the disks.
    pub(super) fn is_used(&mut self) -> bool {
        self.disks.retain(|of| of.disk.strong_count() > 0);
        !self.disks.is_empty()
    }

    /// The dirty bytes of its writers, which will be admitted later.
    pub(super) fn dirty_of_writers(&self) -> u64 {
        let disks = self.disks.iter().filter_map(|of| of.disk.upgrade());
        disks.map(|disk| disk.dirty_limits.total()).sum()
    }

    /// The bytes since the last update. The devices are read first, so that they are behind the
    /// admitted bytes and not ahead.
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

    /// Ends a second.
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
