//! The layers below a file.

use std::fmt;

use crate::number::DeviceNumber;

/// One layer below a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A block device, or a file system that has a number of its own.
    Device(DeviceNumber),
    /// A ZFS pool.
    Pool(String),
}

/// `device 8:1`, or the name of the pool.
impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(number) => write!(f, "device {number}"),
            Self::Pool(name) => write!(f, "the ZFS pool {name}"),
        }
    }
}
