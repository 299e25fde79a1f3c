//! The scheduling decisions of forebay, free of I/O, threads and clocks.
#![cfg_attr(not(loom), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod base_latency;
mod budget;
mod class_tree;
mod cost;
mod counters;
mod disk_model;
mod fair_queue;
mod flow;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod io_group;
mod io_queue;
mod limit;
#[cfg(all(test, loom))]
mod loom_tests;
mod op;
mod overdue;
mod pace;
mod peers;
mod requests;
mod split;
mod sync;
mod tag_heap;
mod time;

pub use budget::{LATENCY_GOAL_DEFAULT, Policy};
pub use class_tree::{
    CLASS_GROUP_DEPTH_MAX, CLASS_GROUPS_MAX, CLASSES_MAX, ClassError, ClassGroupId, ClassId,
    SHARES_MAX,
};
pub use cost::{
    BANDWIDTH_MAX, CostCurve, CostError, IOPS_MAX, IOPS_SIZE_DEFAULT, LADDER_POINTS_MAX,
    SATURATION_LENGTH_DEFAULT,
};
pub use counters::{Blocked, ClassCounters, QueueCounters};
pub use disk_model::{DiskModel, DiskRates, ModelError, REQUEST_LEN_MAX, REQUEST_LEN_MIN};
pub use io_group::{GroupConfig, GroupFull, IoGroup};
pub use io_queue::{Completion, EnqueueError, IoQueue, Outcome, StaleTicket};
pub use limit::Limits;
pub use op::Op;
pub use peers::{SHARDS_MAX, ShardId};
pub use requests::Ticket;
pub use split::{Join, Parts};
pub use time::{DiskTime, Time};
