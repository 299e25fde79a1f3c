//! The division of a scheduler's disks, and the disk and class that exist without being configured.

use crate::io_thread::IoThreadsConfig;

/// The most I/O groups per disk.
pub const IO_GROUPS_MAX: usize = 16;

/// The name of the disk of devices without an entry.
pub const DEFAULT_DISK: &str = "default";

/// The name of the class of work that names no class.
pub const DEFAULT_CLASS: &str = "untagged";

/// The division of each disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) io_groups: usize,
    pub(crate) shards_max: usize,
    pub(crate) requests_max: u32,
    pub(crate) io_threads: IoThreadsConfig,
}
