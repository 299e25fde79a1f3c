//! What is asked of regions on the measured surfaces, on cells left out of the fit.

use forebay_explore::Kind;

use crate::{SURFACES, fitted, surface};

const GOALS: [&str; 3] = ["p95=500us", "p95=1ms", "p95=2ms"];

#[test]
fn an_i3_is_described_where_the_straight_line_is_not() {
    for goal in GOALS {
        let fit = fitted(&surface("i3.2xlarge"), goal);
        println!("i3 {goal}: {:?} {:?}, line {:?}", fit.kind, fit.quality, fit.line);
        assert!(fit.line.sum() >= 0.5, "{goal}: {:?}", fit.line);
        assert!(fit.quality.sum() <= 0.35, "{goal}: {:?}", fit.quality);
    }
}

#[test]
fn an_i3en_is_described_within_a_quarter() {
    for goal in GOALS {
        let fit = fitted(&surface("i3en.3xlarge"), goal);
        println!("i3en {goal}: {:?} {:?}, line {:?}", fit.kind, fit.quality, fit.line);
        assert!(fit.quality.sum() <= 0.25, "{goal}: {:?}", fit.quality);
    }
}

#[test]
fn no_region_is_worse_than_the_straight_line() {
    for (name, _) in SURFACES {
        let goals: &[&str] = match name {
            "gcp-pd-SSD-2TB" => &["p95=1ms", "p95=2ms", "p95=10ms", "p50=1ms"],
            "hdd-toshiba-DT01ACA200" => &["p95=50ms", "p95=100ms", "p95=200ms", "p50=50ms"],
            _ => &["p95=300us", "p95=1ms", "p50=200us", "p50=1ms"],
        };
        for goal in goals {
            let fit = fitted(&surface(name), goal);
            assert!(fit.quality.sum() <= fit.line.sum(), "{name} {goal}: {fit:?}");
            for figure in
                [fit.quality, fit.line].iter().flat_map(|q| [q.unsafe_allowed, q.safe_rejected])
            {
                assert!((0.0..=1.0).contains(&figure), "{name} {goal}: {fit:?}");
            }
        }
    }
}

/// Few loads keep 50 ms on a hard disk, and what lies beyond them is a cliff.
#[test]
fn where_nothing_fits_what_is_given_allows_no_broken_load() {
    let surface = surface("hdd-toshiba-DT01ACA200");
    let fit = fitted(&surface, "p95=50ms");
    assert_eq!(fit.kind, Kind::Safe, "{fit:?}");
    assert!(fit.is_poor());
    let (write_max, read_max) = surface.maxima();
    for cell in surface.cells().iter().filter(|cell| cell.read_iops > 0.0) {
        let (write, read) = (cell.write_bandwidth / write_max, cell.read_iops / read_max);
        let radius = fit.shape.radius(write / (write + read));
        let allowed = write + read <= radius;
        assert!(!allowed || cell.p95_us <= 50_000.0, "{cell:?} is allowed: {fit:?}");
    }
}

#[test]
fn a_fit_is_the_same_each_time() {
    let once = || fitted(&surface("i3.2xlarge"), "p95=1ms");
    assert_eq!(once(), once());
}
