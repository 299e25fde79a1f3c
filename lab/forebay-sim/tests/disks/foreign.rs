//! Surfaces of other programs, and of jobs that did something else than their names say:
//! `tests/disks/foreign` has the files.

use std::fs;
use std::path::PathBuf;

use forebay_sim::surface::{Cell, Grid};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/disks/foreign").join(name)
}

fn read(name: &str) -> Grid {
    Grid::read(&path(name)).unwrap()
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn parse_fio(text: &str) -> Grid {
    Grid::parse_fio("f.json", text.as_bytes()).unwrap()
}

fn refused(text: &str) -> String {
    Grid::parse_fio("f.json", text.as_bytes()).unwrap_err().to_string()
}

fn loads(cells: &[Cell]) -> Vec<(f64, f64)> {
    cells.iter().map(|cell| (cell.write_bandwidth, cell.read_iops)).collect()
}

/// Asserts that one remark has all these words.
fn says(surface: &Grid, words: &[&str]) {
    let has = |remark: &String| words.iter().all(|word| remark.contains(word));
    assert!(surface.remarks().iter().any(has), "{words:?}: {:?}", surface.remarks());
}

#[test]
fn marks_and_lines_around_the_json_are_skipped() {
    let expected = read("plain.json");
    assert_eq!(expected.cells().len(), 36);
    for name in ["bom.json", "note-before.json", "warning-before.json", "trim-jobs.json"] {
        assert_eq!(read(name), expected, "{name}");
    }
    let json = text("plain.json");
    for text in
        [format!("{json}\nfio: io_u error on file\n"), format!("\n\nfio: a\n\u{feff}{json}\n")]
    {
        assert_eq!(parse_fio(&text), expected);
    }
    assert!(refused(&format!("{json}\n{json}")).contains("two results of fio"));
    assert!(refused("fio: nothing\n").contains("no line begins with `{`"));
    // the line of an error is that of the file
    let broken = "note\nnote\n{\n\"jobs\": 5}";
    assert!(refused(broken).starts_with("f.json:4:"), "{}", refused(broken));
    assert!(refused(&"note\n".repeat(200)).contains("no line begins"));
}

#[test]
fn a_job_without_the_figure_of_its_load_is_refused_and_not_missed() {
    let json = text("plain.json");
    let (writes, reads) = (r#""write": {"io_bytes""#, r#""iops": 100000.0, "#);
    assert!(json.contains(writes) && json.contains(reads));
    let message = refused(&json.replace("bw_bytes", "bandwidth"));
    assert!(message.contains("no `bw_bytes` of its writes"), "{message}");
    let message = refused(&json.replace(reads, ""));
    assert!(message.contains("no `iops` of its reads"), "{message}");
}

#[test]
fn a_negative_rate_is_refused_and_no_missed_load() {
    let json = text("plain.json");
    for (rate, words) in [
        (r#""bw_bytes": 51200000"#, "`bw_bytes` of its reads is -51200000"),
        (r#""iops": 100000.0"#, "`iops` of its reads is -100000"),
        (r#""bw_bytes": 200000000"#, "`bw_bytes` of its writes is -200000000"),
    ] {
        let message = refused(&json.replacen(rate, &rate.replace(": ", ": -"), 1));
        assert!(message.contains(words) && message.contains("job(r_idx="), "{message}");
    }
}

#[test]
fn loads_are_what_was_carried_where_all_jobs_carried_a_multiple() {
    let (plain, found) = (read("plain.json"), read("poisson-4x.json"));
    let times = |loads: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
        loads.into_iter().map(|(write, read)| (write, read * 4.0)).collect()
    };
    assert_eq!(loads(found.cells()), times(loads(plain.cells())));
    assert_eq!(found.maxima(), (8e8, 1.6e6));
    says(&found, &["4.00 times the reads"]);
}

#[test]
fn one_job_that_carried_another_load_is_marked_either_way() {
    let json = text("plain.json");
    let plain = parse_fio(&json);
    let job = r#""job(r_idx=2,w_idx=0,write_bw=0,r_iops=100000)""#;
    let at = json.find(job).unwrap();
    let with = |iops: f64| {
        let was = r#""bw_bytes": 51200000, "iops": 100000.0"#;
        let is = format!(r#""bw_bytes": {}, "iops": {iops}"#, iops * 512.0);
        parse_fio(&format!("{}{}", &json[..at], json[at..].replacen(was, &is, 1)))
    };
    assert_eq!(with(104_000.0).cells(), plain.cells());
    let more = with(120_000.0);
    assert!(loads(more.cells()).contains(&(0.0, 120_000.0)), "{:?}", more.cells());
    assert!(!more.loads().any(|load| load == (0.0, 100_000.0)));
    says(&more, &["1 job carried over 5 % more", "r_iops=100000", "120000 reads"]);
    let less = with(90_000.0);
    assert!(less.missed().contains(&(0.0, 100_000.0)));
    says(&less, &["carried over 5 % less", "the disk missed such loads"]);
}

#[test]
fn sizes_of_requests_that_are_not_the_expected_ones_are_named() {
    let json = text("plain.json");
    assert!(!parse_fio(&json).remarks().iter().any(|remark| remark.contains("bandwidth by")));
    // 64 KiB for 512 bytes: each job has its own bandwidth
    let mut parts = json.split(r#""read": {"io_bytes": "#);
    let mut large = parts.next().unwrap().to_owned();
    for part in parts {
        let (before, rest) = part.split_once(r#""bw_bytes": "#).unwrap();
        let (bytes, rest) = rest.split_once(',').unwrap();
        let bytes = bytes.parse::<f64>().unwrap() * 128.0;
        large += &format!(r#""read": {{"io_bytes": {before}"bw_bytes": {bytes},{rest}"#);
    }
    says(&parse_fio(&large), &["Reads have 65536 bytes"]);
}

#[test]
fn jobs_without_percentiles_are_refused_and_those_without_reads_are_unknown() {
    for (name, words) in [
        ("no-p95.json", "no 95th percentile of its read latencies"),
        ("only-p99.json", "no median of its read latencies"),
    ] {
        let error = refused(&text(name));
        assert!(
            error.contains(words) && error.contains("--percentile_list=50:95:99:99.9"),
            "{error}"
        );
    }
    let none = text("plain.json").replace(r#""percentile""#, r#""other""#);
    assert!(refused(&none).contains("no percentiles of its read latencies"), "{}", refused(&none));
    let (plain, found) = (read("plain.json"), read("n-is-0.json"));
    let without = plain.cells().len() - found.cells().len();
    assert!(without > 0);
    // all others are as they were, and no load without reads counts as missed
    assert!(found.missed().iter().all(|load| plain.missed().contains(load)));
    says(&found, &["N is 0", "no read was done"]);
}

#[test]
fn other_latencies_are_read_and_named() {
    let plain = read("plain.json");
    let total = read("lat-ns-only.json");
    assert_eq!(total.cells(), plain.cells());
    says(&total, &["`lat`, with the time to send"]);
    let micros = read("fio2-clat-usec.json");
    assert_eq!(loads(micros.cells()), loads(plain.cells()));
    for (one, other) in micros.cells().iter().zip(plain.cells()) {
        assert!((one.p95_us - other.p95_us).abs() < 1.0, "{one:?} {other:?}");
    }
    says(&micros, &["whole microseconds"]);
}

#[test]
fn tables_of_spreadsheets_and_programs_have_the_same_figures() {
    let plain = read("plain.csv");
    for name in ["decimal-comma.csv", "semicolon.csv", "index.csv", "quoted.csv", "us.csv"] {
        let found = read(name);
        assert_eq!((loads(found.cells()), found.missed()), (loads(plain.cells()), plain.missed()));
        for (one, other) in found.cells().iter().zip(plain.cells()) {
            let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.01;
            assert!(near(one.p50_us, other.p50_us) && near(one.p95_us, other.p95_us), "{name}");
        }
    }
    let missed = read("NA.csv");
    assert_eq!((missed.cells(), missed.missed()), (plain.cells(), &[(8e8, 4e5)][..]));
    assert_eq!(read("small-surface.csv").cells().len(), 12);
}

#[test]
fn marks_of_thousands_and_half_lines_are_refused_with_the_line() {
    let refused = |line: &str| {
        let text = format!("w_bw_Bps;r_iops;p50_ms;p95_ms\n0;0;0,5;0,75\n{line}\n");
        Grid::parse_csv("f.csv", &text).unwrap_err().to_string()
    };
    for (line, words) in [
        ("0;400,000;0,5;0,75", "f.csv:3:1: r_iops: in `400,000`"),
        ("0;10;0.5;0,75", "f.csv:3:1: p50_ms: in `0.5`"),
        ("0;10;1,5;1.234,5", "f.csv:3:1: p95_ms: in `1.234,5`"),
        ("0;10;1,5;1,2,3", "f.csv:3:1: p95_ms:"),
        ("0;10;1,5;NA", "f.csv:3:1: p95_ms: found `NA`"),
        ("NA;10;1,5;2,5", "f.csv:3:1: w_bw_Bps: found `NA`"),
    ] {
        assert!(refused(line).contains(words), "{line}: {}", refused(line));
    }
    // nothing tells what the comma is
    let text = "w_bw_Bps;r_iops;p50_ms;p95_ms\n0;10;1,234;2,345\n";
    let error = Grid::parse_csv("f.csv", text).unwrap_err().to_string();
    assert!(error.contains("f.csv:2:1: p50_ms: in `1,234` it is not clear"), "{error}");
}
