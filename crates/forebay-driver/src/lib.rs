//! One thread's disk requests, from their submission to their completion.
//!
//! A [`Driver`] is between the scheduler's I/O queues (`forebay-core`) and an
//! engine, which is whatever carries commands out: io_uring, linux-aio, a pool
//! of threads, or a simulated disk. It does no I/O and reads no clock; its owner calls the
//! verbs, and tells it the time.
//!
//! ```text
//!   submit           poll_dispatch          handle_completion    poll_completion
//! request ──> parts ──> I/O queue ──> engine ──> parts joined ──> completion
//!                                  ^            │
//!                                  └────────────┘ poll_unsent: rests of short
//!                                                 transfers, EAGAIN, refusals
//! ```
//!
//! A request is one [`Command`]. It is cut into parts that each cost at most
//! what may wait in the disk; the I/O queue and the engine take each part for a
//! request. All parts are queued, or none. A short transfer is continued, what
//! failed for the moment is tried again, and the parts are joined into one
//! [`Completion`]. Where a thread has the requests of others, they wait in
//! [`Submitters`] before they are submitted.
//!
//! Decision: `docs/decisions/0023-one-driver.md`.

#![forbid(unsafe_code)]

mod class;
mod command;
mod completion;
mod deficit_round_robin;
mod driver;
mod outcome;
mod queue;
mod request;
mod slots;
mod submission;
mod submitters;
mod table;
#[cfg(test)]
mod tests;

pub use class::{QUEUES_MAX, QueueClass, queue_for};
pub use command::{Command, Rest};
pub use completion::{Cancel, PartEnd};
pub use driver::{Dispatch, Driver, DriverCounters, Resent};
pub use request::{Completion, OperationId, PartId};
pub use submitters::Submitters;
