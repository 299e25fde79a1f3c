//! How the threads of a run share the scheduler.

use clap::ValueEnum;

/// How the threads of a run share the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Topology {
    /// Each thread has an I/O queue and does its own I/O
    PerThread,
    /// One I/O queue for all threads, which ask it for permits and do their own I/O
    Shared,
    /// --io-queues threads with an I/O queue each do the I/O that all others send them
    Coordinators,
}

impl Topology {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PerThread => "per-thread",
            Self::Shared => "shared",
            Self::Coordinators => "coordinators",
        }
    }
}
