//! What the kernel sends to disks, as its block tracepoints tell it.
//!
//! A [`Recording`] has an instance of tracefs of its own, so that it disturbs no other and no other
//! disturbs it; it needs root. What it reads are lines, [`BlockEvent`]s once they are understood.
//! Counted by slots of time ([`SlotCounts`]) they are summed up as a [`Summary`]: how evenly requests
//! came, or in which bursts.
//!
//! Nothing here waits: [`Recording::read`] returns what there is.
#![forbid(unsafe_code)]

mod block_event;
mod bursts;
mod error;
mod instance;
mod recording;
mod slot_counts;
mod summary;
mod tracefs;

pub use block_event::{BlockEvent, Tracepoint};
pub use bursts::{Burst, Period};
pub use error::TraceError;
pub use recording::{Lost, Recording};
pub use slot_counts::{SLOT, SLOTS_MAX, Slot, SlotCounts};
pub use summary::{Shape, Summary};
