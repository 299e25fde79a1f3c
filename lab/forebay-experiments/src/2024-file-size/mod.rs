//! Table 6: by file size.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::BY_FILE_SIZE;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2024-file-size",
    alias: "S4-11",
    title: "Reads alongside holes punched at a rate, by file size",
    source: SOURCE,
};

fn run(setting: Setting) -> Result<Report, String> {
    BY_FILE_SIZE.report(setting, "Reads alongside holes of 32 MB, 16/s (32 MB extents)")
}
