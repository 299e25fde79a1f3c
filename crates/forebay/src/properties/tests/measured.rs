//! Keys that only forebay uses: invalid values, and their effects.

use std::time::Duration;

use forebay_core::Op;

use crate::properties::{DiscardCost, Properties};

const DISK: &str = "disks:
  - mountpoint: /mnt
    read_iops: 8000
    write_iops: 16000
    read_bandwidth: 300000000
    write_bandwidth: 300000000
";
const COST: &str = "read_cost_ns: [[4096, 125000], [16384, 130000], [1048576, 3495253]]";

fn with(lines: &[&str]) -> String {
    lines.iter().fold(DISK.to_owned(), |text, line| format!("{text}    {line}\n"))
}

#[track_caller]
fn complains(lines: &[&str], message: &str) {
    let error = Properties::parse("f.yaml", &with(lines)).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn requests_cost_what_was_measured() {
    let lines = [COST, "flush_us: 700", "discard_us: 50", "discard_gib_us: 1000000"];
    let disk = Properties::parse("f", &with(&lines)).unwrap().disks.remove(0);
    let nanos =
        |parts: u64, op, bytes| disk.model_of_part(parts).unwrap().cost(op, bytes).as_nanos_ceil();
    assert_eq!([nanos(1, Op::Read, 512), nanos(1, Op::Read, 16_384)], [125_000, 130_000]);
    // Without the ladder, the line to 128 KiB would give 156 us.
    assert_eq!(nanos(1, Op::Write, 4096), 62_500);
    assert_eq!(nanos(1, Op::Flush, 0), 700_000);
    assert!(nanos(1, Op::Discard, 1 << 30).abs_diff(1_000_050_000) < 1000);
    assert_eq!(nanos(4, Op::Read, 16_384), 520_000, "a quarter of the disk takes four times");
    assert_eq!(nanos(4, Op::Write, 4096), 250_000);
    assert_eq!(nanos(4, Op::Flush, 0), 2_800_000);
    let DiscardCost { command, gib } = disk.measured.discard.unwrap();
    assert_eq!((command, gib), (Duration::from_micros(50), Duration::from_secs(1)));
}

#[test]
fn a_flush_of_a_disk_that_seeks_may_cost_less_than_a_small_write_elsewhere() {
    for (seeks, nanos) in [("seeks: true", 40_000), ("seeks: false", 62_500)] {
        let disk = Properties::parse("f", &with(&[seeks, "flush_us: 40"])).unwrap().disks.remove(0);
        assert_eq!(disk.model().unwrap().cost(Op::Flush, 0).as_nanos_ceil(), nanos);
    }
}

#[test]
fn a_disk_that_seeks_has_another_price_for_what_goes_on_where_others_end() {
    let of = |lines: &[&str]| Properties::parse("f", &with(lines)).unwrap().disks.remove(0);
    for lines in
        [vec!["seeks: true"], vec![COST, "seeks: true"], vec!["seeks: true", "rate_factor: 1"]]
    {
        let disk = of(&lines);
        for (op, bytes) in [(Op::Read, 4096), (Op::Write, 131_072)] {
            for parts in [1, 4] {
                let model = disk.model_of_part(parts).unwrap();
                let nanos = model.sequential_cost(op, bytes).as_nanos_ceil();
                assert!(nanos.abs_diff(bytes * parts * 10 / 3) < 2, "{op:?} {bytes}: {nanos}");
                assert!(model.sequential_cost(op, bytes) <= model.cost(op, bytes));
            }
        }
        assert!(!Properties { disks: vec![disk] }.to_yaml().contains("seeks"));
    }
    for lines in [&[][..], &["seeks: false"]] {
        let model = of(lines).model().unwrap();
        assert_eq!(model.sequential_cost(Op::Read, 4096), model.cost(Op::Read, 4096));
    }
    let error = Properties::parse("f.yaml", &with(&["seeks: 5"])).unwrap_err().to_string();
    assert!(error.starts_with("f.yaml:7:"), "{error}");
}

#[test]
fn the_factor_of_the_rates_is_one_of_costs_too() {
    let disk = Properties::parse("f", &with(&[COST, "rate_factor: 0.5"])).unwrap().disks.remove(0);
    assert_eq!(disk.read_iops, 4000);
    let cost = disk.model().unwrap().cost(Op::Read, 4096);
    assert_eq!(cost.as_nanos_ceil(), 250_000);
}

#[test]
fn costs_that_contradict_the_rates_are_refused() {
    complains(
        &["read_cost_ns: [[4096, 100000], [1048576, 3495253]]"],
        "f.yaml:7:19: disks[0].read_cost_ns: these costs amount to 10000 operations per second, \
         and the rates state 8000; measure again, or remove the costs",
    );
    complains(
        &["write_cost_ns: [[4096, 62500], [1048576, 34952530]]"],
        "f.yaml:7:20: disks[0].write_cost_ns: these costs amount to 30000003 bytes per second, \
         and the rates state 300000000; measure again, or remove the costs",
    );
    complains(
        &["max_cost_function: false", COST],
        "f.yaml:8:19: disks[0].read_cost_ns: measured costs contradict `max_cost_function: \
         false`, which asks for those of Seastar; keep one of the two",
    );
}

#[test]
fn figures_that_no_disk_has_are_refused() {
    complains(
        &["read_cost_ns: [[4096, 125000], [4096, 125000]]"],
        "f.yaml:7:36: disks[0].read_cost_ns[1]: 4096 bytes behind 4096; expected sizes that rise, \
         to 16777216",
    );
    complains(
        &["read_cost_ns: [[4096, 0]]"],
        "f.yaml:7:20: disks[0].read_cost_ns[0]: 0 nanoseconds; expected 1 to 100000000000; measure \
         again",
    );
    complains(
        &["read_cost_ns: []"],
        "f.yaml:7:19: disks[0].read_cost_ns: 0 sizes; expected 1 to 16",
    );
    complains(
        &["base_latency_us: 0"],
        "f.yaml:7:22: disks[0].base_latency_us: no disk answers at once; measure again",
    );
    for (line, words) in [
        ("base_latency_us: .nan", "base_latency_us: found NaN; expected 0 to 100000000"),
        ("flush_us: -1", "flush_us: found -1.0; expected 0 to"),
        ("read_knee: .inf", "read_knee: found inf; expected 0 to"),
        ("read_sequential_iops: 0", "found 0; expected 1 to 100000000 operations"),
        ("write_iops_sustained: false", "write_iops_sustained"),
        ("discard_us: 5", "give discard_us and discard_gib_us"),
        ("base_latency: 5", "did you mean `base_latency_us`?"),
        ("read_cost_ns: [[4096, -1]]", "read_cost_ns"),
        ("read_cost_ns: [[4096]]", "read_cost_ns"),
    ] {
        let error = Properties::parse("f.yaml", &with(&[line])).unwrap_err().to_string();
        assert!(error.starts_with("f.yaml:7:") && error.contains(words), "{line}: {error}");
    }
}

#[test]
fn rates_that_were_not_seen_to_last_are_named() {
    let text = with(&["read_iops_sustained: true", "write_bandwidth_sustained: unknown"]);
    let properties = Properties::parse("f.yaml", &text).unwrap();
    assert_eq!(properties.disks[0].not_sustained().collect::<Vec<_>>(), ["write_bandwidth"]);
    let of_seastar = properties.to_yaml();
    let said: Vec<&str> = of_seastar.lines().filter(|line| line.contains('#')).collect();
    assert!(said.len() == 1 && said[0].contains("write_bandwidth: "), "{of_seastar}");
    assert!(said[0].contains("not sustained"), "{of_seastar}");
    assert!(Properties::parse("io-properties.yaml", &of_seastar).is_ok());
}

#[test]
fn keys_of_the_release_before_are_accepted_and_named() {
    let old =
        with(&["read_iops_lasting: unknown", "write_steady: true", "write_first_excess: 0.5"]);
    let new =
        with(&["read_iops_sustained: unknown", "write_steady: true", "write_burst_excess: 0.5"]);
    let [old, new] = [old, new].map(|text| Properties::parse("f.yaml", &text).unwrap());
    let warnings = old.disks[0].figure_warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let renamed = "the key `read_iops_lasting` was renamed to `read_iops_sustained`";
    assert!(warnings[1].contains(renamed), "{warnings:?}");
    assert_eq!(old.to_yaml_alone(), new.to_yaml_alone());
    assert!(new.disks[0].figure_warnings().is_empty());
}

#[test]
fn an_old_key_and_its_new_name_are_an_error_that_names_both_lines() {
    complains(
        &["read_iops_lasting: true", "read_iops_sustained: unknown"],
        "f.yaml:7:24: disks[0].read_iops_lasting: is the old name of `read_iops_sustained` in line \
         8; remove one of the two",
    );
}
