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
        /// The name asked for.
        name: String,
    },
    /// The scheduler does not accept the change.
    #[error("class or group `{name}`: {source}")]
    Refused {
        /// Its name.
        name: String,
        /// What is wrong, and what is allowed.
        source: forebay_core::ClassError,
    },
    /// Work that names no class needs one.
    #[error(
        "the class `{DEFAULT_CLASS}` takes the work that has no other class and cannot be removed"
    )]
    DefaultClass,
    /// It belongs to another scheduler.
    #[error("`{name}` belongs to another scheduler")]
    OtherScheduler {
        /// Its name.
        name: String,
    },
    /// This is a child of the process that made the scheduler.
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
        /// Name of the disk.
        disk: String,
        /// What is wrong with them.
        source: ModelError,
    },
    /// The disk cannot meet its latency target.
    #[error("the disk `{disk}`: {source}")]
    LatencyTarget {
        /// Name of the disk.
        disk: String,
        /// What is asked for, and what the disk does.
        source: TargetBelowBase,
    },
    /// A mountpoint cannot be looked up.
    #[error(
        "cannot look up the mountpoint `{mountpoint}` of the disk `{disk}`: {source}; mount it, \
         or remove it from the configuration"
    )]
    Mountpoint {
        /// Name of the disk.
        disk: String,
        /// The mountpoint.
        mountpoint: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Two disks are on one device.
    #[error(
        "the disks `{first}` and `{second}` are on the same device ({device}); make one of the two"
    )]
    DeviceTwice {
        /// Name of one of them.
        first: String,
        /// Name of the other.
        second: String,
        /// The device.
        device: Device,
    },
    /// A disk cannot be shared with other processes as it is configured.
    #[error("the disk `{disk}` cannot be shared: {source}")]
    Shared {
        /// Name of the disk.
        disk: String,
        /// What is wrong.
        source: SharedMemoryError,
    },
    /// Two disks have the same name.
    #[error("there are two disks named `{name}`; give one of them another name")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// Another division of the budget than the one that the disk was made with.
    #[error(
        "the disk `{disk}` was made with `duplex: {}`, which a reload cannot change: leave it, or \
         make a new scheduler", !duplex
    )]
    Duplex {
        /// Name of the disk.
        disk: String,
        /// What the properties say now.
        duplex: bool,
    },
    /// There are too many disks.
    #[error("{count} disks; at most {DISKS_MAX} are possible: leave some to the default disk")]
    DisksMax {
        /// How many there would be.
        count: usize,
    },
    /// There is no disk of the name that files without an entry shall belong to.
    #[error(
        "there is no disk `{name}` for files on unlisted disks: name one of the configured disks"
    )]
    UnlistedDisk {
        /// Its name.
        name: String,
    },
    /// A number of I/O groups out of range.
    #[error("{count} I/O groups per disk; give 1 to {IO_GROUPS_MAX}, one per NUMA node used")]
    IoGroups {
        /// The number asked for.
        count: usize,
    },
    /// A number of shards out of range.
    #[error("{count} shards per I/O group; give 1 to {SHARDS_MAX}")]
    Shards {
        /// The number asked for.
        count: usize,
    },
    /// No room for requests.
    #[error("requests_max is 0; give at least 1 request per queue")]
    Requests,
    /// A number of I/O threads out of range.
    #[error("{count} I/O threads per I/O group; give 1 to {shards_max}, the number of its shards")]
    IoQueues {
        /// The number asked for.
        count: usize,
        /// How many queues the I/O group may have.
        shards_max: usize,
    },
    /// A class could not be added to a disk.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// This is a child of the process that made the scheduler.
    #[error(transparent)]
    Forked(#[from] Forked),
}

forebay_core::debug_as_display!(ClassError, SchedulerError);
