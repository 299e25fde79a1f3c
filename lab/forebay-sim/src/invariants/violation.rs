//! The report of a violated invariant.

use core::fmt;

use forebay_core::Time;

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

/// What is wrong, and with which class of the job file if it is about one.
pub(super) type Wrong = (Option<usize>, String);
