//! How the disk is made to have less.

use super::Budget;
use super::base_latency::UNKNOWN_PART;
use crate::DiskTime;

impl Budget {
    /// Whether nothing is corrected by what was measured.
    pub(crate) fn runs_at_model_rate(&self) -> bool {
        self.controller.is_figures() && self.feedback.0.speeds_permille().0 == 1000
    }

    /// What the disk does in its base latency, or a part of the goal while that is
    /// not known: while it has so much it is busy.
    pub(crate) fn done_in_base_latency(&self) -> DiskTime {
        let base = match self.base_latency() {
            DiskTime::ZERO => self.effective_goal().units() / UNKNOWN_PART,
            base => base.units(),
        };
        DiskTime::from_units(self.price().done_in(base))
    }
}
