//! Block devices, and the disks below them.

use std::path::{Path, PathBuf};

use crate::{DeviceNumber, Machine};

/// More floors than any stack of md, LVM and encryption has.
const DEPTH_MAX: u32 = 8;

/// Of its third generation, which all disks have.
const SATA_BYTES_PER_SECOND: u64 = 600_000_000;

/// A block device as `/sys` shows it.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    /// Its name, such as `nvme0n1p1` or `dm-0`.
    pub name: String,
    /// The name of the whole disk, which differs for a partition.
    pub disk: String,
    /// Its number.
    pub number: DeviceNumber,
    /// The number of the whole disk.
    pub disk_number: DeviceNumber,
    /// What it is made of; nothing for a disk.
    pub below: Vec<Self>,
    kind: Kind,
    /// Where `/sys` describes the whole disk.
    dir: PathBuf,
}

/// How a device comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    Raid { level: String },
    Mapped { name: String, logical: bool },
    Loop { file: String },
}

impl BlockDevice {
    /// The device of this number, with all below it.
    pub fn find(machine: &Machine, number: DeviceNumber) -> Option<Self> {
        let dir = machine.resolve(format!("sys/dev/block/{number}"))?;
        Self::at(machine, &dir, DEPTH_MAX)
    }

    fn at(machine: &Machine, dir: &Path, depth: u32) -> Option<Self> {
        let name = dir.file_name()?.to_str()?.to_owned();
        let number = |dir: &Path| machine.text(dir.join("dev"))?.parse().ok();
        let own = number(dir)?;
        let is_partition = machine.has(dir.join("partition"));
        let dir = if is_partition { dir.parent()? } else { dir };
        let slaves = dir.join("slaves");
        let names = if depth == 0 { Vec::new() } else { machine.names(&slaves) };
        let below = names.iter().filter_map(|slave| {
            Self::at(machine, &machine.resolve(slaves.join(slave))?, depth - 1)
        });
        Some(Self {
            disk: dir.file_name()?.to_str()?.to_owned(),
            number: own,
            disk_number: number(dir)?,
            below: below.collect(),
            kind: Kind::of(machine, dir),
            dir: dir.to_owned(),
            name,
        })
    }

    /// The disks at the bottom; itself where nothing is below it.
    pub fn leaves(&self) -> Vec<&Self> {
        if self.below.is_empty() {
            return vec![self];
        }
        self.below.iter().flat_map(Self::leaves).collect()
    }

