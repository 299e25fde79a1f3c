//! forebay: a userspace disk I/O scheduler for storage engines.
//!
//! # The idea
//!
//! The throughput of a disk grows with the requests in flight, up to a point. Beyond it, requests
//! only wait inside the disk, where they can no longer be ordered. When compaction has filled that
//! queue, a read waits behind it. forebay keeps requests waiting in the application, where they can
//! still be ordered, and sends the disk only as many as keep it busy.
//!
//! - A [`Scheduler`] knows the rates of each of its disks, from a measured
//!   [io-properties](properties) file or from the vendor's figures. Each request costs disk time,
//!   which depends on its size and direction. A disk has one second of disk time per second.
//! - Work is divided into [classes](Class) with shares: one for queries, one for compaction, one
//!   for backups. When all want the disk they get it in proportion to their shares, over all
//!   threads. The others get what one class leaves unused.
//! - Work without a class is in the class [`untagged`](DEFAULT_CLASS). A file on an unlisted disk
//!   belongs to a disk named [`default`](DEFAULT_DISK), unless the program chooses
//!   [otherwise](Unlisted). So all requests are counted.
//!
//! # What a permit orders
//!
//! A permit orders the work that the disk does while it is held: direct reads and writes, reads
//! that miss the page cache, and flushes. It cannot order other work:
//!
//! - A buffered write ends when its bytes are in memory. The kernel writes them back when there are
//!   many dirty pages, or 30 s later, unscheduled. A permit around the write only orders the
//!   copying. Readers then wait behind gigabytes of write-back.
//! - A flush writes back the whole file, but is only charged as one flush.
//! - Read-ahead, and reads through a mapping, are unscheduled.
//! - A permit that is held while its thread waits for anything but the disk keeps its part of the
//!   window from all others. Get it just before the I/O, and drop it at the end of the I/O.
//!
//! | the engine | way in | what stays outside |
//! |---|---|---|
//! | opens its files with `O_DIRECT` | a permit around each request, of up to some 100 KiB each: [`Class::admit`] | metadata |
//! | writes through the page cache | [`Class::buffered_writer`] around its file, which flushes too | metadata, the journal |
//! | writes through it, and cannot use another writer | [`Class::sync_data`] where it flushes, the more often the better | write-back by the kernel before |
//! | reads through the page cache | [`Class::read_at`] instead of `pread` | readahead is charged after it |
//! | maps its files | [`Class::prefetch`] before a scan of them, [`Class::buffered_writer`] for its writes | page faults, and writes through mappings |
//! | deletes files on a file system mounted with `discard` | [`Deleter::delete`] instead of `unlink` | renames, and flushes of directories |
//! | may hand over buffers | [`File`], or a [`shard`] per thread: the least work for the engine's threads | metadata |
//!
//! Early write-back alone already helps reads. To see what the classes add, compare with a
//! scheduler of the [open policy](Policy::Unlimited).
//!
//! Unscheduled I/O is counted, if the kernel reports it, in each disk's
//! [`DeviceTraffic`](metrics::DeviceTraffic) and in the metrics, and reported once a minute in the
//! log. So are [permits held for too long](metrics::ClassSnapshot::stuck_requests). Messages in the log
//! refer to this section. If most of the unscheduled I/O is write-back of this process, the engine
//! writes through the page cache, perhaps with permits around its `write`. If it is reads, the
//! engine reads without permits, or through a mapping. The message names a file of the disk that
//! the process has mapped.
//!
//! # The ways in
//!
//! - **Permits**: [`Class::admit`] waits for the disk and the class's turn. Then the program does
//!   direct I/O, or a read that misses the page cache, and drops the [`ThreadPermit`].
//!   [`Class::admit_async`] is the same for a task on any executor. [`Class::admit_for`] finds the
//!   disk of a file.
//! - **Through the page cache**: [`Class::buffered_writer`] schedules write-back of dirty bytes in
//!   the class. [`Class::read_at`] asks for a permit if the disk has to read. [`Class::sync_data`]
//!   writes back dirty bytes in parts before it flushes.
//! - **Files**: a [`File`] is opened through the scheduler, or [taken
//!   over](Scheduler::file_from_fd) from a program that opened it. The scheduler sends its requests
//!   by io_uring, or if that is forbidden by linux-aio or threads. Any [`IoBuf`] is a buffer.
//! - **Shards**: a thread-per-core program makes a queue per thread, and drives it from its own
//!   loop: see [`shard`].
//! - **Deletes**: a [`Deleter`] frees files in steps, each scheduled in a class. A plain unlink
//!   would cause a storm of discards, behind which reads wait.
//!
//! A child that is forked without exec cannot use its parent's schedulers. Requests and changes
//! there are refused with [`Forked`], look-ups find nothing, and dropping handles does not affect
//! the parent. The child can make a new scheduler.
//!
//! # Threads and tasks
//!
//! Handles and named futures are `Send`, `Sync` and `Unpin`; futures of `async` functions are
//! `Send`. A [`ThreadPermit`], an [`Entered`], an [`engine::Engine`] and a [`shard::Shard`] stay in
//! their thread. No waker is cloned, woken or dropped under a lock of the library, so wakers may
//! call it. Threads of the library may run wakers. These may wait for permits, but a call that
//! would wait for such a thread fails with an error of the kind
//! [`Deadlock`](std::io::ErrorKind::Deadlock).
//!
//! All handles share one budget per disk, and one account per class. A [`Scheduler::snapshot`] has
//! the counters. The cargo feature `metrics` converts it to OpenMetrics text, and the feature
//! `endpoint` serves that text.
//!
//! ```
//! use std::fs::File;
//! use std::io::Read;
//!
//! use forebay::{DiskConfig, DiskRates, Op, Scheduler};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("table"), [7; 4096])?;
//! let rates = DiskRates {
//!     read_iops: 218_000,
//!     write_iops: 121_000,
//!     read_bandwidth: 1_542_000_000,
//!     write_bandwidth: 1_130_000_000,
//! };
//! let scheduler = Scheduler::builder()
//!     .disk(DiskConfig::new("data", rates).mountpoint(dir.path()))
//!     .build()?;
//! let queries = scheduler.add_class("queries", 1000)?;
//! let compaction = scheduler.add_class("compaction", 100)?;
//!
//! // a thread that compacts says so once
//! let _entered = compaction.enter();
//! assert_eq!(scheduler.current_class(), compaction);
//!
//! // around I/O that the disk does at once, a permit
//! let mut page = [0; 4096];
//! let mut table = File::open(dir.path().join("table"))?;
//! let permit = queries.admit(Op::Read, 4096)?;
//! let result = table.read_exact(&mut page);
//! permit.complete(&result);
//! # assert_eq!(page, [7; 4096]);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accounting;
mod admit;
mod backlog;
mod buffer;
mod buffered;
mod class;
mod deleter;
mod direct_file;
mod dirty_limits;
mod disk;
mod disk_groups;
pub mod engine;
mod events;
mod extents;
mod failures;
mod file;
mod group;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod io_queues;
mod io_thread;
mod messages;
pub mod metrics;
mod page_cache;
mod permit;
pub mod properties;
mod reactor;
mod registry;
mod scheduler;
pub mod shard;
mod siblings;
mod slow_requests;
mod sys;
mod validation;
mod wait_list;

