//! What can be wrong with a simulation.

use forebay_core::{ClassError, GroupFull, ModelError, Time};

use crate::config::What;
use crate::invariants::Violation;

/// Why there is no outcome.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The true rates of the disk make no model.
    #[error("the rates of the disk make no model: {0}")]
    Model(ModelError),
    /// The scheduler cannot take the classes of the job file, or a change of their shares.
    #[error("the scheduler cannot take these classes: {0}")]
    Classes(ClassError),
    /// The jobs name more shards than a group has.
    #[error("{0}; run the jobs on fewer shards")]
    Shards(GroupFull),
    /// There is no memory for what is recorded.
    #[error("no memory to record the run: {0}")]
    Memory(String),
    /// A period is for a job that the job file does not have, or has a period already.
    #[error("job `{job}` has two periods or is not in the job file; check its name")]
    Period {
        /// The name of the job.
        job: String,
    },
    /// A change is about a class, or a group of classes, that the job file does not have.
    #[error("{0:?}: there is no such class or group of classes; check the name")]
    Change(What),
    /// A job that should hold its permits is not in the job file.
    #[error("no job is called `{job}`; it cannot hold anything")]
    Holder {
        /// The name of the job.
        job: String,
    },
    /// The files do not fit the disk.
    #[error(
        "the files of job `{job}` end at byte {needed}, but the disk has {capacity}; lower its \
         `data_size`"
    )]
    Capacity {
        /// The job whose files are the first not to fit.
        job: String,
        /// Bytes up to the end of its files.
        needed: u64,
        /// Bytes of the disk.
        capacity: u64,
    },
    /// A figure is zero that must not be.
    #[error("{0} is 0; expected at least 1")]
    Zero(&'static str),
    /// The clock does not move on: neither the disk nor the load takes any time.
    #[error(
        "the clock stands still at {} ns: the disk takes no time (give it a latency), or shards \
         wake each other without end (a bug of the scheduler)",
        .0.as_nanos()
    )]
    Standstill(Time),
    /// The disk finished a command that nobody sent, or the same one twice.
    #[error(
        "at {} ns the simulated disk finished command {id}, which it does not have: a defect of the \
         disk",
        at.as_nanos()
    )]
    Disk {
        /// When.
        at: Time,
        /// The number of the command.
        id: u64,
    },
    /// A random scenario is not a possible one: a defect of the swarm.
    #[error("the scenario is impossible, a defect: {0}")]
    Scenario(String),
    /// An invariant does not hold: a defect of the scheduler.
    #[error("{0}")]
    Invariant(Violation),
}

forebay_core::debug_as_display!(SimulationError);
