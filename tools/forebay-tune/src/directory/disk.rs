//! Which disks are measured, and which are refused.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use forebay_block::{Backing, BlockDevice, DeviceNumber, Machine, Mount, Stack};

use crate::error::Error;

/// A disk to measure, by the directories on it or as a block device.
#[derive(Clone, Debug)]
pub struct MeasuredDisk {
    pub(super) paths: Vec<PathBuf>,
    pub(super) number: DeviceNumber,
    pub(super) is_device: bool,
    /// As the kernel describes it, if it does.
    pub(super) block: Option<BlockDevice>,
    pub(super) mount: Option<Mount>,
    /// The disk whose counters tell what all who use it do.
    pub(super) iostat_number: Option<DeviceNumber>,
}

impl MeasuredDisk {
    /// The disks that `paths` lie on, each once, with those of the paths that are on it. A block
    /// device is one only where `destroy` says that its data may be destroyed.
    ///
    /// # Errors
    /// A path does not exist, is no directory, or must not be measured.
    pub fn find(paths: &[PathBuf], destroy: bool) -> Result<Vec<Self>, Error> {
        let mut disks: Vec<Self> = Vec::new();
        for path in paths {
            let disk = Self::of(path, destroy, &Machine::this())?;
            match disks.iter_mut().find(|known| known.number == disk.number) {
                Some(known) => known.paths.extend(disk.paths),
                None => disks.push(disk),
            }
        }
        Ok(disks)
    }

    fn of(path: &Path, destroy: bool, machine: &Machine) -> Result<Self, Error> {
        let shown = path.display();
        let full = fs::canonicalize(path).map_err(|error| {
            Error::Refused(format!("cannot find `{shown}`: {error}; name a directory that exists"))
        })?;
        if full.to_str().is_none() {
            return Err(Error::Refused(format!(
                "`{shown}` is not in UTF-8, and the files that describe the disk are; name another \
                 directory on it"
            )));
        }
        let kind =
            fs::metadata(&full).map_err(Error::io(format!("look at `{shown}`")))?.file_type();
        if kind.is_block_device() && !destroy {
            return Err(Error::Refused(format!(
                "`{shown}` is a block device, and measuring it would destroy what is on it; name a \
                 directory, or add --overwrite-device if nothing on it is needed"
            )));
        }
        if !kind.is_dir() && !kind.is_block_device() {
            return Err(Error::Refused(format!("`{shown}` is not a directory; name one")));
        }
        let is_device = kind.is_block_device();
        let stack = Stack::of_path(machine, &full)
            .map_err(Error::io(format!("look up the device of `{shown}`")))?;
        if let Some(mount) = &stack.mount {
            refuse(path, mount)?;
        }
        let number = stack.block_device().unwrap_or(stack.number);
        let block = BlockDevice::find(machine, number);
        let iostat_number = stack.iostat_disk(machine).ok().map(|disk| disk.number);
        Ok(Self { paths: vec![full], number, is_device, block, mount: stack.mount, iostat_number })
    }

    /// The directories, or the block device.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The disks at the bottom, such as the members of a RAID, each once.
    fn leaves(&self) -> Vec<&BlockDevice> {
        let mut leaves: Vec<&BlockDevice> = Vec::new();
        for leaf in self.block.iter().flat_map(BlockDevice::leaves) {
            if leaves.iter().all(|known| known.disk != leaf.disk) {
                leaves.push(leaf);
            }
        }
        leaves
    }

    /// The names of the disks at the bottom.
    pub(super) fn names(&self) -> Vec<String> {
        self.leaves().into_iter().map(|leaf| leaf.disk.clone()).collect()
    }

    /// What the links to all disks carry together, in bytes per second, and what they are; `None`
    /// if that of one is not known.
    pub(super) fn links(&self, machine: &Machine) -> Option<(u64, String)> {
        let links = self.leaves().into_iter().map(|leaf| leaf.link(machine));
        let links = links.collect::<Option<Vec<_>>>()?;
        let kind = links.first()?.kind.to_owned();
        Some((links.iter().map(|link| link.bytes_per_second).sum(), kind))
    }

    /// Keeps others from measuring the same disks for as long as the result lives. It is known
    /// to the kernel alone, so nothing is left of it in any case.
    ///
    /// # Errors
    /// Somebody else does.
    pub fn lock(&self) -> Result<Vec<UnixListener>, Error> {
        let names = std::iter::once(self.number.to_string()).chain(self.names());
        let mut listeners = Vec::new();
        for name in names {
            let address = SocketAddr::from_abstract_name(format!("forebay-tune-{name}"));
            let listener = address.and_then(|address| UnixListener::bind_addr(&address));
            match listener {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    return Err(Error::Refused(format!(
                        "another `forebay tune` measures the disk {name}, and each would distort \
                         the other; wait until it has ended"
                    )));
                }
                Err(source) => {
                    let what = format!("lock the disk {name}");
                    return Err(Error::Io { what, source });
                }
            }
        }
        Ok(listeners)
    }
}

