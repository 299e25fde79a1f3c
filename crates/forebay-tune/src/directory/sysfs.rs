//! What the kernel says about a disk, read below a root directory.

use std::fs;
use std::path::{Path, PathBuf};

/// What is looked at of a block device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BlockDevice {
    /// The disks that it lies on, such as the members of a RAID.
    pub(crate) disks: Vec<String>,
    pub(crate) logical_sector: Option<u32>,
    pub(crate) physical_sector: Option<u32>,
    pub(crate) rotational: Option<bool>,
    pub(crate) link: Option<(u64, String)>,
}

/// The block device `MAJOR:MINOR` as the kernel below `root` describes it; nothing is known of a
/// device that it does not list.
pub(crate) fn block_device(root: &Path, number: &str) -> BlockDevice {
    let Ok(path) = fs::canonicalize(root.join("sys/dev/block").join(number)) else {
        return BlockDevice::default();
    };
    let path = whole(path);
    let mut leaves = Vec::new();
    find_leaves(&path, 0, &mut leaves);
    let number = |name| read(&path.join("queue").join(name))?.parse().ok();
    BlockDevice {
        logical_sector: number("logical_block_size"),
        physical_sector: number("physical_block_size"),
        rotational: number("rotational").map(|flag: u32| flag != 0),
        link: link(&leaves),
        disks: leaves.iter().filter_map(|leaf| name(leaf)).collect(),
    }
}

/// The disk of a partition.
fn whole(path: PathBuf) -> PathBuf {
    match path.parent() {
        Some(parent) if path.join("partition").exists() => parent.to_owned(),
        _ => path,
    }
}

/// Devices lie on devices, but not for ever.
const LEVELS_MAX: u32 = 8;

fn find_leaves(path: &Path, level: u32, leaves: &mut Vec<PathBuf>) {
    let slaves = fs::read_dir(path.join("slaves")).into_iter().flatten().flatten();
    let mut below: Vec<PathBuf> =
        slaves.filter_map(|slave| fs::canonicalize(slave.path()).ok()).map(whole).collect();
    below.sort();
    if below.is_empty() || level == LEVELS_MAX {
        if !leaves.iter().any(|leaf| leaf == path) {
            leaves.push(path.to_owned());
        }
        return;
    }
    below.iter().for_each(|slave| find_leaves(slave, level + 1, leaves));
}

/// What the links to all disks carry together; `None` if that of one is not known.
fn link(leaves: &[PathBuf]) -> Option<(u64, String)> {
    let links: Option<Vec<u64>> = leaves.iter().map(|leaf| link_of(leaf)).collect();
    let links = links.filter(|links| !links.is_empty())?;
    let kind = if leaves.first().is_some_and(|leaf| is_ata(leaf)) { "SATA" } else { "PCIe" };
    Some((links.iter().sum(), kind.to_owned()))
}

fn is_ata(leaf: &Path) -> bool {
    leaf.components().any(|part| part.as_os_str().to_string_lossy().starts_with("ata"))
}

/// Bytes per second of the link to a disk.
fn link_of(leaf: &Path) -> Option<u64> {
    if is_ata(leaf) {
        return Some(600_000_000);
    }
    let device = leaf.join("device/device");
    let transfers: f64 =
        read(&device.join("current_link_speed"))?.split(' ').next()?.parse().ok()?;
    let lanes: f64 = read(&device.join("current_link_width"))?.parse().ok()?;
    // Ten bits for a byte at first, 130 for 16 bytes since the third generation.
    let bits = if transfers < 8.0 { 10.0 } else { 130.0 / 16.0 };
    Some((transfers * 1e9 * lanes / bits) as u64)
}

fn name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_disks_below_a_raid_on_partitions_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (root, devices) = (dir.path(), "sys/devices");
        for (disk, part) in [("nvme0n1", "nvme0n1p1"), ("nvme1n1", "nvme1n1p1")] {
            write(root, &format!("{devices}/{disk}/{part}/partition"), "1\n");
            write(
                root,
                &format!("{devices}/{disk}/device/device/current_link_speed"),
                "8.0 GT/s PCIe\n",
            );
            write(root, &format!("{devices}/{disk}/device/device/current_link_width"), "4\n");
            let slaves = root.join(devices).join("md0/slaves");
            fs::create_dir_all(&slaves).unwrap();
            symlink(root.join(devices).join(disk).join(part), slaves.join(part)).unwrap();
        }
        for (name, value) in
            [("logical_block_size", "512"), ("physical_block_size", "4096"), ("rotational", "0")]
        {
            write(root, &format!("{devices}/md0/queue/{name}"), value);
        }
        fs::create_dir_all(root.join("sys/dev/block")).unwrap();
        symlink(root.join(devices).join("md0"), root.join("sys/dev/block/9:0")).unwrap();
        let found = block_device(root, "9:0");
        assert_eq!(found.disks, ["nvme0n1", "nvme1n1"]);
        assert_eq!((found.logical_sector, found.physical_sector), (Some(512), Some(4096)));
        assert_eq!(found.rotational, Some(false));
        assert_eq!(found.link, Some((7_876_923_076, String::from("PCIe"))));
        assert_eq!(block_device(root, "8:0"), BlockDevice::default());
    }
}
