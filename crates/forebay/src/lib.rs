//! forebay: a userspace disk I/O scheduler for storage engines.

mod admission;
mod aligned_buf;
mod backlog;
mod buffer_pool;
mod class;
mod clock;
mod coordinator;
mod direct_file;
mod disk;
pub mod engine;
mod file;
mod numa;
pub mod properties;
mod scheduler;
pub mod shard;
mod wakers;

pub use admission::{Admit, AdmitError, AdmitMore, Permit, ThreadPermit};
pub use aligned_buf::AlignedBuf;
pub use backlog::{BacklogController, BacklogError};
pub use buffer_pool::BufferPool;
pub use class::{Class, ClassError, ClassGroup, Entered, UNTAGGED};
pub use clock::Clock;
pub use coordinator::REQUESTS_MAX;
pub use direct_file::{DirectFile, FileOptions};
pub use disk::Disk;
pub use file::{BufResult, File, Intent, Request, RequestError};
pub use scheduler::{
    DEFAULT_DISK, DiskConfig, IO_GROUPS_MAX, Scheduler, SchedulerBuilder, SchedulerError,
};

pub use forebay_core::{
    CLASSES_MAX, ClassCounters, DiskRates, Limits, Op, Policy, QueueCounters, SHARES_MAX,
};