pub use admit::{AdmitFor, AdmitForFuture, AdmitFuture, AdmitMany, AdmitParts, OnDisk};
pub use backlog::{BacklogController, BacklogError};
pub use buffer::{AlignedBuf, BufferPool, IoBuf, IoBufMut, Slice, SliceError};
pub use buffered::BufferedWriter;
pub use class::{Class, ClassGroup, Entered};
pub use deleter::{
    DeleteError, DeleteErrorCause, DeleteOperation, Deleted, DeletedHow, Deleter, DeleterError,
    DeleterOptions, Deletion, DeletionProgress, DeletionState, TRASH_NAME_DEFAULT, TrashFault,
    UnlinkReason,
};
pub use direct_file::{DirectFile, FileOptions};
pub use disk::Disk;
pub use events::Event;
pub use extents::FileExtent;
pub use failures::WriteBackError;
pub use file::{BufResult, File, Request, Timing};
pub use io_queues::{IoQueues, LOCAL_DEPTH_MIN};
pub use io_thread::REQUESTS_MAX;
pub use page_cache::{PageCacheCounters, PageCacheSupport};
pub use permit::{AdmitError, Permit, ThreadPermit};
pub use registry::{
    ClassError, DEFAULT_CLASS, DEFAULT_DISK, DiskConfig, IO_GROUPS_MAX, SchedulerError, Unlisted,
    UnlistedError,
};
pub use scheduler::{Scheduler, SchedulerBuilder};
pub use siblings::SharedMemoryError;
pub use slow_requests::SlowRequest;
pub use sys::clock::Clock;
pub use sys::fork::Forked;
pub use validation::RequestError;

/// The scheduler's core, without I/O, clocks or threads. Some of its types are in this crate's
/// signatures.
pub use forebay_core;
pub use forebay_core::{
    Access, Blocked, CLASS_GROUP_DEPTH_MAX, CLASS_GROUPS_MAX, CLASSES_MAX, Ceiling, ClassCounters,
    Control, DiskRates, DiskTime, FixedControl, GroupCounters, LATENCY_GOAL_DEFAULT, LatencyTarget,
    LatencyTargetError, LatencyTargetStatus, Limits, LoadStatus, ModelError, Op, Policy,
    QueueCounters, SHARDS_MAX, SHARES_MAX, ServiceOrder,
};
