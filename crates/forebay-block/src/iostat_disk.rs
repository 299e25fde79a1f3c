//! Where the kernel counts what is done to the files of a mount.

use std::fmt;

use crate::{Backing, BlockDevice, DeviceNumber, Layer, Machine, Stack};

/// The disk whose counters tell what is done to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IostatDisk {
    /// Its name, such as `nvme0n1`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// The members of an array whose chunks lie on each member in turn; none for other disks.
    pub members: Vec<Self>,
}

/// Why nothing counts what is done to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoIostatDisk {
    /// They are in memory.
    Memory,
    /// Another machine has them.
    Network,
    /// A program answers for them.
    Program,
    /// They are on several disks, of which each may have all or a part.
    Several,
    /// No block device is to be seen below them.
    NoDevice,
}

impl Stack {
    /// The whole disk, or the array, that what is done to the files goes through, once: from a
    /// partition, a volume or encryption down to the one device below, not to one of several.
    ///
    /// # Errors
    /// There is none: see [`NoIostatDisk`].
    pub fn iostat_disk(&self, machine: &Machine) -> Result<IostatDisk, NoIostatDisk> {
        let Some(number) = self.block_device() else { return Err(self.without_device()) };
        let mut device = BlockDevice::find(machine, number).ok_or(NoIostatDisk::NoDevice)?;
        if !self.is_all_of(&device) {
            return Err(NoIostatDisk::Several);
        }
        while device.below.len() == 1 {
            device = device.below.remove(0);
        }
        let member = |of: &BlockDevice| IostatDisk {
            name: of.name.clone(),
            number: of.number,
            members: Vec::new(),
        };
        let members = device.striped_members(machine).iter().map(member).collect();
        Ok(IostatDisk { name: device.disk, number: device.disk_number, members })
    }

    /// Whether no other block device is alongside this one; what is below a loop device is not.
    fn is_all_of(&self, device: &BlockDevice) -> bool {
        let all = device.all();
        if all.iter().any(|device| device.loop_file().is_some()) {
            return true;
        }
        self.layers.iter().all(|layer| match layer {
            Layer::Device(number) if number.is_block() => {
                all.iter().any(|device| [device.number, device.disk_number].contains(number))
            }
            _ => true,
        })
    }

    fn without_device(&self) -> NoIostatDisk {
        if self.layers.iter().any(|layer| matches!(layer, Layer::Pool(_))) {
            return NoIostatDisk::Several;
        }
        match self.mount.as_ref().map(|mount| Backing::of(&mount.kind)) {
            Some(Backing::Memory) => NoIostatDisk::Memory,
            Some(Backing::Network) => NoIostatDisk::Network,
            Some(Backing::Program) => NoIostatDisk::Program,
            Some(Backing::Disk | Backing::Kernel) | None => NoIostatDisk::NoDevice,
        }
    }
}

/// As a part of a sentence that begins with `its files`.
impl fmt::Display for NoIostatDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "are in memory",
            Self::Network => "are on another machine",
            Self::Program => "are answered for by a program (FUSE)",
            Self::Several => "are on several disks or in a pool",
            Self::NoDevice => "are on no block device that can be seen",
        })
    }
}
