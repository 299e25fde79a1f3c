//! What the kernel says of an open file.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxFlags};

use crate::number::DeviceNumber;

/// What the kernel says of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// What [`DeviceNumber::of_file`] returns.
    pub number: DeviceNumber,
    /// Whether it is a block device.
    pub is_device: bool,
    /// The number of its mount, where the kernel knows the question: Linux 5.8. Files that have it
    /// and `number` in common lie on the same.
    pub mount: Option<u64>,
}

impl FileStat {
    /// Asks the kernel, and not the server of a network file system.
    ///
    /// # Errors
    /// The file cannot be looked up.
    pub fn of_file(file: impl AsFd) -> io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::TYPE | StatxFlags::MNT_ID;
        let stat = rustix::fs::statx(file.as_fd(), "", flags, wanted)?;
        let is_device = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::BlockDevice;
        let (major, minor) = match is_device {
            true => (stat.stx_rdev_major, stat.stx_rdev_minor),
            false => (stat.stx_dev_major, stat.stx_dev_minor),
        };
        let knows_mount = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
        let mount = knows_mount.then_some(stat.stx_mnt_id);
        Ok(Self { number: DeviceNumber { major, minor }, is_device, mount })
    }
}

impl DeviceNumber {
    /// The device that an open file says it lies on or, when it is a block device, the one that it
    /// is. Files of an overlay and of a btrfs subvolume give other numbers than their mount: see
    /// [`Stack::of_file`](crate::Stack::of_file).
    ///
    /// # Errors
    /// The file cannot be looked up.
    pub fn of_file(file: impl AsFd) -> io::Result<Self> {
        FileStat::of_file(file).map(|stat| stat.number)
    }
}
