//! What is trimmed: a mounted file system that has a disk of its own.

use std::fs::{self, File};
use std::path::Path;

use forebay_block::{BlockDevice, IostatDisk, Machine, Mount, Stack};
use rustix::fs::statvfs;

use crate::failure::Failure;

/// File systems that take ranges from 0 to their size. Others have addresses of their own, or
/// trim what is alongside the ranges with each call.
const KINDS: [&str; 4] = ["ext3", "ext4", "f2fs", "xfs"];
const SECTOR: u64 = 512;

/// A file system to trim.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) dir: File,
    pub(super) mount: Mount,
    /// Bytes from the first that can be asked for to the last.
    pub(super) size: u64,
    /// Free bytes.
    pub(super) free: u64,
    /// Where the kernel counts its discards.
    pub(super) iostat_disk: Option<IostatDisk>,
    machine: Machine,
}

impl Place {
    /// The file system that is mounted at `path`.
    ///
    /// # Errors
    /// Why it cannot be trimmed, and what to do.
    pub(super) fn find(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let wrong = |error: std::io::Error| {
            Failure::Input(format!(
                "cannot look up `{shown}`: {error}; name the mountpoint of a file system"
            ))
        };
        let dir = fs::canonicalize(path).map_err(wrong)?;
        let machine = Machine::this();
        let mount = Mount::holding(&machine.mountinfo(), &dir)
            .ok_or_else(|| Failure::Input(format!("/proc does not say what holds `{shown}`")))?;
        if mount.point != dir {
            return Err(Failure::Input(format!(
                "`{shown}` is not a mountpoint; its file system is mounted at `{}`",
                mount.point.display()
            )));
        }
        if !KINDS.contains(&mount.kind.as_str()) {
            return Err(Failure::Input(format!(
                "`{shown}` is {}, which cannot be trimmed in parts; those that can are {}",
                mount.kind,
                KINDS.join(", ")
            )));
        }
        // A mount that is read-only on its own (a bind mount) can be trimmed: its filesystem
        // changes.
        if mount.is_read_only_filesystem() {
            return Err(Failure::Input(format!(
                "the file system at `{shown}` is mounted read-only, so it cannot be trimmed; \
                 remount it with `rw`"
            )));
        }
        let stack = Stack::of_path(&machine, &dir).map_err(wrong)?;
        let device = stack.block_device().and_then(|number| BlockDevice::find(&machine, number));
        if let Some(device) = &device
            && device.queue_number(&machine, "discard_max_bytes") == Some(0)
        {
            let device = device.path();
            return Err(Failure::Input(format!(
                "`{shown}` is on {device}, which takes no discards"
            )));
        }
        let space = statvfs(&dir).map_err(|error| wrong(error.into()))?;
        let blocks = space.f_blocks.saturating_mul(space.f_frsize);
        let sectors = device
            .and_then(|device| machine.number(format!("sys/dev/block/{}/size", device.number)));
        Ok(Self {
            dir: File::open(&dir).map_err(wrong)?,
            size: sectors.map_or(blocks, |sectors| sectors.saturating_mul(SECTOR)),
            free: space.f_bfree.saturating_mul(space.f_frsize),
            iostat_disk: stack.iostat_disk(&machine).ok(),
            mount,
            machine,
        })
    }

    /// How many discards the device has got, and how many bytes of these, since it is there.
    pub(super) fn discards(&self) -> Option<(u64, u64)> {
        let number = self.iostat_disk.as_ref()?.number;
        discards(&self.machine.text(format!("sys/dev/block/{number}/stat"))?)
    }
}

/// What a line of `/sys/block/DISK/stat` says of discards.
fn discards(text: &str) -> Option<(u64, u64)> {
    let field = |number| text.split_whitespace().nth(number)?.parse::<u64>().ok();
    Some((field(11)?, field(13)?.saturating_mul(SECTOR)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_kernel_that_counts_discards_has_their_number_and_sectors() {
        let text = " 9 8 7 6 5 4 3 2 1 0 9 42 3 2048 17 0 0\n";
        assert_eq!(discards(text), Some((42, 1 << 20)));
        for text in ["", "1 2 3 4 5 6 7 8 9 10 11", "a b c d e f g h i j k l m n o"] {
            assert_eq!(discards(text), None, "{text}");
        }
    }

    #[test]
    fn paths_that_are_no_mountpoints_and_untrimmable_mounts_are_refused() {
        let refused = |path: &str| Place::find(Path::new(path)).map(drop).unwrap_err().to_string();
        assert!(refused("/proc").contains("is proc, which cannot be trimmed in parts"));
        assert!(refused("/proc/self/fd").contains("is not a mountpoint"));
        assert!(refused("/nowhere/at/all").contains("No such file"));
    }
}
