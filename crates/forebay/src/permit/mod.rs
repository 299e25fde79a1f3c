//! Permits for I/O, granted in the order of the scheduler.
//!
//! The permits of a disk come from one queue behind a lock. The thread that holds the lock grants
//! all requests that may be dispatched, and collects their waiters. It wakes them after it has
//! released the lock. One blocked thread owns the deadline: it sleeps only until the queue must be
//! polled next. If only tasks wait, a timer thread owns it. While a thread runs wakers of others,
//! which may block, another thread owns the deadline.

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
