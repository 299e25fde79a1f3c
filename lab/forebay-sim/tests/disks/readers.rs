//! Surfaces in all forms that go round.

use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

use crate::SURFACES;

/// The first surface in the other form of CSV.
fn other_form(text: &str) -> String {
    let mut other = String::from("write_bandwidth_bytes_per_sec,read_iops,p50_ms,p95_ms\n");
    for line in text.lines().filter(|line| !line.starts_with(['#', 'w'])) {
        let fields: Vec<&str> = line.split(',').collect();
        other += &fields[..4].join(",");
        other.push('\n');
    }
    other
}

/// The surface as fio writes it; what was missed was carried by 90 %.
fn fio(surface: &Grid) -> String {
    let name = |(write, read): (f64, f64)| {
        format!("job(r_idx=0,w_idx=0,write_bw={write:.0},r_iops={read:.0})")
    };
    let cells = surface.cells().iter().map(|cell| {
        let at = (cell.write_bandwidth, cell.read_iops);
        let (p50, p95) = ((cell.p50_us * 1e3).round(), (cell.p95_us * 1e3).round());
        format!(
            r#"{{"jobname": "{}", "groupid": 3, "read": {{"iops": {}, "bw_bytes": 1, "clat_ns":
            {{"min": 1, "percentile": {{"1.000000": 1, "50.000000": {p50}, "95.000000": {p95},
            "99.000000": {}, "99.900000": {}}}, "bins": {{"1": 5}}}}}},
            "write": {{"bw_bytes": {}}}}}"#,
            name(at),
            at.1.round(),
            p95 * 2.0,
            p95 * 3.0,
            at.0 * 0.98,
        )
    });
    let missed = surface.missed().iter().map(|&at| {
        format!(
            r#"{{"jobname": "{}", "read": {{"iops": {}, "clat_ns": {{"percentile":
            {{"50.000000": 5, "95.000000": 6}}}}}}, "write": {{"bw_bytes": {}}}}}"#,
            name(at),
            at.1 * 0.9,
            at.0 * 0.9,
        )
    });
    let prepare = String::from(r#"{"jobname": "prepare", "write": {"bw_bytes": 5}}"#);
    let jobs: Vec<String> = [prepare].into_iter().chain(cells).chain(missed).collect();
    format!(r#"{{"fio version": "fio-3.28", "jobs": [{}]}}"#, jobs.join(","))
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round()
}

#[test]
fn a_surface_is_the_same_in_every_form() {
    for (name, text) in SURFACES {
        let surface = Grid::parse_csv(name, text).unwrap();
        let other = Grid::parse_csv(name, &other_form(text)).unwrap();
        assert_eq!(surface.missed(), other.missed(), "{name}");
        assert_eq!(surface.cells().len(), other.cells().len(), "{name}");
        let json = Grid::parse_fio(name, fio(&surface).as_bytes()).unwrap();
        assert_eq!(json.cells().len(), surface.cells().len(), "{name}");
        assert_eq!(json.missed().len(), surface.missed().len(), "{name}");
        for (one, two) in surface.cells().iter().zip(json.cells()) {
            assert_eq!(one.read_iops.round(), two.read_iops, "{name}");
            assert_eq!(rounded(one.p50_us), rounded(two.p50_us), "{name}");
            assert_eq!(two.p99_us, Some(two.p95_us * 2.0), "{name}");
        }
    }
}

/// A matrix that was refined has loads that nobody tried: not those are missed.
#[test]
fn with_lines_of_missed_loads_the_absent_ones_were_not_tried() {
    let text = "w_bw_Bps,r_iops,p50_ms,p95_ms,p99_ms,p999_ms\n0,0,1,2,3,4\n5e6,10,1,2,3,4\n\
                7e6,20,,,,\n";
    let surface = Grid::parse_csv("s.csv", text).unwrap();
    assert_eq!(surface.cells().len(), 2);
    assert_eq!(surface.missed(), [(7e6, 20.0)]);
    assert_eq!(surface.cells()[1].p999_us, Some(4000.0));
    let absent = text.replace("7e6,20,,,,\n", "");
    assert_eq!(Grid::parse_csv("s.csv", &absent).unwrap().missed(), [(0.0, 10.0), (5e6, 0.0)]);
}

#[test]
fn a_surface_is_read_back_as_it_is_written() {
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-12;
    for (name, text) in SURFACES {
        for surface in [
            Grid::parse_csv(name, text).unwrap(),
            Grid::parse_fio(name, fio(&Grid::parse_csv(name, text).unwrap()).as_bytes()).unwrap(),
        ] {
            let back = Grid::parse_csv(name, &surface.to_csv()).unwrap();
            assert_eq!(back.missed(), surface.missed(), "{name}");
            assert_eq!(back.cells().len(), surface.cells().len(), "{name}");
            for (one, two) in surface.cells().iter().zip(back.cells()) {
                assert_eq!(
                    (one.write_bandwidth, one.read_iops),
                    (two.write_bandwidth, two.read_iops)
                );
                assert!(near(one.p50_us, two.p50_us) && near(one.p95_us, two.p95_us), "{one:?}");
                assert_eq!(one.clipped, two.clipped, "{name}");
                match (one.p999_us, two.p999_us) {
                    (Some(one), Some(two)) => assert!(near(one, two), "{name}"),
                    (one, two) => assert_eq!(one, two, "{name}"),
                }
            }
        }
    }
}

#[test]
fn results_of_fio_that_are_no_surface_are_refused() {
    let error_message =
        |text: &str| Grid::parse_fio("r.json", text.as_bytes()).unwrap_err().to_string();
    let said = error_message("{\n\"jobs\": 5}");
    assert!(said.starts_with("r.json:2:") && said.contains(": invalid type"), "{said}");
    assert!(error_message("[]").contains("--output-format=json+"));
    assert!(error_message("{\"jobs\": []}").contains("name the result file of diskplorer.py"));
    let job = |name: &str, p50: &str| {
        format!(
            r#"{{"jobname": "{name}", "read": {{"iops": 99, "clat_ns": {{"percentile":
            {{"50.000000": {p50}, "95.000000": 900}}}}}}}}"#
        )
    };
    let good = "job(r_idx=1,w_idx=0,write_bw=0,r_iops=99)";
    for (jobs, said) in [
        (job("job(r_idx=1)", "5"), "expected job(r_idx=N,w_idx=N,write_bw=BYTES,r_iops=N)"),
        (job("job(r_idx=1,w_idx=0,write_bw=-1,r_iops=9)", "5"), "with figures of a disk"),
        (job(good, "-5"), "a read percentile of -5 ns"),
        (job(good, "1000"), "a read percentile of 900 ns"),
        (job(good, "5") + "," + &job(good, "5"), "run fio with group_reporting"),
    ] {
        let said_now = error_message(&format!(r#"{{"jobs": [{jobs}]}}"#));
        assert!(said_now.contains(said), "{said_now}");
    }
}

#[test]
fn a_disk_is_fitted_to_every_form() {
    let (name, text) = SURFACES[3];
    let surface = Grid::parse_csv(name, text).unwrap();
    let path = |kind: &str| {
        std::env::temp_dir().join(format!("forebay-surface-{}.{kind}", std::process::id()))
    };
    for (kind, text) in [("csv", other_form(text)), ("json", fio(&surface))] {
        std::fs::write(path(kind), text).unwrap();
        let disk = DiskSpec::resolve(&path(kind).display().to_string());
        std::fs::remove_file(path(kind)).unwrap();
        let rates = disk.unwrap().build(1).rates();
        assert!((180_000..250_000).contains(&rates.read_iops), "{kind}: {rates:?}");
    }
}
