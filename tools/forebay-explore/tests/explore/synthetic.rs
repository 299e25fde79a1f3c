//! Surfaces whose region is known.

use forebay_explore::{Kind, Power, RADII_STEPS, RADIUS_ONE, Shape};
use forebay_sim::surface::Grid;

use crate::{apart, fitted};

const WRITE_MAX: f64 = 1e9;
const READ_MAX: f64 = 2e5;
/// The region ends at these parts of what the disk does alone at most.
const WRITE: f64 = 0.8;
const READ: f64 = 0.9;

/// A surface of this many loads along each axis: 1 ms on the border of the region, less inside, and
/// missed from 1.3 times as far out on.
pub(crate) fn surface(exponent: f64, steps: usize) -> Grid {
    let mut text = String::from("write_bandwidth_bytes_per_sec,read_iops,p50_ms,p95_ms\n");
    for write in 0..=steps {
        for read in 0..=steps {
            let (x, y) = (write as f64 / steps as f64, read as f64 / steps as f64);
            let out = gauge(x, y, exponent);
            if out < 1.3 {
                let p95 = 0.2 * (out * 5_f64.ln()).exp();
                let (write, read) = (x * WRITE_MAX, y * READ_MAX);
                text += &format!("{write},{read},{},{p95}\n", p95 / 2.0);
            }
        }
    }
    Grid::parse_csv("s.csv", &text).unwrap()
}

fn gauge(x: f64, y: f64, exponent: f64) -> f64 {
    let (x, y) = (x / WRITE, y / READ);
    (x.powf(exponent) + y.powf(exponent)).powf(1.0 / exponent)
}

#[test]
fn a_known_region_is_found_again() {
    for exponent in [0.4, 1.0, 2.0, 20.0] {
        // loads of every border are tried: the matrix of diskplorer
        let surface = surface(exponent, 20);
        let fit = fitted(&surface, "p95=1ms");
        let (write_max, read_max) = surface.maxima();
        let (write, read) = (write_max / WRITE_MAX, read_max / READ_MAX);
        let truth = |part: f64| 1.0 / gauge(part * write, (1.0 - part) * read, exponent);
        let off = apart(truth, |part| fit.shape.radius(part));
        println!("p = {exponent}: {:?} {:?}, area off by {off:.3}", fit.kind, fit.quality);
        assert!(off <= 0.08, "p = {exponent}: {off} {fit:?}");
        // of a region that sags, half of the matrix has some 20 safe loads
        let most = if exponent < 1.0 { 0.25 } else { 0.1 };
        assert!(fit.quality.sum() <= most, "p = {exponent}: {fit:?}");
        assert!(fit.quality.sum() <= fit.line.sum(), "p = {exponent}: {fit:?}");
    }
}

#[test]
fn a_straight_line_has_equal_radii() {
    assert_eq!(Shape::LINE.table(), [RADIUS_ONE; RADII_STEPS + 1]);
}

#[test]
fn the_table_of_whole_numbers_follows_the_border() {
    let shape = Shape::Power(Power { write: 0.5, read: 0.9, exponent: 0.4 });
    let table = shape.table();
    assert_eq!(table[0], (0.9 * f64::from(RADIUS_ONE)).round() as u32);
    assert_eq!(table[RADII_STEPS], RADIUS_ONE / 2);
    assert!(table.iter().all(|&radius| radius >= 1));
    // nothing is allowed, yet a price has to be found
    assert_eq!(Shape::Radii(vec![0.0; 5]).table(), [1; RADII_STEPS + 1]);
}

#[test]
fn a_surface_that_is_safe_everywhere_is_allowed_as_a_whole() {
    let fit = fitted(&surface(20.0, 20), "p95=100ms");
    assert_ne!(fit.kind, Kind::Safe);
    assert!(fit.quality.sum() <= 0.05, "{fit:?}");
}
