//! Numbers of devices.

use std::fmt;
use std::str::FromStr;

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
