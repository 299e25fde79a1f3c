//! Disks of all kinds, and those that follow latency surfaces, against what was stated or measured.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod closed_loop;
mod edge;
mod errors;
mod faults;
mod file_errors;
mod fit;
mod foreign;
mod kinds;
mod load;
mod presets;
mod readers;
mod sizes;

/// Name and text of the measured surfaces.
const SURFACES: [(&str, &str); 4] = [
    ("gcp-pd-SSD-2TB", include_str!("../../presets/gcp-pd-SSD-2TB.csv")),
    ("hdd-toshiba-DT01ACA200", include_str!("../../presets/hdd-toshiba-DT01ACA200.csv")),
    ("i3.2xlarge", include_str!("../../presets/i3.2xlarge.csv")),
    ("i3en.3xlarge", include_str!("../../presets/i3en.3xlarge.csv")),
];
