//! What half of a surface tells about the other half.

use forebay_sim::disk::Surface;
use forebay_sim::surface::{Cell, FitErrors, Grid, Percentiles, errors, percentiles};

use crate::{SURFACES, load};

/// Fits a disk to the one half of a surface, and judges it by the other. The error of medians is
/// at most `values_p50_max` where the bounds that the disk keeps do not count.
fn judge(index: usize, values_p50_max: f64) {
    let (name, text) = SURFACES[index];
    let [fitted, judged] = Grid::parse(name, text).unwrap().checkerboard();
    let surface = Surface::fitted(&fitted);
    let simulated = |cell: &Cell| {
        load::percentiles(&mut *surface.build(1), cell.write_bandwidth, cell.read_iops)
    };
    let simulated: Vec<Percentiles> = judged.cells().iter().map(simulated).collect();
    let formula = |cell: &Cell| percentiles(&surface.model, cell.write_bandwidth, cell.read_iops);

    let found = || judged.cells().iter().zip(simulated.iter().map(|&found| Some(found)));
    let all = errors(found());
    let values = FitErrors {
        p50: errors(found().filter(|(cell, _)| !cell.median_clipped())).p50,
        p95: errors(found().filter(|(cell, _)| !cell.clipped)).p95,
    };
    println!(
        "{name}: fitted to {} cells, judged by {}; median relative error {}, without the bounds \
         that it keeps {}, of the closed form {}",
        fitted.cells().len(),
        judged.cells().len(),
        shown(all),
        shown(values),
        shown(errors(judged.cells().iter().map(|cell| (cell, formula(cell))))),
    );
    assert!(all.p50 <= 0.15, "{name}: p50 {}", all.p50);
    assert!(all.p95 <= 0.30, "{name}: p95 {}", all.p95);
    assert!(values.p50 <= values_p50_max, "{name}: p50 of values {}", values.p50);
    assert!(values.p95 <= 0.30, "{name}: p95 of values {}", values.p95);
    follows_the_formula(name, &surface);
}

fn shown(errors: FitErrors) -> String {
    format!("p50 {:.1} % p95 {:.1} %", errors.p50 * 100.0, errors.p95 * 100.0)
}

/// The disk at work does what the closed form says of it. Near the edge that is
/// true only after a longer time than the load lasts.
fn follows_the_formula(name: &str, surface: &Surface) {
    let region = surface.model.region;
    let (mut p50, mut p95) = (0.0_f64, 0.0_f64);
    for (write, read) in [(0.0, 0.2), (0.0, 0.8), (0.2, 0.2), (0.5, 0.1), (0.6, 0.02)] {
        // as far out in the region as on a straight line
        let out =
            (write + read) / region.gauge(write * region.write_bandwidth, read * region.read_iops);
        let load = (out * write * region.write_bandwidth, out * read * region.read_iops);
        let says = percentiles(&surface.model, load.0, load.1).unwrap();
        let is = load::percentiles(&mut *surface.build(1), load.0, load.1);
        p50 = p50.max((is.0 / says.0 - 1.0).abs());
        p95 = p95.max((is.1 / says.1 - 1.0).abs());
    }
    println!(
        "{name}: the simulated disk and the closed form are apart by at most p50 {:.1} % p95 {:.1} %",
        p50 * 100.0,
        p95 * 100.0,
    );
    assert!(p50 <= 0.1, "{name}: {p50}");
    assert!(p95 <= 0.2, "{name}: {p95}");
}

#[test]
fn gcp_pd_ssd_2tb() {
    judge(0, 0.15);
}

#[test]
fn hdd_toshiba_dt01aca200() {
    judge(1, 0.15);
}

#[test]
fn i3_2xlarge() {
    // 0.15 is not reached: near the edge the model's medians rise too late between 120 and 320 MB/s
    // of writes, and too soon beyond 450 MB/s
    judge(2, 0.25);
}

#[test]
fn i3en_3xlarge() {
    judge(3, 0.15);
}
