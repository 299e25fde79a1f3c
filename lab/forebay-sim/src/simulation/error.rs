//! What can be wrong with a simulation.

use core::fmt;

use forebay_core::{ClassError, GroupFull, ModelError, Time};

use crate::config::What;
use crate::invariants::Violation;

/// Why there is no outcome.
#[derive(Clone, PartialEq)]
pub enum SimulationError {
    /// The true rates of the disk make no model.
    Model(ModelError),
    /// The scheduler cannot take the classes of the job file, or a change of their shares.
    Classes(ClassError),
    /// The jobs name more shards than a group has.
    Shards(GroupFull),
    /// There is no memory for what is recorded.
    Memory(String),
    /// A period is for a job that the job file does not have, or has a period already.
    Period {
        /// The name of the job.
        job: String,
    },
    /// A change is about a class, or a group of classes, that the job file does not have.
    Change(What),
    /// A job that is said to hold what it is granted is not in the job file.
    Holder {
        /// The name of the job.
        job: String,
    },
    /// The files do not fit the disk.
    Capacity {
        /// The job whose files are the first not to fit.
        job: String,
        /// Bytes up to the end of its files.
        needed: u64,
        /// Bytes of the disk.
        capacity: u64,
    },
    /// A figure is zero that must not be.
    Zero(&'static str),
    /// The clock does not move on: neither the disk nor the load takes any time.
    Standstill(Time),
    /// The disk finished a command that nobody sent, or the same one twice.
    Disk {
        /// When.
        at: Time,
        /// The number of the command.
        id: u64,
    },
    /// A random scenario is not a possible one: a defect of the swarm.
    Scenario(String),
    /// An invariant does not hold: a defect of the scheduler.
    Invariant(Violation),
}

forebay_core::debug_as_display!(SimulationError);

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => write!(f, "the rates of the disk make no model: {error}"),
            Self::Classes(error) => write!(f, "the scheduler cannot take these classes: {error}"),
            Self::Shards(error) => write!(f, "{error}; run the jobs on fewer shards"),
            Self::Memory(error) => write!(f, "no memory to record the run: {error}"),
            Self::Period { job } => {
                write!(f, "job `{job}` has two periods or is not in the job file; check its name")
            }
            Self::Change(what) => {
                write!(f, "{what:?}: there is no such class or group of classes; check the name")
            }
            Self::Holder { job } => write!(f, "no job is called `{job}`; it cannot hold anything"),
            Self::Capacity { job, needed, capacity } => write!(
                f,
                "the files of job `{job}` end at byte {needed}, but the disk has {capacity}; \
                 lower its `data_size`"
            ),
            Self::Zero(field) => write!(f, "{field} is 0; expected at least 1"),
            Self::Standstill(at) => write!(
                f,
                "the clock stands still at {} ns: the disk takes no time (give it a latency), or \
                 shards wake each other without end (a bug of the scheduler)",
                at.as_nanos()
            ),
            Self::Disk { at, id } => write!(
                f,
                "at {} ns the simulated disk finished command {id}, which it does not have: \
                 a defect of the disk",
                at.as_nanos()
            ),
            Self::Scenario(error) => write!(f, "the scenario is impossible, a defect: {error}"),
            Self::Invariant(violation) => write!(f, "{violation}"),
        }
    }
}

impl std::error::Error for SimulationError {}
