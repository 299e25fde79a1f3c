//! The disk that is governed.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use forebay_block::{BlockDevice, DeviceNumber, Machine};

use crate::error::GovernError;

/// A whole disk with a request queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GovernedDisk {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// Its number, `MAJOR:MINOR`.
    pub number: String,
}

impl GovernedDisk {
    /// The disk called `name`, with or without `/dev/`.
    ///
    /// # Errors
    /// There is no such disk, or it is a partition or made of other disks, which the error names.
    pub fn find(machine: &Machine, name: &str) -> Result<Self, GovernError> {
        let missing = |text: String| Err(GovernError::Missing(text));
        let device = number(machine, name).and_then(|number| BlockDevice::find(machine, number));
        let Some(device) = device else {
            return missing(format!(
                "unknown disk {name}; use a name from /sys/block, such as sda"
            ));
        };
        let mut below: Vec<String> = device.leaves().iter().map(|leaf| leaf.disk.clone()).collect();
        below.sort();
        below.dedup();
        let below = below.join(", ");
        if !device.below.is_empty() {
            let what = device.describe();
            return missing(format!(
                "io.cost works on disks, and {name} is {what}; govern {below}"
            ));
        }
        if device.number != device.disk_number {
            return missing(format!("{name} is a partition; govern its disk {below}"));
        }
        if !machine.has(format!("sys/dev/block/{}/mq", device.number)) {
            return missing(format!(
                "{name} has no request queue, so io.cost cannot work on it; use another disk"
            ));
        }
        Ok(Self { name: device.disk, number: device.number.to_string() })
    }

    /// The path of a setting of its request queue.
    pub(crate) fn queue(&self, file: &str) -> PathBuf {
        Path::new("/sys/block").join(&self.name).join("queue").join(file)
    }
}

/// The number of a block device, which is given by its node or by its name in `/sys`.
fn number(machine: &Machine, name: &str) -> Option<DeviceNumber> {
    let in_sys = name.trim_start_matches("/dev/");
    let text =
        if in_sys.contains('/') { None } else { machine.text(format!("sys/block/{in_sys}/dev")) };
    if let Some(number) = text.and_then(|text| text.parse().ok()) {
        return Some(number);
    }
    let node = Path::new("/dev").join(name).metadata().ok()?;
    let number = node.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    node.file_type().is_block_device().then_some(DeviceNumber { major, minor })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn devices_above_disks_are_refused_with_the_disks_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("sys/block")).unwrap();
        fs::create_dir_all(root.join("sys/dev/block")).unwrap();
        for (path, number, more) in [
            ("sda", "8:0", "mq"),
            ("sdb", "8:16", "mq"),
            ("zram0", "253:0", "queue"),
            ("sda/sda1", "8:1", "holders"),
            ("dm-0", "252:0", "dm"),
            ("md0", "9:0", "md"),
        ] {
            let device = root.join("sys/devices").join(path);
            fs::create_dir_all(device.join(more)).unwrap();
            fs::write(device.join("dev"), number).unwrap();
            symlink(&device, root.join("sys/dev/block").join(number)).unwrap();
            symlink(&device, root.join("sys/block").join(device.file_name().unwrap())).unwrap();
        }
        let devices = root.join("sys/devices");
        fs::write(devices.join("sda/sda1/partition"), "1").unwrap();
        fs::write(devices.join("dm-0/dm/name"), "data").unwrap();
        fs::write(devices.join("md0/md/level"), "raid1").unwrap();
        for (above, below) in [("dm-0", "md0"), ("md0", "sda/sda1"), ("md0", "sdb")] {
            let slaves = devices.join(above).join("slaves");
            fs::create_dir_all(&slaves).unwrap();
            let name = Path::new(below).file_name().unwrap();
            symlink(devices.join(below), slaves.join(name)).unwrap();
        }
        let machine = Machine::new(&root);
        let said = |name| GovernedDisk::find(&machine, name).unwrap_err().to_string();
        for (name, words) in [
            ("dm-0", "govern sda, sdb"),
            ("/dev/md0", "govern sda, sdb"),
            ("sda1", "is a partition; govern its disk sda"),
            ("zram0", "no request queue"),
            ("no-such-disk", "unknown disk no-such-disk"),
            ("../sda", "unknown disk"),
        ] {
            let said = said(name);
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        }
        let disk = GovernedDisk { name: "sdb".into(), number: "8:16".into() };
        assert_eq!(GovernedDisk::find(&machine, "/dev/sdb"), Ok(disk));
    }
}
