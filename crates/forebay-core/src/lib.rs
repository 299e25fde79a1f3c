//! The scheduling decisions of forebay: which disk request is next, and whether it may be dispatched now.
//!
//! A disk serves more as more requests are in flight, up to a point. Beyond that point requests only wait
//! inside the disk, where nobody can order them. This crate keeps them waiting in the application instead.
//!
//! - Each request costs the disk time that it takes ([`DiskModel`]), and waits in a priority class with
//!   shares.
//! - Start-time fair queueing decides which class is next.
//! - The budget decides when the next request is dispatched ([`Policy`]). The *pace* hands out one second
//!   of disk time per second, and the *window* limits the unfinished work in the disk.
//!
//! This crate does no I/O, reads no clock, starts no thread and takes no lock. Each thread (a *shard*) owns
//! an [`IoQueue`], and drives it with verbs. The queues of one device form an [`IoGroup`]. They share its
//! budget and one account per class, so that shares hold across threads.
//!
//! ```
//! use forebay_core::{DiskModel, DiskRates, GroupConfig, IoGroup, Op, Outcome, Policy, Time};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = DiskModel::from_rates(&DiskRates {
//!     read_iops: 100_000,
//!     write_iops: 50_000,
//!     read_bandwidth: 1_000_000_000,
//!     write_bandwidth: 500_000_000,
//! })?;
//! let group = IoGroup::new(GroupConfig::new(model, Policy::pace_window()));
//! let queries = group.add_class(None, 1000)?;
//! let compaction = group.add_class(None, 100)?;
//!
//! let mut queue = group.join()?;
//! let now = Time::from_nanos(1_000);
//! let bulk = queue.enqueue(now, compaction, Op::Write, 128 * 1024)?;
//! let read = queue.enqueue(now, queries, Op::Read, 4096)?;
//! while let Some(ticket) = queue.poll_dispatch(now) {
//!     assert!(ticket == bulk || ticket == read);
//!     // start the I/O; when the disk has answered:
//!     let later = Time::from_nanos(90_000);
//!     let completion = queue.complete(later, ticket, Outcome::Done)?;
//!     assert_eq!(completion.disk_nanos, 89_000);
//! }
//! # Ok(()) }
//! ```
//!
//! # Limits
//!
//! - [`CLASSES_MAX`] classes and [`CLASS_GROUPS_MAX`] groups of classes, [`CLASS_GROUP_DEPTH_MAX`] deep.
//! - [`SHARDS_MAX`] shards per group. A group is one device; an application has one group per device.
//! - Rates up to [`IOPS_MAX`] and [`BANDWIDTH_MAX`].
//! - A clock up to 4.5 years after its epoch.
#![cfg_attr(not(loom), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), forbid(clippy::float_arithmetic))]

extern crate alloc;

mod access;
mod budget;
mod class_tree;
mod cost;
mod counters;
mod decay;
mod discards;
mod disk_model;
mod error_text;
mod fair_queue;
mod flow;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod io_group;
mod latency_target;
mod limit;
#[cfg(all(test, loom))]
mod loom_tests;
mod peers;
mod published;
mod queue;
mod requests;
mod seek;
mod shard_set;
mod shared;
mod sync;
mod tag;
mod tag_heap;
mod time;

pub use access::{Access, Op, Place};
pub use budget::{Ceiling, Control, FixedControl, GroupCounters, LATENCY_GOAL_DEFAULT, Policy};
pub use class_tree::{
    CLASS_GROUP_DEPTH_MAX, CLASS_GROUPS_MAX, CLASSES_MAX, ClassError, ClassGroupId, ClassId,
    ClassNode, SHARES_MAX,
};
pub use cost::{
    BANDWIDTH_MAX, CostCurve, CostError, IOPS_MAX, IOPS_SIZE_DEFAULT, LADDER_POINTS_MAX,
    SATURATION_LENGTH_DEFAULT,
};
pub use counters::{Blocked, ClassCounters, QueueCounters};
pub use discards::{DISCARD_PART, DISCARD_STEP_NANOS, DISCARDS_MAX, Step, StepMax};
pub use disk_model::{
    DISCARD_SPEEDUP, DiskModel, DiskRates, MIX_PRICES, MixPrices, ModelError, PRICE_ONE,
    REQUEST_LEN_MAX, REQUEST_LEN_MIN,
};
pub use fair_queue::ServiceOrder;
pub use io_group::{GroupConfig, GroupFull, IoGroup, LoadStatus};
pub use latency_target::{LatencyTarget, LatencyTargetError, LatencyTargetStatus};
pub use limit::Limits;
pub use queue::{
    COST_UNCHECKED_LEN, Completion, EnqueueError, IoQueue, Outcome, REQUEST_COST_MAX, StaleTicket,
};
pub use requests::{Join, Parts, Ticket};
pub use seek::{RUN_CHARGED_NANOS, RUN_NANOS};
pub use shard_set::{SHARDS_MAX, ShardId};
pub use time::{DiskTime, Time, saturating_nanos};
