//! What a file lies on: the mount that holds it, the block devices below that, and the disks at
//! the bottom.
//!
//! A [`Stack`] is found for an open file by the number of its mount, for a path by following it
//! through `/proc/self/mountinfo`. Below the mount it goes on in `/sys`: from a partition to its
//! disk, from a volume or an array to its members, from a loop device to the disk of its file,
//! from a btrfs file system to its devices, from an overlay to its upper directory where that can
//! be seen. The datasets of a ZFS pool meet in the pool.
//!
//! Nothing is asked of a file system that another machine or a program answers for: such a mount
//! may never answer, and its number in the mount table says all that is needed.
//!
//! Everything is read below the root of a [`Machine`], so that recorded trees can be looked at too.
//!
//! Decision: `docs/decisions/0043-disk-of-a-file.md`.
#![forbid(unsafe_code)]

mod backing;
mod block_device;
mod descent;
mod disk_stat;
mod file_stat;
mod iostat_disk;
mod layer;
mod machine;
mod members;
mod mount;
mod mount_table;
mod number;
mod path_walk;
mod stack;

pub use backing::Backing;
pub use block_device::{BlockDevice, Link, Stripe};
pub use disk_stat::DiskStat;
pub use file_stat::FileStat;
pub use iostat_disk::{IostatDisk, NoIostatDisk};
pub use layer::Layer;
pub use machine::Machine;
pub use members::{Striping, parts_in_flight, uneven_members};
pub use mount::Mount;
pub use number::DeviceNumber;
pub use stack::Stack;
