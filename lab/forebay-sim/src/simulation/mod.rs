//! A run of a job file against a simulated disk, on a virtual clock.
//!
//! The shards of the run are those of `forebay bench`, without threads: each has the same
//! generators, I/O queues and recorders, and is given its turn when a command has finished, when
//! its queue or its load asks for it, or when another shard wakes it. Only the clock, the disk and
//! the processor are made up. The same configuration yields the same run on every machine, down
//! to the byte.
//!
//! Memory is bounded however long a run is: requests live in slabs as large as the load is deep,
//! each shard has one alarm, and what is recorded has a fixed size.

mod alarms;
mod changes;
mod engine;
mod environment;
mod error;
mod event_queue;
mod layout;
mod observation;
mod outcome;
mod run;
mod scheduler;
mod series;
mod setup;
mod shard;
mod trace;
mod watch;

pub use crate::config::{
    Cancels, Change, Coordinators, LongTurns, Period, Polling, SchedulerConfig, SimulationConfig,
    Stalls, TRACE_BUCKETS_DEFAULT, TransferFaults, What,
};
pub use error::SimulationError;
pub use observation::Observation;
pub use outcome::Outcome;
pub use setup::Simulation;
pub use trace::{ClassTrace, Correction, Sample, Trace, Waits};

#[cfg(test)]
mod tests;
