//! What is under a name, as the kernel says without following it.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use rustix::io::Errno;

/// What is under a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: FileType,
    pub(super) place: Place,
    inode: u64,
    pub(super) links: u32,
    /// What it has on the disk.
    pub(super) bytes: u64,
}

/// A file system, where it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    device: (u32, u32),
    /// None where the kernel is older than 5.8.
    mount: Option<u64>,
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::MNT_ID);

impl Entry {
    /// Looks at a name in a directory; links are not followed, and nothing is mounted.
    pub(super) fn look(dir: impl AsFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        rustix::fs::statx(dir, name, flags, WANTED).map(|stat| Self::of(&stat))
    }

    /// What is open.
    pub(super) fn of_file(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, WANTED).map(|stat| Self::of(&stat))
    }

    fn of(stat: &Statx) -> Self {
        let knows_mount = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
        Self {
            kind: FileType::from_raw_mode(stat.stx_mode.into()),
            place: Place {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                mount: knows_mount.then_some(stat.stx_mnt_id),
            },
            inode: stat.stx_ino,
            links: stat.stx_nlink,
            bytes: stat.stx_blocks.saturating_mul(512),
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether both are the same file, under whichever names.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.place.device, self.inode) == (other.place.device, other.inode)
    }
}
