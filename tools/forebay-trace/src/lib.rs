//! What the kernel sends to disks, as its block tracepoints tell it.
//!
//! A [`Recording`] has an instance of tracefs of its own, so that it disturbs no other and no other
//! disturbs it; it needs root. What it reads are lines, [`KernelEvent`]s once they are understood.
//! [`Recorded::read`] reads them from text that was recorded: by `blkparse`, `trace-cmd` and `perf`
//! too.
//!
//! Counted by slots of time ([`SlotCounts`]) they are summed up as a [`Summary`]: how evenly requests
//! came, or in which bursts. Followed from when they are handed over until they are done
//! ([`Requests`]) they tell how they are aligned, where they are split and what that costs
//! ([`RequestsSummary`]).
//!
//! Nothing here waits: [`Recording::read`] returns what there is.
#![forbid(unsafe_code)]

mod blkparse;
mod block_event;
mod bursts;
mod error;
mod instance;
mod kernel_line;
mod recorded;
mod recording;
mod requests;
mod summary;
mod tracefs;

pub use block_event::{Action, BlockEvent, Direction, Tracepoint};
pub use bursts::{Burst, Period, SLOT, SLOTS_MAX, Slot, SlotCounts};
pub use error::TraceError;
pub use kernel_line::KernelEvent;
pub use recorded::{NotRead, Recorded, RecordedError};
pub use recording::{Lost, Recording};
pub use requests::{
    AlignedRequests, AsyncWork, BorderKnown, BorderSummary, Chunk, CountBasis, DeviceSummary,
    DirectionSummary, ErrorCount, FileSystem, Finding, LatencySummary, Requests, RequestsSummary,
    SplitCause, SplitPart, SplitRequest, Watched,
};
pub use summary::{Shape, Summary};
pub use tracefs::Tracefs;
