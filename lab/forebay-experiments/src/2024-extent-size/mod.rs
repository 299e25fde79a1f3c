//! Table 7: by extent size.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::BY_EXTENT_SIZE;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-extent-size",
    alias: "S4-12",
    title: "Reads alongside holes punched at a rate, by extent size",
    source: SOURCE,
};

fn run(setting: Setting) -> Result<Report, String> {
    BY_EXTENT_SIZE.report(setting, "Reads alongside holes of 32 MB, 16/s, in files of 1 GB")
}
