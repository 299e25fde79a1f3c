//! An experiment that was repeated.

use forebay_experiments::{Experiment, Report};

/// An experiment that was repeated, with its charts drawn.
pub(super) struct RepeatedExperiment {
    pub(super) experiment: Experiment,
    pub(super) report: Report,
    pub(super) charts: Vec<String>,
}
