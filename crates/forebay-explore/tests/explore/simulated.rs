//! Surfaces of simulated disks.

use forebay_config::Source;
use std::convert::Infallible;

use forebay_explore::{Matrix, SimulatedDisk};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

use crate::fitted;

/// Reads and writes have the disk in turn: its mixes lie on a straight line.
const IDEAL: &str = "kind: ideal\nchannels: 8\nread_latency: 80us\nwrite_latency: 400us\n\
                     bandwidth: 2000000000\n";

fn disk(text: &str) -> DiskSpec {
    DiskSpec::parse(&Source::new("d.yaml", text)).unwrap()
}

fn measured(steps: u32) -> Grid {
    let mut disk = SimulatedDisk::new(disk(IDEAL));
    let matrix = Matrix::even(disk.rates(), steps);
    matrix.full(|at| Ok::<_, Infallible>(disk.measure(at))).unwrap()
}

#[test]
fn a_disk_is_measured_at_every_load() {
    let (surface, disk) = (measured(4), disk(IDEAL));
    assert_eq!(surface.cells().len() + surface.missed().len(), 25);
    let rates = disk.build(1).rates();
    assert!(surface.missed().contains(&(rates.write_bandwidth as f64, rates.read_iops as f64)));
    let cells = surface.cells();
    let idle = cells.iter().find(|cell| cell.write_bandwidth == 0.0 && cell.read_iops == 0.0);
    // the latency of the disk, and 4 KiB at its bandwidth
    assert!((80.0..90.0).contains(&idle.unwrap().p50_us), "{idle:?}");
    for cell in cells {
        let rising = [cell.p50_us, cell.p95_us, cell.p99_us.unwrap(), cell.p999_us.unwrap()];
        assert!(rising.is_sorted(), "{cell:?}");
    }
    assert_eq!(surface, measured(4), "the same each time");
}

#[test]
fn a_measured_surface_has_a_region() {
    let surface = measured(10);
    for goal in ["p95=1ms", "p99.9=2ms"] {
        let fit = fitted(&surface, goal);
        println!("{goal}: {:?} {:?}, line {:?}", fit.kind, fit.quality, fit.line);
        assert!(fit.quality.sum() <= 0.35, "{goal}: {fit:?}");
    }
}