    /// Itself and all below it.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        all.extend(self.below.iter().flat_map(Self::all));
        all
    }

    /// What `/sys` says about its requests under `name`.
    pub fn queue(&self, machine: &Machine, name: &str) -> Option<String> {
        machine.text(self.queue_path(name))
    }

    /// The same as a number.
    pub fn queue_number(&self, machine: &Machine, name: &str) -> Option<u64> {
        machine.number(self.queue_path(name))
    }

    fn queue_path(&self, name: &str) -> PathBuf {
        self.dir.join("queue").join(name)
    }

    /// How many queues the kernel has for it.
    pub fn hardware_queues(&self, machine: &Machine) -> u64 {
        machine.names(self.dir.join("mq")).len().max(1) as u64
    }

    /// Whether the kernel takes it for a hard disk.
    pub fn is_rotational(&self, machine: &Machine) -> Option<bool> {
        Some(self.queue_number(machine, "rotational")? == 1)
    }

    /// Vendor and model, as far as the disk has a name.
    pub fn model(&self, machine: &Machine) -> Option<String> {
        let part = |name: &str| machine.text(self.dir.join("device").join(name));
        let parts: Vec<String> = [part("vendor"), part("model")]
            .into_iter()
            .flatten()
            // a number of the bus, not a name
            .filter(|part| !part.starts_with("0x"))
            .map(|part| part.trim().to_owned())
            .collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// The link to the disk; `None` where its speed is not known.
    pub fn link(&self, machine: &Machine) -> Option<Link> {
        if self.dir.iter().any(|part| part.as_encoded_bytes().starts_with(b"ata")) {
            return Some(Link { kind: "SATA", bytes_per_second: SATA_BYTES_PER_SECOND });
        }
        let device = self.dir.join("device/device");
        let speed = machine.text(device.join("current_link_speed"))?;
        let transfers: f64 = speed.split(' ').next()?.parse().ok()?;
        let lanes = machine.number(device.join("current_link_width"))? as f64;
        // ten bits for a byte at first, 130 for 16 bytes since the third generation
        let bits = if transfers < 8.0 { 10.0 } else { 130.0 / 16.0 };
        Some(Link { kind: "PCIe", bytes_per_second: (transfers * 1e9 * lanes / bits) as u64 })
    }

    /// The file behind a loop device.
    pub fn loop_file(&self) -> Option<&str> {
        match &self.kind {
            Kind::Loop { file } => Some(file),
            _ => None,
        }
    }

    /// The level and chunk of an array, with the disks that hold data at a time.
    pub fn stripe(&self, machine: &Machine) -> Option<Stripe> {
        if let Kind::Raid { level } = &self.kind {
            let chunk = machine.number(self.dir.join("md/chunk_size"))?;
            let disks = machine.number(self.dir.join("md/raid_disks"))?;
            let disks = match level.as_str() {
                "raid0" => disks,
                "raid4" | "raid5" => disks.saturating_sub(1),
                "raid6" => disks.saturating_sub(2),
                "raid10" => disks / 2,
                _ => return None,
            };
            return (chunk > 0 && disks > 1).then_some(Stripe { chunk, disks });
        }
        let is_mapped = matches!(self.kind, Kind::Mapped { .. });
        let chunk = self.queue_number(machine, "minimum_io_size")?;
        let width = self.queue_number(machine, "optimal_io_size")?;
        let striped = is_mapped && self.below.len() > 1 && chunk > 0 && width > chunk;
        striped.then(|| Stripe { chunk, disks: width / chunk })
    }

    /// Whether its chunks are on its members in turn, without parity and copies in between.
    pub fn is_striped(&self) -> bool {
        matches!(&self.kind, Kind::Raid { level } if level == "raid0")
    }

    /// Its members, where chunks lie on each of them in turn; nothing for other devices.
    pub fn striped_members(&self, machine: &Machine) -> &[Self] {
        let is_mapped = matches!(self.kind, Kind::Mapped { .. });
        if self.is_striped() || (is_mapped && self.stripe(machine).is_some()) {
            &self.below
        } else {
            &[]
        }
    }

    /// The device that commands take.
    pub fn path(&self) -> String {
        match &self.kind {
            Kind::Mapped { name, .. } => format!("/dev/mapper/{name}"),
            _ => format!("/dev/{}", self.name),
        }
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        let on: Vec<&str> = self.below.iter().map(|device| device.name.as_str()).collect();
        let on = if on.is_empty() { String::new() } else { format!(" of {}", on.join(", ")) };
        match &self.kind {
            Kind::Disk => self.path(),
            Kind::Raid { level } => format!("{}, {level}{on}", self.path()),
            Kind::Mapped { logical: true, .. } => {
                format!("{}, a logical volume{on}", self.path())
            }
            Kind::Mapped { .. } => format!("{}, a mapped device{on}", self.path()),
            Kind::Loop { file } => format!("{}, the file {file}", self.path()),
        }
    }
}

/// What connects a disk to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// `SATA` or `PCIe`.
    pub kind: &'static str,
    /// How much it carries.
    pub bytes_per_second: u64,
}

/// How an array spreads what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Bytes that go to one disk before the next.
    pub chunk: u64,
    /// Disks of a stripe, without those for parity and copies.
    pub disks: u64,
}

impl Kind {
    fn of(machine: &Machine, dir: &Path) -> Self {
        if let Some(level) = machine.text(dir.join("md/level")) {
            return Self::Raid { level };
        }
        if let Some(name) = machine.text(dir.join("dm/name")) {
            let id = machine.text(dir.join("dm/uuid")).unwrap_or_default();
            return Self::Mapped { name, logical: id.starts_with("LVM-") };
        }
        match machine.text(dir.join("loop/backing_file")) {
            Some(file) => Self::Loop { file },
            None => Self::Disk,
        }
    }
}
