//! Table 1: without online discard.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::DISCARD_OFF;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-discard-off",
    alias: "S4-2",
    title: "Reads alongside deletes, online discard off",
    source: SOURCE,
};

fn run(setting: Setting) -> Result<Report, String> {
    DISCARD_OFF
        .report(setting, "Reads alongside unlinked files of 128 MB (32 MB extents), discard off")
}
