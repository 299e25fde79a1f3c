//! What is said of surfaces and goals that nothing can be fitted to.

use forebay_explore::fit;
use forebay_sim::surface::Grid;

use crate::surface;

const HEADER: &str = "write_bandwidth_bytes_per_sec,read_iops,p50_ms,p95_ms\n";

fn refused(text: &str) -> String {
    Grid::parse_csv("s.csv", text).unwrap_err().to_string()
}

fn unfit(surface: &Grid, goal: &str) -> String {
    fit(surface, goal.parse().unwrap()).unwrap_err().to_string()
}

#[test]
fn a_missing_column_is_named() {
    let said = refused("w_bw_Bps,r_iops,p50_ms\n1,2,3\n");
    assert!(said.starts_with("s.csv:1:1: the first line is `w_bw_Bps,r_iops,p50_ms`; write"));
    assert!(said.ends_with("; a column `p95_ms` is missing"), "{said}");
}

#[test]
fn a_negative_rate_is_named_by_line_and_column() {
    assert_eq!(
        refused(&format!("{HEADER}0,10,1,2\n0,-20,1,2\n")),
        "s.csv:3:1: read_iops: found `-20`; expected a number from 0 to 1000000000000"
    );
}

#[test]
fn a_figure_that_is_no_number_is_named_by_line_and_column() {
    assert_eq!(
        refused(&format!("{HEADER}0,10,NaN,2\n")),
        "s.csv:2:1: p50_ms: found `NaN`; expected a number from 0 to 60000"
    );
}

#[test]
fn fewer_than_nine_usable_cells_are_too_few() {
    let text = (0..8).map(|load| format!("{load}e6,{load}000,1,2\n")).collect::<String>();
    let surface = Grid::parse_csv("s.csv", &format!("{HEADER}{text}")).unwrap();
    let said = unfit(&surface, "p95=3ms");
    // the one without reads does not count
    assert!(said.starts_with("7 usable cells") && said.contains("at least 9"), "{said}");
    assert!(said.contains("measure more"), "{said}");
}

#[test]
fn one_load_is_singular() {
    let one = format!("{HEADER}1e6,1000,1,2\n");
    let surface = Grid::parse_csv("s.csv", &one).unwrap();
    assert!(unfit(&surface, "p95=3ms").starts_with("1 usable cell;"));
    assert!(forebay_explore::text("s", &surface, &[], &[]).contains("1 load measured"));
}

#[test]
fn a_surface_of_reads_alone_is_too_little() {
    let text = (1..20).map(|load| format!("0,{load}000,1,2\n")).collect::<String>();
    let surface = Grid::parse_csv("s.csv", &format!("{HEADER}{text}")).unwrap();
    assert!(unfit(&surface, "p95=3ms").contains("reads with writes"));
}

#[test]
fn an_empty_surface_is_too_little() {
    let surface = Grid::parse_csv("s.csv", HEADER).unwrap();
    assert!(unfit(&surface, "p95=3ms").starts_with("0 usable cells"));
}

#[test]
fn a_goal_that_no_load_keeps_says_what_is_kept() {
    assert_eq!(
        unfit(&surface("gcp-pd-SSD-2TB"), "p95=500us"),
        "no load of the surface keeps p95=500us; the shortest measured is 505.9us: use a longer \
         one, such as --goal p95=2ms"
    );
}

#[test]
fn a_goal_below_the_base_latency_says_what_that_is() {
    assert_eq!(
        unfit(&surface("hdd-toshiba-DT01ACA200"), "p95=1ms"),
        "the goal p95=1ms is below the latency of the idle disk, 15.4ms: use a longer one, such \
         as --goal p95=70ms"
    );
}

#[test]
fn an_unmeasured_percentile_is_reported_with_the_measured_ones() {
    assert_eq!(
        unfit(&surface("i3.2xlarge"), "p99=1ms"),
        "the surface has no measured p99; use one of these with --goal: p50, p95"
    );
}

/// The longest latency that the file has is a bound for each load, so none keeps any goal for sure.
#[test]
fn a_percentile_that_is_only_bounded_is_no_goal() {
    let loads = (0..4).flat_map(|write| (0..4).map(move |read| (write * 100, read * 100)));
    let line = |(write, read)| format!("{write},{read},0.1,0.5,1\n");
    let text = format!("{}_clipped\n", HEADER.trim_end().replace("p95_ms", "p95_ms,p95"));
    let text = text + &loads.map(line).collect::<String>();
    let surface = Grid::parse_csv("s.csv", &text).unwrap();
    assert_eq!(
        unfit(&surface, "p95=1ms"),
        "the surface has no measured p95; use one of these with --goal: p50"
    );
}

#[test]
fn no_goal_is_offered_that_is_longer_than_a_goal_may_be() {
    let loads = (0..4).flat_map(|write| (0..4).map(move |read| (write * 100, read * 100)));
    let lines = loads.map(|(write, read)| format!("{write},{read},0.1,50000\n"));
    let surface =
        Grid::parse_csv("s.csv", &(HEADER.to_owned() + &lines.collect::<String>())).unwrap();
    assert!(unfit(&surface, "p95=1ms").ends_with("such as --goal p95=60s"));
}

#[test]
fn a_surface_without_reads_is_not_said_to_lack_a_percentile() {
    let lines: String = (1..20).map(|write| format!("{write},0,1,2\n")).collect();
    let surface = Grid::parse_csv("s.csv", &(HEADER.to_owned() + &lines)).unwrap();
    assert!(unfit(&surface, "p95=1ms").starts_with("0 usable cells"));
}
