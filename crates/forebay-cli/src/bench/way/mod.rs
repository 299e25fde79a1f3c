//! The ways in which the load of a thread gets to the disk.
//!
//! They are those of the library: a shard per thread, one queue of permits that all threads
//! share, and I/O threads to which requests are sent.

mod coordinators;
mod per_thread;
mod permits;
mod ready;
mod request;

use std::io;

use forebay::engine::EngineConfig;

use self::coordinators::Coordinators;
use self::per_thread::PerThread;
use self::permits::Permits;
pub(super) use self::request::{Done, Submission, Way, unless_out_of_memory};
use super::scheduler::Scheduled;
use super::topology::Topology;

/// The way of the calling thread.
pub(super) fn of(
    topology: Topology,
    scheduled: &Scheduled,
    config: &EngineConfig,
) -> io::Result<Box<dyn Way>> {
    Ok(match topology {
        Topology::PerThread => Box::new(PerThread::new(scheduled, config)?),
        Topology::Shared => Box::new(Permits::new(scheduled, config)?),
        Topology::Coordinators => Box::new(Coordinators::new(scheduled)),
    })
}
