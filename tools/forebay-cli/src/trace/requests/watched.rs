//! Which devices' requests are looked at, and what the kernel says of these.

use std::collections::BTreeMap;
use std::path::PathBuf;

use forebay_block::{BlockDevice, DeviceNumber, Machine, Mount};
use forebay_trace::{Chunk, FileSystem, Watched};
use rustix::fs::statvfs;

use super::super::subject;
use crate::failure::Failure;

/// What the kernel counts sectors in.
const SECTOR_BYTES: u64 = 512;
const KIB: u64 = 1 << 10;

/// What the user says of devices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stated {
    pub(super) block_bytes: u64,
    pub(super) chunk: Option<u64>,
    /// Members of the array that has these chunks in turn.
    pub(super) members: Option<u32>,
}

impl Stated {
    /// A device of which the kernel says nothing.
    pub(super) fn unnamed(self) -> Watched {
        Watched {
            block_bytes: self.block_bytes,
            chunk: self.chunk.map(|bytes| Chunk { bytes, stated: true }),
            members: self.members,
            ..Watched::default()
        }
    }

    /// The device that is named with all below it, or the devices below a directory; all where
    /// neither is named.
    pub(super) fn watched(
        self,
        device: Option<&PathBuf>,
        dir: Option<&PathBuf>,
    ) -> Result<Vec<Watched>, Failure> {
        let machine = Machine::this();
        match subject::top(&machine, device, dir)? {
            Some(top) => Ok(self.below(&machine, &top)),
            None => Ok(self.all(&machine)),
        }
    }

    /// What the user says of a chunk is said of the device at the top.
    fn below(self, machine: &Machine, top: &BlockDevice) -> Vec<Watched> {
        let all = devices(machine);
        let on_top = mounted_from(machine, &[top.number]);
        let mut watched: Vec<Watched> = Vec::new();
        for (place, device) in top.all().into_iter().enumerate() {
            let numbers = match device.number == device.disk_number {
                true => all.get(&device.disk_number).map(|(_, numbers)| numbers.clone()),
                // requests have the number of the disk, and what is handed over that of the part
                false => Some(vec![device.disk_number, device.number]),
            };
            let numbers = numbers.unwrap_or_else(|| vec![device.number]);
            if watched.iter().any(|other| other.numbers.contains(&device.disk_number)) {
                continue;
            }
            let stated =
                if place == 0 { self } else { Self { chunk: None, members: None, ..self } };
            let described = stated.describe(machine, device, numbers);
            // what is on an array shapes the requests to its disks
            let file_system = on_top.clone().or(described.file_system);
            watched.push(Watched { file_system, ..described });
        }
        watched
    }

    fn all(self, machine: &Machine) -> Vec<Watched> {
        let all = devices(machine).into_values();
        all.map(|(disk, numbers)| self.describe(machine, &disk, numbers)).collect()
    }

    fn describe(
        self,
        machine: &Machine,
        device: &BlockDevice,
        numbers: Vec<DeviceNumber>,
    ) -> Watched {
        let stated = self.chunk.map(|bytes| Chunk { bytes, stated: true });
        let page = rustix::param::page_size() as u64;
        let pieces = device.queue_number(machine, "max_segments");
        let kib =
            |name: &str| device.queue_number(machine, name).map(|kib| kib.saturating_mul(KIB));
        Watched {
            name: device.path(),
            block_bytes: self.block_bytes,
            chunk: stated.or_else(|| chunk(machine, device)),
            members: self.members.or_else(|| members(machine, device)),
            longest_bytes: kib("max_sectors_kb"),
            pages_bytes: pieces.map(|pieces| pieces.saturating_mul(page)),
            longest_possible_bytes: kib("max_hw_sectors_kb"),
            file_system: mounted_from(machine, &numbers),
            numbers,
        }
    }
}

/// Whole disks by their number, with the numbers of themselves and of their partitions.
fn devices(machine: &Machine) -> BTreeMap<DeviceNumber, (BlockDevice, Vec<DeviceNumber>)> {
    let names = machine.names("sys/dev/block");
    let found = names.iter().filter_map(|name| BlockDevice::find(machine, name.parse().ok()?));
    let mut disks: BTreeMap<DeviceNumber, (Option<BlockDevice>, Vec<DeviceNumber>)> =
        BTreeMap::new();
    for device in found {
        let (disk, numbers) = disks.entry(device.disk_number).or_default();
        numbers.push(device.number);
        if device.number == device.disk_number {
            *disk = Some(device);
        }
    }
    disks.into_iter().filter_map(|(number, (disk, all))| Some((number, (disk?, all)))).collect()
}

