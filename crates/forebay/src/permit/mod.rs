//! Permits to do I/O, handed out in the order of the scheduler.
//!
//! The permits of a disk come from one queue behind a lock. The holder of the
//! lock grants whatever may go, names the waiter of each grant, and wakes them
//! after releasing it. One of the blocked threads sleeps only until the queue
//! must be polled next, for all; if all who wait are tasks, a timer thread does, and another one
//! while that runs wakers, which may block.

mod batch;
mod batch_queue;
mod block_on;
mod disk_group;
mod error;
mod grant;
mod held_permits;
#[cfg(test)]
mod loom_tests;
mod overflow;
mod parking;
mod queue;
mod request;
mod state;
mod tasks;
mod timer;
mod waiters;
mod wakeups;

pub(crate) use self::batch_queue::Batched;
pub(crate) use self::block_on::block_on;
pub(crate) use self::disk_group::DiskGroup;
pub use self::error::AdmitError;
pub(crate) use self::grant::Grant;
pub use self::grant::{Permit, ThreadPermit};
pub(crate) use self::held_permits::{holds_permit, holds_permit_now};
pub(crate) use self::parking::Parking;
pub(crate) use self::queue::PermitQueue;
pub(crate) use self::request::{BatchRequest, NoGrant, PermitRequest};
pub(crate) use self::tasks::Started;
