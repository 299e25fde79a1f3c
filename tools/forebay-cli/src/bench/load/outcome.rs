//! What comes of a thread's load.

use forebay_core::Time;
use forebay_load::recorder::Recorder;

use super::job::Failures;

/// What a thread brings home.
#[derive(Debug)]
pub(in crate::bench) struct LoadOutcome {
    pub(in crate::bench) shard: u32,
    /// The index of each job in its file, and what was recorded of it.
    pub(in crate::bench) records: Vec<(usize, Recorder)>,
    /// What each job failed at, in the same order.
    pub(in crate::bench) failures: Vec<Failures>,
    /// The jobs that had deleted all their files before that, and when.
    pub(in crate::bench) deleted: Vec<(usize, Time)>,
    /// When the measured part ended.
    pub(in crate::bench) finished: Time,
    /// The part of the run in which the thread waited for a processor, where that is known.
    pub(in crate::bench) processor_wait: Option<f64>,
}