/// Where the kernel splits requests of this device: an array at its chunks, and some disks too.
fn chunk(machine: &Machine, device: &BlockDevice) -> Option<Chunk> {
    let of_disk = || {
        let zoned = device.queue(machine, "zoned");
        let sectors = device.queue_number(machine, "chunk_sectors")?;
        zoned.is_none_or(|kind| kind == "none").then_some(sectors * SECTOR_BYTES)
    };
    let bytes = device.stripe(machine).map(|stripe| stripe.chunk).or_else(of_disk)?;
    (bytes > 0).then_some(Chunk { bytes, stated: false })
}

/// How many members have the chunks of this device in turn: only where no parity or copy moves them.
fn members(machine: &Machine, device: &BlockDevice) -> Option<u32> {
    if device.is_striped() { u32::try_from(device.stripe(machine)?.disks).ok() } else { None }
}

/// Of those that are mounted from one of these devices the one of the smallest blocks; `None` where
/// none says how large its blocks are.
fn mounted_from(machine: &Machine, numbers: &[DeviceNumber]) -> Option<FileSystem> {
    let mountinfo = machine.mountinfo();
    let mounts = Mount::all(&mountinfo);
    let on_device = mounts.filter(|mount| numbers.contains(&mount.device));
    let described = on_device.filter_map(|mount| {
        let block_bytes = statvfs(&mount.point).ok()?.f_frsize;
        (block_bytes > 0).then_some(FileSystem { kind: mount.kind, block_bytes })
    });
    described.min_by_key(|file_system| file_system.block_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    /// An array of two parts of disks.
    fn machine(root: &Path) -> Machine {
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |number: &str, to: &str| {
            fs::create_dir_all(root.join("sys/dev/block")).unwrap();
            symlink(Path::new("../..").join(to), root.join("sys/dev/block").join(number)).unwrap();
        };
        for (disk, minor) in [("sda", 0), ("sdb", 16)] {
            put(&format!("sys/devices/{disk}/dev"), &format!("8:{minor}\n"));
            put(&format!("sys/devices/{disk}/queue/max_sectors_kb"), "128\n");
            put(&format!("sys/devices/{disk}/queue/chunk_sectors"), "0\n");
            link(&format!("8:{minor}"), &format!("devices/{disk}"));
            for part in [1, 2] {
                let name = format!("{disk}/{disk}{part}");
                put(&format!("sys/devices/{name}/dev"), &format!("8:{}\n", minor + part));
                put(&format!("sys/devices/{name}/partition"), "1\n");
                link(&format!("8:{}", minor + part), &format!("devices/{name}"));
            }
        }
        put("sys/devices/md0/dev", "9:0\n");
        put("sys/devices/md0/md/level", "raid0\n");
        put("sys/devices/md0/md/chunk_size", "1048576\n");
        put("sys/devices/md0/md/raid_disks", "2\n");
        fs::create_dir_all(root.join("sys/devices/md0/slaves")).unwrap();
        for disk in ["sda", "sdb"] {
            let to = format!("../../{disk}/{disk}2");
            symlink(to, root.join(format!("sys/devices/md0/slaves/{disk}2"))).unwrap();
        }
        link("9:0", "devices/md0");
        Machine::new(root)
    }

    #[test]
    fn an_array_has_its_chunk_and_the_parts_below_it_are_watched_by_both_numbers() {
        let root = tempfile::tempdir().unwrap();
        let machine = machine(root.path());
        let array = BlockDevice::find(&machine, "9:0".parse().unwrap()).unwrap();
        let number = |text: &str| text.parse::<DeviceNumber>().unwrap();
        for (stated, chunk) in [
            (None, Chunk { bytes: 1 << 20, stated: false }),
            (Some(65_536), Chunk { bytes: 65_536, stated: true }),
        ] {
            let watched =
                Stated { block_bytes: 4096, chunk: stated, members: None }.below(&machine, &array);
            let names: Vec<_> = watched.iter().map(|device| device.name.as_str()).collect();
            assert_eq!(names, ["/dev/md0", "/dev/sda2", "/dev/sdb2"]);
            assert_eq!(watched[0].chunk, Some(chunk));
            assert_eq!(watched[1].numbers, [number("8:0"), number("8:2")]);
            assert_eq!((watched[1].chunk, watched[1].longest_bytes), (None, Some(128 << 10)));
        }
        let disk = BlockDevice::find(&machine, number("8:16")).unwrap();
        let watched =
            Stated { block_bytes: 4096, chunk: None, members: None }.below(&machine, &disk);
        assert_eq!(watched[0].numbers, [number("8:16"), number("8:17"), number("8:18")]);
        let all = Stated { block_bytes: 4096, chunk: None, members: None }.all(&machine);
        let names: Vec<_> = all.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["/dev/sda", "/dev/sdb", "/dev/md0"]);
    }
}
