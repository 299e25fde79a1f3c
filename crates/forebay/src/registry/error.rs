//! Errors of the configuration of a scheduler and its classes.

use std::io;
use std::path::PathBuf;

use forebay_core::{ModelError, SHARDS_MAX};

use super::layout::{DEFAULT_CLASS, IO_GROUPS_MAX};
use crate::properties::{ConfigError, DISKS_MAX, Device, TargetBelowBase};
use crate::siblings::SharedMemoryError;
use crate::sys::fork::Forked;

/// Why a class or a group of classes could not be made, changed or removed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassError {
    /// The name is in use.
    #[error("there is a class or group named `{name}` already; choose another name")]
    NameTaken {
        /// The requested name.
        name: String,
    },
    /// The scheduler does not accept the change.
    #[error("class or group `{name}`: {source}")]
    Refused {
        /// The name of the class or group.
        name: String,
        /// The reason, with the allowed values.
        source: forebay_core::ClassError,
    },
    /// The class of untagged work cannot be removed.
    #[error(
        "the class `{DEFAULT_CLASS}` takes the work that has no other class and cannot be removed"
    )]
    DefaultClass,
    /// The class, group or disk belongs to another scheduler.
    #[error("`{name}` belongs to another scheduler")]
    OtherScheduler {
        /// Its name.
        name: String,
    },
    /// The process was forked after it made the scheduler, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
}

/// Why a scheduler was not made or reloaded.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The io-properties are invalid.
    #[error(transparent)]
    Properties(#[from] ConfigError),
    /// The rates of a disk are out of range.
    #[error("the rates of the disk `{disk}`: {source}")]
    Rates {
        /// The name of the disk.
        disk: String,
        /// Which rate is wrong, and why.
        source: ModelError,
    },
    /// The latency target is not above the base latency of the disk.
    #[error("the disk `{disk}`: {source}")]
    LatencyTarget {
        /// The name of the disk.
        disk: String,
        /// The target and the base latency.
        source: TargetBelowBase,
    },
    /// A mountpoint cannot be looked up.
    #[error(
        "cannot look up the mountpoint `{mountpoint}` of the disk `{disk}`: {source}; mount it, \
         or remove it from the configuration"
    )]
    Mountpoint {
        /// The name of the disk.
        disk: String,
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Two disks are on one device.
    #[error(
        "the disks `{first}` and `{second}` are on the same device ({device}); make one of the two"
    )]
    DeviceTwice {
        /// The name of one of them.
        first: String,
        /// The name of the other one.
        second: String,
        /// The device.
        device: Device,
    },
    /// A disk cannot be shared with other processes as it is configured.
    #[error("the disk `{disk}` cannot be shared: {source}")]
    Shared {
        /// The name of the disk.
        disk: String,
        /// The reason.
        source: SharedMemoryError,
    },
    /// Two disks have the same name.
    #[error("there are two disks named `{name}`; give one of them another name")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A reload changes `duplex` of a disk, which is not possible.
    #[error(
        "the disk `{disk}` was made with `duplex: {}`, which a reload cannot change: leave it, or \
         make a new scheduler", !duplex
    )]
    Duplex {
        /// The name of the disk.
        disk: String,
        /// The value in the new properties.
        duplex: bool,
    },
    /// There are too many disks.
    #[error("{count} disks; at most {DISKS_MAX} are possible: leave some to the default disk")]
    DisksMax {
        /// The number of disks that there would be.
        count: usize,
    },
    /// The disk for files without an entry is not configured.
    #[error(
        "there is no disk `{name}` for files on unlisted disks: name one of the configured disks"
    )]
    UnlistedDisk {
        /// The name of the disk.
        name: String,
    },
    /// The number of I/O groups is out of range.
    #[error("{count} I/O groups per disk; give 1 to {IO_GROUPS_MAX}, one per NUMA node used")]
    IoGroups {
        /// The requested number.
        count: usize,
    },
    /// The number of queues per I/O group is out of range.
    #[error("{count} shards per I/O group; give 1 to {SHARDS_MAX}")]
    Shards {
        /// The requested number.
        count: usize,
    },
    /// The maximum of requests in a queue is 0.
    #[error("requests_max is 0; give at least 1 request per queue")]
    Requests,
    /// The number of I/O threads is out of range.
    #[error("{count} I/O threads per I/O group; give 1 to {shards_max}, the number of its shards")]
    IoQueues {
        /// The requested number.
        count: usize,
        /// The most queues of the I/O group.
        shards_max: usize,
    },
    /// A class could not be added to a disk.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// The process was forked after it made the scheduler, and this is the child.
    #[error(transparent)]
    Forked(#[from] Forked),
}

forebay_core::debug_as_display!(ClassError, SchedulerError);
