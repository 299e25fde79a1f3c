//! What must hold at every step of a run, whatever the load and the disk do.

use core::fmt;

use forebay_core::{Completion, DiskModel, Op, Policy, Ticket, Time};
use forebay_load::job_file::JobFile;

use crate::simulation::{Scheduler, Shard, SimulationConfig, SimulationError};

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// The number of the shard, if it concerns one.
    pub shard: Option<u32>,
    /// The name of the class, if it concerns one.
    pub class: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.at.as_nanos())?;
        if let Some(shard) = self.shard {
            write!(f, ", shard {shard}")?;
        }
        if let Some(class) = &self.class {
            write!(f, ", class `{class}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

pub(crate) struct Invariants;
impl Invariants {
    pub(crate) fn new(_: &SimulationConfig, _: &DiskModel, _: Policy, _: &[u32]) -> Self {
        Self
    }
    pub(crate) fn enqueued(&mut self, _: Time, _: (usize, usize), _: Ticket, _: (usize, Op, u64)) {}
    pub(crate) fn dispatched(&mut self, _: Time, _: (usize, usize), _: Ticket) {}
    pub(crate) fn completed(
        &mut self,
        _: Time,
        _: (usize, usize),
        _: Ticket,
        _: Option<Completion>,
    ) {
    }
    pub(crate) fn before_step(&mut self, _: Time, _: &Scheduler) {}
    pub(crate) fn after_step(
        &mut self,
        _: Time,
        _: &Scheduler,
        _: &[Shard],
    ) -> Result<(), SimulationError> {
        Ok(())
    }
    pub(crate) fn shares_changed(&mut self, _: &JobFile, _: &str, _: u32) {}
}
