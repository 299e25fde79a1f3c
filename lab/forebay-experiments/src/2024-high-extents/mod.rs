//! Table 3: many extents.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::HIGH_EXTENTS;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-high-extents",
    alias: "S4-4",
    title: "Reads alongside deletes of small extents, by deletes per second",
    source: SOURCE,
};

fn run(setting: Setting) -> Result<Report, String> {
    HIGH_EXTENTS.report(setting, "Reads alongside unlinked files of 32 MB (1 MB extents)")
}
