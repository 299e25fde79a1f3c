//! The paths on which the requests of a thread get to the disk.
//!
//! They are those of the library: a shard per thread, one queue of permits that all threads
//! share, and I/O threads to which requests are sent.

mod coordinators;
mod interface;
mod per_thread;
mod permits;
mod ready;

use std::io;

use forebay::engine::EngineConfig;

use self::coordinators::Coordinators;
pub(super) use self::interface::{Completion, Submission, SubmissionPath, unless_out_of_memory};
use self::per_thread::PerThread;
use self::permits::Permits;
use super::plan::Topology;
use super::scheduler::Scheduled;

/// The path of the calling thread.
pub(super) fn of(
    topology: Topology,
    scheduled: &Scheduled,
    config: &EngineConfig,
) -> io::Result<Box<dyn SubmissionPath>> {
    Ok(match topology {
        Topology::PerThread => Box::new(PerThread::new(scheduled, config)?),
        Topology::Shared => Box::new(Permits::new(scheduled, config)?),
        Topology::Coordinators => Box::new(Coordinators::new(scheduled)),
    })
}
