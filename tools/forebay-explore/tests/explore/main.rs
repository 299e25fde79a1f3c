//! Regions, fitted to surfaces that are known and to some that were measured.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod adaptive;
mod bad_input;
mod hostile;
mod left_out;
mod measured;
mod simulated;
mod synthetic;

use forebay_explore::{Fit, fit};
use forebay_sim::surface::Grid;

/// Name and text of the measured surfaces.
const SURFACES: [(&str, &str); 4] = [
    ("gcp-pd-SSD-2TB", include_str!("../../../../lab/forebay-sim/presets/gcp-pd-SSD-2TB.csv")),
    (
        "hdd-toshiba-DT01ACA200",
        include_str!("../../../../lab/forebay-sim/presets/hdd-toshiba-DT01ACA200.csv"),
    ),
    ("i3.2xlarge", include_str!("../../../../lab/forebay-sim/presets/i3.2xlarge.csv")),
    ("i3en.3xlarge", include_str!("../../../../lab/forebay-sim/presets/i3en.3xlarge.csv")),
];

fn surface(name: &str) -> Grid {
    let (_, text) = SURFACES.into_iter().find(|(known, _)| *known == name).unwrap();
    Grid::parse_csv(name, text).unwrap()
}

fn fitted(surface: &Grid, goal: &str) -> Fit {
    fit(surface, goal.parse().unwrap()).unwrap()
}

/// How far two shapes are apart: the area that only one of them has, of what the first has.
fn apart(one: impl Fn(f64) -> f64, other: impl Fn(f64) -> f64) -> f64 {
    let parts = (0..1000).map(|part| (f64::from(part) + 0.5) / 1000.0);
    let (mut area, mut differs) = (0.0, 0.0);
    for part in parts {
        let (one, other) = (one(part).powi(2), other(part).powi(2));
        area += one;
        differs += (one - other).abs();
    }
    differs / area
}
