//! Numbers of devices.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;

use crate::{Machine, Seen, Stack};

/// The number of a device, as the kernel counts them: of a block device, or of a file system that
/// lies on none or on several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The number of its driver; 0 for a file system that has a number of its own.
    pub major: u32,
    /// Its number there.
    pub minor: u32,
}

impl DeviceNumber {
    /// The device that `path` lies on or, when it is a block device, the one that it is.
    ///
    /// # Errors
    /// `path` does not exist or cannot be looked up.
    pub fn of(path: &Path) -> io::Result<Self> {
        Stack::of_path(&Machine::this(), path).map(|stack| stack.number)
    }

    /// The device that an open file says it lies on or, when it is a block device, the one that it
    /// is. Files of an overlay and of a btrfs subvolume give other numbers than their mount: see
    /// [`Stack::of_file`].
    ///
    /// # Errors
    /// The file cannot be looked up.
    pub fn of_file(file: impl AsFd) -> io::Result<Self> {
        Seen::of_file(file).map(|seen| seen.number)
    }

    /// Whether it is of a block device.
    pub const fn is_block(self) -> bool {
        self.major != 0
    }

    pub(crate) fn of_dev(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }
}

/// `MAJOR:MINOR`, as in `lsblk` and `/proc/self/mountinfo`.
impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// From `MAJOR:MINOR`; nothing where it is not that.
impl FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once(':').ok_or(())?;
        let part = |text: &str| text.parse().map_err(|_| ());
        Ok(Self { major: part(major)?, minor: part(minor)? })
    }
}
