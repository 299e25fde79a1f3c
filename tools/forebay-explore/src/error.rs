//! Why no region can be fitted.

use thiserror::Error;

use crate::goal::Goal;

/// Why no region can be fitted; the text says what to do.
#[derive(Clone, Error, PartialEq)]
pub enum Error {
    /// Too few loads with reads were measured, or none with writes.
    #[error(
        "{found} usable {}; a fit needs at least {least}, both of reads alone and of reads \
         with writes: measure more loads, with --grid of 6 or more or with --full, or lower rates",
        if *.found == 1 { "cell" } else { "cells" }
    )]
    TooFewCells {
        /// How many there are.
        found: usize,
        /// How many there must be.
        least: usize,
    },
    /// The percentile was not measured, or only bounded.
    #[error("the surface has no measured {percentile}; use one of these with --goal: {known}")]
    NoPercentile {
        /// The one that was asked for.
        percentile: &'static str,
        /// Those that there are.
        known: String,
    },
    /// No disk time is left for a queue, or not even for the request.
    #[error(
        "the goal {goal} is below the latency of the idle disk, {base}: use a longer one, such as \
         --goal {goal_possible}"
    )]
    BelowBase {
        /// The goal.
        goal: Goal,
        /// The least median that was measured.
        base: String,
        /// One that may be met.
        goal_possible: Goal,
    },
    /// Every load breaks the goal.
    #[error(
        "no load of the surface keeps {goal}; the shortest measured is {least}: use a longer one, \
         such as --goal {goal_possible}"
    )]
    NothingMeets {
        /// The goal.
        goal: Goal,
        /// The least latency of the goal's percentile.
        least: String,
        /// One that is met.
        goal_possible: Goal,
    },
}

forebay_core::debug_as_display!(Error);

impl Error {
    /// A goal that the surface meets, where it meets one of this percentile.
    pub fn goal_possible(&self) -> Option<Goal> {
        match self {
            Self::BelowBase { goal_possible, .. } | Self::NothingMeets { goal_possible, .. } => {
                Some(*goal_possible)
            }
            Self::TooFewCells { .. } | Self::NoPercentile { .. } => None,
        }
    }
}
