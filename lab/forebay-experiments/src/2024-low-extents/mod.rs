//! Table 2: few extents.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::LOW_EXTENTS;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-low-extents",
    alias: "S4-3",
    title: "Reads alongside deletes of large extents, by deletes per second",
    source: SOURCE,
};

fn run(setting: Setting) -> Result<Report, String> {
    LOW_EXTENTS.report(setting, "Reads alongside unlinked files of 128 MB (32 MB extents)")
}
