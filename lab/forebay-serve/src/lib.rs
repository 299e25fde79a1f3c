//! A simulated disk in real time.
//!
//! [`Served::mount`] shows a [`SimDisk`](forebay_sim::disk::SimDisk) as one file
//! in a directory, through FUSE. Every read, write, flush and discard of that
//! file is given to the simulated disk under the real clock, and replied to when
//! the disk has finished it: late, failed, or not at all while it hangs. The
//! data is kept, so a file system on top of the file works:
//! `losetup --direct-io=on` makes a block device of it.
//!
//! # How a request goes
//! 1. The kernel hands it to one of two *session* threads. They check its
//!    alignment, store written data, and submit it to the simulated disk.
//! 2. The *disk* thread holds the timer. When the disk has finished a request,
//!    it sends the reply itself, or has one of the *reply* threads do so where
//!    much data is to be copied.
//!
//! The way through the kernel and these threads costs time of its own. It is
//! measured once when the disk is mounted ([`Served::overhead`]), and every
//! reply leaves that much before the simulated disk would give it.
//!
//! # Alignment
//! Offsets and lengths that are no multiple of the sector are refused with
//! `EINVAL`, with or without `O_DIRECT`, for the page cache is never used. The
//! kernel cuts requests above 1 MiB at borders of pages in memory, so the memory
//! of such requests must be aligned to the sector too.
//!
//! # Power cuts
//! A disk with a volatile write cache ([`ServeConfig::write_cache`]) promises what a flush covers:
//! all writes and discards that were completed when it arrived. At a cut
//! ([`Served::cut_power_after`]) of the others some are lost and some kept, in any order, and of
//! some a part of the sectors; no sector is torn.
//!
//! # Where the timing ends
//! A request that arrives within that overhead after a reply left counts as
//! having arrived when that reply was due. On a busy machine the threads
//! need real-time priority ([`ServeConfig::realtime`]) to keep time;
//! [`ServeStats::lateness`] tells how well they did.

mod calibration;
mod config;
mod disk_thread;
mod file_system;
mod realtime;
mod refusal;
mod reply;
mod served;
mod stats;
mod store;
mod write_cache;

pub use config::ServeConfig;
pub use served::Served;
pub use stats::{LatencySummary, RequestCounts, ServeStats};
pub use write_cache::{WriteCacheConfig, WriteCacheStats};
