//! The same for another NVMe disk that diskplorer has measured.

use crate::articles::y2022;
use crate::articles::y2022::edges::Compared;
use crate::experiment::{Experiment, Setting, experiment};
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-second-disk",
    alias: "S2-2",
    title: "Another surface that diskplorer measured",
    source: y2022::SOURCE,
};

const COMPARED: Compared = Compared {
    csv: include_str!("../../../forebay-sim/presets/i3en.3xlarge.csv"),
    dies: include_str!("disk-of-dies.yaml"),
    made_of: "flash: a controller of 223 k reads/s; 33 dies of 288 k reads/s, which program 14 KiB at a \
              time at 1.2 GB/s",
    preset: "i3en.3xlarge",
};

fn run(setting: Setting) -> Result<Report, String> {
    COMPARED.report(setting)
}
