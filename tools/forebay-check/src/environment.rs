//! What system calls say about a directory and this process.

use std::path::PathBuf;

use forebay_block::DeviceNumber;
use serde::Deserialize;

/// The number of a block device, as it is recorded.
#[derive(Deserialize)]
#[serde(remote = "DeviceNumber")]
struct NumberRecord {
    major: u32,
    minor: u32,
}

/// What was observed, or why it could not be.
pub(crate) type Observed<T> = Result<T, String>;

/// What a directory and this process are given to work with, by what system calls say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Environment {
    /// The directory by its full path, without links.
    pub(crate) dir: PathBuf,
    /// The device that its filesystem is on, or stands in for.
    #[serde(with = "NumberRecord")]
    pub(crate) device: DeviceNumber,
    pub(crate) space: Observed<FreeSpace>,
    pub(crate) io: Observed<FileIo>,
    /// Nothing where it was not tried.
    #[serde(default)]
    pub(crate) page_cache: Option<PageCache>,
    /// Why io_uring is not to be had; nothing where it is.
    pub(crate) io_uring_refused: Option<String>,
}

/// How large a filesystem is, and how much of it is free.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FreeSpace {
    /// Bytes in a block.
    pub(crate) block: u64,
    pub(crate) blocks: u64,
    /// Blocks that an ordinary user may still fill.
    pub(crate) blocks_free: u64,
    /// Files that there can be; 0 where nothing limits them.
    pub(crate) files: u64,
    pub(crate) files_free: u64,
}

/// What a file made in the directory allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileIo {
    pub(crate) direct: Direct,
    /// Reads that must not block.
    pub(crate) nowait_read: Nowait,
    /// Overwrites that must not block.
    pub(crate) nowait_write: Nowait,
}

/// What of the page cache can be seen and steered, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageCache {
    /// What is in memory is seen.
    pub(crate) residency: bool,
    /// What was written is dirty in memory before it is on the disk.
    pub(crate) dirty_pages: bool,
    /// A range can be written back by itself.
    pub(crate) ranges: bool,
}

/// Whether requests may bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direct {
    /// The filesystem says no.
    Refused,
    /// It says yes, and asks for this alignment of addresses and of offsets, in bytes.
    Aligned { memory: u64, offset: u64 },
    /// It takes such requests, and says nothing about their alignment.
    Unsaid,
}

/// What became of requests that must not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Nowait {
    /// They were done.
    Done,
    /// The kernel said that they would block.
    WouldBlock,
    /// The filesystem knows no such requests.
    Unsupported,
    /// They failed otherwise.
    Failed,
}
