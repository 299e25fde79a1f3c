//! How the disks of a scheduler are divided, and what is there without being configured.

use crate::io_thread::IoThreadsConfig;

/// Most I/O groups per disk.
pub const IO_GROUPS_MAX: usize = 16;

/// Name of the disk of devices that are not listed.
pub const DEFAULT_DISK: &str = "default";

/// Name of the class of work that has no other.
pub const DEFAULT_CLASS: &str = "untagged";

/// How each disk is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) io_groups: usize,
    pub(crate) shards_max: usize,
    pub(crate) requests_max: u32,
    pub(crate) io_threads: IoThreadsConfig,
}
