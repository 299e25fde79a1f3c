//! Surfaces of simulated disks.

use forebay_config::Source;
use std::convert::Infallible;
use std::time::Duration;

use forebay_explore::{Matrix, SimulatedDisk, SimulatedLoad};
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::{Axes, Grid};

use crate::fitted;

/// Reads and writes have the disk in turn: its mixes lie on a straight line.
const IDEAL: &str = "kind: ideal\nchannels: 8\nread_latency: 80us\nwrite_latency: 400us\n\
                     bandwidth: 2000000000\n";

/// Its discards take the controller's time.
const FLASH: &str = "kind: flash\nread_command: 2us\nwrite_command: 2us\nbandwidth: 3000000000\n\
                     dies: 16\npage: 16kB\npage_read: 60us\nprogram_bandwidth: 1500000000\n\
                     write_buffer: 4MB\n\
                     discard_command: 500us\ndiscard_bandwidth: 2000000000\n";

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

/// The median of reads while 100 MB/s are written in requests of the load's size.
fn median(load: SimulatedLoad) -> f64 {
    let mut disk = SimulatedDisk::with_load(disk(FLASH), load).unwrap();
    disk.measure((100e6, 10_000.0)).unwrap().p99_us.unwrap()
}

#[test]
fn sizes_and_discards_of_a_load_change_what_reads_take() {
    let usual = median(SimulatedLoad::default());
    let long = SimulatedLoad { read_bytes: 1 << 20, ..SimulatedLoad::default() };
    let (_, reads) = SimulatedDisk::with_load(disk(FLASH), long).unwrap().rates();
    let (_, usual_reads) = SimulatedDisk::new(disk(FLASH)).rates();
    assert!(reads < usual_reads / 10.0, "{reads} of 1 MiB, {usual_reads} of 4 KiB");
    for after in [Duration::ZERO, Duration::from_millis(100)] {
        let load = SimulatedLoad { discarded_after: Some(after), ..SimulatedLoad::default() };
        let with_discards = median(load);
        assert!(with_discards > usual, "{with_discards} us, {usual} without discards");
    }
    // it ends before anything is discarded
    let late = Some(Duration::from_secs(100));
    assert_eq!(median(SimulatedLoad { discarded_after: late, ..SimulatedLoad::default() }), usual);
}

#[test]
fn large_reads_and_sizes_are_surfaces_too() {
    let usual = SimulatedLoad::default();
    let large = SimulatedLoad { axes: Axes::LargeReads, ..usual };
    let (bytes, fixed_rates) = (1 << 20, (500.0, 1000.0));
    let sizes = SimulatedLoad {
        read_bytes: bytes,
        write_bytes: bytes,
        axes: Axes::Sizes,
        fixed_rates,
        ..usual
    };
    for load in [large, sizes] {
        let mut disk = SimulatedDisk::with_load(disk(FLASH), load).unwrap();
        let (x, y) = disk.rates();
        let matrix = Matrix::even((x, y), 8);
        let surface = matrix.full(|at| Ok::<_, Infallible>(disk.measure(at))).unwrap();
        let surface = surface.over(load.axes);
        let p95 = |part: f64| {
            let at = ((x * part).round(), (y / 8.0).round());
            let found = surface.cells().iter().find(|c| (c.write_bandwidth, c.read_iops) == at);
            found.unwrap().p95_us
        };
        // more of the other, or larger ones, make reads wait
        assert!(p95(0.625) > 1.05 * p95(0.0), "{}, {}", p95(0.625), p95(0.0));
        let csv = surface.to_csv();
        assert_eq!(Grid::parse_csv("x.csv", &csv).unwrap().axes(), load.axes);
        assert!(Grid::parse("x.csv", &csv).is_err(), "a disk is fitted to rates of both");
        assert!(fitted(&surface, "p95=10ms").shape.radius(0.0) > 0.0);
    }
    let half = Grid::parse_csv("x.csv", "write_bytes,read_iops,p50_ms,p95_ms\n").unwrap_err();
    assert!(half.to_string().contains("go together"), "{half}");
}

#[test]
fn loads_that_do_not_fit_are_refused() {
    let refused = |name: &str, load| {
        SimulatedDisk::with_load(DiskSpec::resolve(name).unwrap(), load).err().unwrap().to_string()
    };
    let usual = SimulatedLoad::default;
    let small = SimulatedLoad { data_bytes: Some(65_536), ..usual() };
    assert_eq!(
        refused("nvme-2022", small),
        "--write-size is 131072 bytes, and the data has 65536: lower the former"
    );
    let large = SimulatedLoad { data_bytes: Some(u64::MAX), ..usual() };
    assert!(refused("nvme-2022", large).starts_with("--data-size is 18446744073709551615 bytes"));
    let discards = SimulatedLoad { discarded_after: Some(Duration::ZERO), ..usual() };
    assert!(refused("gp3", discards).contains("states discard_command"));
}

/// A write is done once it is in the buffer; while the dies program all the time, it waits for room.
#[test]
fn latencies_of_writes_are_a_surface_too() {
    let load = SimulatedLoad { times_writes: true, ..SimulatedLoad::default() };
    let mut disk = SimulatedDisk::with_load(disk(FLASH), load).unwrap();
    let rates = disk.rates();
    let matrix = Matrix::even(rates, 8);
    let surface = matrix.full(|at| Ok::<_, Infallible>(disk.measure(at))).unwrap().of_writes();
    let at = |write: f64, read: f64| {
        let at = ((rates.0 * write).round(), (rates.1 * read).round());
        surface.cells().iter().find(|cell| (cell.write_bandwidth, cell.read_iops) == at).unwrap()
    };
    // 128 KiB take 44 us through the controller, and a read would take 60 us on its die
    assert!((44.0..60.0).contains(&at(0.0, 0.0).p50_us), "{:?}", at(0.0, 0.0));
    assert!(at(0.875, 0.0).p95_us > 1.3 * at(0.25, 0.0).p95_us, "{:?}", at(0.875, 0.0));
    let back = Grid::parse_csv("w.csv", &surface.to_csv()).unwrap();
    assert!(back.is_of_writes() && back.missed() == surface.missed());
    assert!(surface.to_csv().starts_with("write_bandwidth_bytes_per_sec,read_iops,write_p50_ms,"));
    assert!(Grid::parse("w.csv", &surface.to_csv()).is_err(), "a disk is fitted to reads");
    // a load of reads alone says nothing of writes, and one of writes alone does
    let fit = fitted(&surface, "p95=1ms");
    assert!(fit.shape.radius(1.0) > 0.8, "{fit:?}");
    let mixed = surface.to_csv().replace("write_p50_ms", "p50_ms");
    let error = Grid::parse_csv("w.csv", &mixed).unwrap_err().to_string();
    assert!(error.contains("there is no column `p50_ms`"), "{error}");
}
