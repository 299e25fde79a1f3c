//! Which devices are looked at, and what is known of them.

use forebay_block::DeviceNumber;
use serde::Serialize;

/// A device whose requests are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The name of the device.
    pub name: String,
    /// Its number, and those of its partitions.
    pub numbers: Vec<DeviceNumber>,
    /// Requests that begin or end inside of a block of this many bytes are misaligned.
    pub block_bytes: u64,
    /// At multiples of what it splits requests, if that is known.
    pub chunk: Option<Chunk>,
    /// On how many members an array has these chunks in turn, if that is known.
    pub members: Option<u32>,
    /// The longest request that the kernel sends to it, if that is known.
    pub longest_bytes: Option<u64>,
    /// What a request carries whose memory is as many pages as it may have pieces, if that is
    /// known.
    pub pages_bytes: Option<u64>,
    /// The longest request that the kernel can be told to send to it, if that is known.
    pub longest_possible_bytes: Option<u64>,
    /// The file system on it, if that is known; of several the one of the smallest blocks.
    pub file_system: Option<FileSystem>,
}

/// A file system on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// Its kind, such as `xfs`.
    pub kind: String,
    /// Bytes of a block.
    pub block_bytes: u64,
}

/// What an array writes to one disk before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How much.
    pub bytes: u64,
    /// Whether the user said so, and not the kernel.
    pub stated: bool,
}
