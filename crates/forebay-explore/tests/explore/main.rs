//! Regions, fitted to surfaces that are known and to some that were measured.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod bad_input;
mod hostile;
mod measured;
mod simulated;
mod synthetic;

use forebay_explore::{Fit, fit};
use forebay_sim::surface::Grid;

/// Name and text of the measured surfaces.
const SURFACES: [(&str, &str); 4] = [
    ("gcp-pd-SSD-2TB", include_str!("../../../forebay-sim/presets/gcp-pd-SSD-2TB.csv")),
    (
        "hdd-toshiba-DT01ACA200",
        include_str!("../../../forebay-sim/presets/hdd-toshiba-DT01ACA200.csv"),
    ),
    ("i3.2xlarge", include_str!("../../../forebay-sim/presets/i3.2xlarge.csv")),
    ("i3en.3xlarge", include_str!("../../../forebay-sim/presets/i3en.3xlarge.csv")),
];

fn surface(name: &str) -> Grid {
    let (_, text) = SURFACES.into_iter().find(|(known, _)| *known == name).unwrap();
    Grid::parse_csv(name, text).unwrap()
}

fn fitted(surface: &Grid, goal: &str) -> Fit {
    fit(surface, goal.parse().unwrap()).unwrap()
}
