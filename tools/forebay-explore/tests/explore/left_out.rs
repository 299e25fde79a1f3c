//! How wrong regions are about loads left out of the fit, on all surfaces that there are.

use std::convert::Infallible;

use forebay_explore::{Goal, Matrix, SimulatedDisk, fit};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

use crate::{SURFACES, surface};

/// The measured surfaces, and the whole matrix of every simulated disk.
fn all() -> Vec<(String, Grid)> {
    let measured = SURFACES.iter().map(|(name, _)| ((*name).to_owned(), surface(name)));
    let simulated = DiskSpec::presets().map(|name| {
        let mut disk = SimulatedDisk::new(DiskSpec::resolve(name).unwrap());
        let matrix = Matrix::even(disk.rates(), 20);
        let full = matrix.full(|at| Ok::<_, Infallible>(disk.measure(at))).unwrap();
        (format!("{name}, simulated"), full)
    });
    measured.chain(simulated).collect()
}

/// No constant of the fit belongs to a disk, so that every surface is one of a disk that took no
/// part, but for two constants of the smoothing.
#[test]
#[ignore = "some three minutes with --release"]
fn on_no_surface_is_a_region_worse_than_the_line_about_loads_left_out_of_the_fit() {
    let mut sums = Vec::new();
    for (name, surface) in all() {
        for goal in ["p95=500us", "p95=1ms", "p95=2ms"] {
            let goal: Goal = goal.parse().unwrap();
            let Ok(fit) = fit(&surface, goal) else { continue };
            let [allowed, rejected] =
                [fit.quality.unsafe_allowed, fit.quality.safe_rejected].map(|part| part * 100.0);
            let [sum, line] = [fit.quality, fit.line].map(|quality| quality.sum() * 100.0);
            println!("| {name} | {goal} | {allowed:.1} + {rejected:.1} | {sum:.1} | {line:.1} |");
            assert!(sum <= line, "{name} {goal}");
            sums.push(sum);
        }
    }
    sums.sort_by(f64::total_cmp);
    let median = sums[sums.len() / 2];
    println!("median of {}: {median:.1} %", sums.len());
    assert!(median <= 10.0, "{median}");
}
