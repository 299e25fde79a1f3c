//! What is said about surfaces that no disk can be fitted to.

use forebay_config::Source;
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

const HEADER: &str = "w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped\n";

fn error_message(text: &str) -> String {
    Grid::parse("s.csv", text).unwrap_err().to_string()
}

/// A surface of this many loads along each axis, with `line` in it too.
fn surface(writes: u32, reads: u32, line: &str) -> String {
    let loads = (0..writes).flat_map(|write| (0..reads).map(move |read| (write, read)));
    let cells = loads.map(|(write, read)| format!("{write}e6,{read}000,0.1,0.2,0\n"));
    HEADER.to_owned() + &cells.collect::<String>() + line
}

#[test]
fn too_few_cells_name_file_field_and_bound() {
    assert_eq!(
        error_message(&surface(1, 3, "")),
        "s.csv: w_bw_Bps, r_iops: 3 cells; a surface needs at least 16"
    );
    assert_eq!(
        error_message(&surface(2, 8, "")),
        "s.csv: w_bw_Bps: 2 different loads; expected 3 to 32"
    );
    assert_eq!(
        error_message(&surface(3, 33, "")),
        "s.csv: r_iops: 33 different loads; expected 3 to 32"
    );
}

#[test]
fn a_wrong_line_names_its_place() {
    for (line, said) in [
        ("1,2,x,4,0", "s.csv:26:1: p50_ms: found `x`; expected a number from 0 to 60000"),
        ("1,2,nan,4,0", "s.csv:26:1: p50_ms: found `nan`; expected a number from 0 to 60000"),
        ("1,2,3", "s.csv:26:1: p95_ms: found ``; expected a number from 0 to 60000"),
        ("1,2,3,4,0,5", "s.csv:26:1: more than 5 figures; remove some"),
        (
            "-1,2,3,4,0",
            "s.csv:26:1: w_bw_Bps: found `-1`; expected a number from 0 to 1000000000000000",
        ),
        ("1,2,0,4,0", "s.csv:26:1: p50_ms: a latency of 0; expected more"),
        ("1,2,4,3,0", "s.csv:26:1: p95_ms: 3 is below the median, 4; expected at least as much"),
        ("0,0,3,4,0", "s.csv:26:1: this load was given before; remove it"),
    ] {
        assert_eq!(error_message(&surface(4, 6, line)), said);
    }
    let garbage = error_message("\u{1}\u{2}binary\n\u{3}");
    assert!(garbage.starts_with("s.csv:1:1: the first line is `\\u{1}\\u{2}binary`; write `w_bw"));
    assert!(error_message("").starts_with("s.csv:1:1: the first line is ``; write `w_bw_Bps,"));
    assert!(Grid::parse("s.csv", &surface(4, 6, "# a comment\n")).is_ok());
}

#[test]
fn a_region_in_a_disk_file_is_checked() {
    let file = "kind: surface\nread_iops: 10000\nwrite_bandwidth: 1000000\nexponent: 0.7\n\
                read_latency: 100us\nwrite_latency: 50us\n";
    assert!(DiskSpec::parse(&Source::new("d.yaml", file)).is_ok());
    let error_message =
        |file: &str| DiskSpec::parse(&Source::new("d.yaml", file)).unwrap_err().to_string();
    assert_eq!(
        error_message(&file.replace("0.7", "0")),
        "d.yaml:4:11: exponent: 0; expected 0.2 to 20"
    );
    assert_eq!(
        error_message(&format!("{file}program_share: 1\n")),
        "d.yaml:7:16: program_share: 1; expected 0 to 0.99"
    );
    assert_eq!(
        error_message(&format!("{file}die_read: 100us\n")),
        "d.yaml:7:11: die_read: 100µs on 1 dies are too slow for `read_iops`; write less than \
         100000ns, or more `dies`"
    );
}
