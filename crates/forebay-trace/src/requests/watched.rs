//! Which devices are looked at, and what is known of them.

use forebay_block::DeviceNumber;

/// A device whose requests are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What it is called.
    pub name: String,
    /// Its number, and those of its partitions.
    pub numbers: Vec<DeviceNumber>,
    /// Requests that begin or end inside of a block of so many bytes are misaligned.
    pub block_bytes: u64,
    /// At multiples of what it splits requests, if that is known.
    pub chunk: Option<Chunk>,
    /// The longest request that the kernel sends to it, if that is known.
    pub longest_bytes: Option<u64>,
    /// What a request carries whose memory is as many pages as it may have pieces, if that is known.
    pub pages_bytes: Option<u64>,
    /// The block of the file system on it, if that is known; the smallest of several.
    pub file_system_block_bytes: Option<u64>,
}

/// What an array writes to one disk before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How much.
    pub bytes: u64,
    /// Whether the user said so, and not the kernel.
    pub stated: bool,
}
