//! Table 6: by file size.

use crate::articles::y2024::SOURCE;
use crate::articles::y2024::tables::BY_FILE_SIZE;
use crate::experiment::{Experiment, Setting};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2024-file-size",
    alias: "S4-11",
    title: "Reads beside holes punched at a rate, by file size",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: include_str!("known.yaml"),
    run,
};

fn run(setting: Setting) -> Result<Report, String> {
    BY_FILE_SIZE.report(setting, "Reads beside holes of 32 MB, 16/s (32 MB extents)")
}