fn refuse(path: &Path, mount: &Mount) -> Result<(), Error> {
    let why = match Backing::of(&mount.kind) {
        Backing::Memory => "in memory: there is no disk to measure; name a directory on one",
        Backing::Network => {
            "on another machine, so this would measure a server and not a disk; run it on that \
             machine"
        }
        Backing::Kernel => "which has only the kernel's own files; name a directory on a disk",
        // What can be said of a program that answers is a verdict.
        Backing::Program | Backing::Disk => return Ok(()),
    };
    Err(Error::Refused(format!("`{}` is on {}, {why}", path.display(), mount.kind)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn refusal(kind: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let dir = root.join("data");
        fs::create_dir_all(&dir).unwrap();
        // the same directory as the recorded machine has it
        fs::create_dir_all(root.join(dir.strip_prefix("/").unwrap())).unwrap();
        let mountinfo = format!("21 1 0:99 / / rw - {kind} source rw\n");
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), mountinfo).unwrap();
        let disk = MeasuredDisk::of(&dir, false, &Machine::new(root));
        disk.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_path_that_is_not_on_a_disk_is_refused() {
        assert!(refusal("tmpfs").contains("in memory"));
        assert!(refusal("nfs4").contains("on another machine"));
        assert_eq!(refusal("xfs"), "");
        assert_eq!(refusal("fuse.bindfs"), "");
    }

    #[test]
    fn a_path_that_is_no_directory_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let paths = [file.path().to_owned()];
        let error = MeasuredDisk::find(&paths, true).unwrap_err().to_string();
        assert!(error.contains("is not a directory"), "{error}");
        let missing = [file.path().join("missing")];
        assert!(MeasuredDisk::find(&missing, true).is_err());
    }

    #[test]
    fn a_path_that_no_file_can_hold_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OsStr::from_bytes(b"cut within \xc3"));
        fs::create_dir(&path).unwrap();
        let error = MeasuredDisk::find(&[path], false).unwrap_err().to_string();
        assert!(error.contains("not in UTF-8"), "{error}");
    }

    #[test]
    fn directories_on_one_disk_are_measured_once() {
        let dir = tempfile::tempdir_in(".").unwrap();
        let paths = [dir.path().to_owned(), dir.path().parent().unwrap().to_owned()];
        let disks = MeasuredDisk::find(&paths, false).unwrap();
        assert_eq!(disks.len(), 1);
        assert_eq!(disks[0].paths().len(), 2);
    }

    #[test]
    fn a_disk_is_locked_once() {
        // no device has so large a number
        let number = DeviceNumber { major: u32::MAX, minor: std::process::id() };
        let disk = MeasuredDisk {
            paths: Vec::new(),
            number,
            is_device: false,
            block: None,
            mount: None,
            iostat_number: None,
        };
        let held = disk.lock().unwrap();
        let error = disk.lock().unwrap_err().to_string();
        assert!(error.contains("another `forebay tune`"), "{error}");
        drop(held);
        disk.lock().unwrap();
    }

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
            write(root, &format!("{devices}/{disk}/{part}/dev"), "259:1\n");
            write(root, &format!("{devices}/{disk}/dev"), "259:0\n");
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
        write(root, &format!("{devices}/md0/dev"), "9:0\n");
        for (name, value) in
            [("logical_block_size", "512"), ("physical_block_size", "4096"), ("rotational", "0")]
        {
            write(root, &format!("{devices}/md0/queue/{name}"), value);
        }
        fs::create_dir_all(root.join("sys/dev/block")).unwrap();
        symlink(root.join(devices).join("md0"), root.join("sys/dev/block/9:0")).unwrap();
        let machine = Machine::new(root.canonicalize().unwrap());
        let block = BlockDevice::find(&machine, "9:0".parse().unwrap()).unwrap();
        assert_eq!(block.queue_number(&machine, "logical_block_size"), Some(512));
        assert_eq!(block.queue_number(&machine, "physical_block_size"), Some(4096));
        assert_eq!(block.is_rotational(&machine), Some(false));
        let (paths, number, block) = (Vec::new(), block.number, Some(block));
        let disk = MeasuredDisk {
            paths,
            number,
            is_device: false,
            block,
            mount: None,
            iostat_number: None,
        };
        assert_eq!(disk.names(), ["nvme0n1", "nvme1n1"]);
        assert_eq!(disk.links(&machine), Some((7_876_923_076, String::from("PCIe"))));
        assert!(BlockDevice::find(&machine, "8:0".parse().unwrap()).is_none());
    }
}
