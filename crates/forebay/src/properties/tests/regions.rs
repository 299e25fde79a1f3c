//! Regions: invalid values, and their insertion into an existing file.

use std::time::Duration;

use crate::properties::{MixRegion, Properties, RADIUS_ONE, REGION_RADII, RegionGoal};

const FILE: &str = "# of the rack in the corner
io_properties: io-properties.yaml
disks:
  - mountpoint: /mnt
    read_iops: 8000  # as measured
    write_iops: 16000
    read_bandwidth: 300000000
    write_bandwidth: 300000000
";

fn region(latency_us: u64) -> MixRegion {
    MixRegion {
        read_percentile: 95.0,
        latency: Duration::from_micros(latency_us),
        write_bandwidth: 300_000_000,
        read_iops: 8000,
        radii: vec![RADIUS_ONE; REGION_RADII],
    }
}

fn regions(text: &str) -> Vec<MixRegion> {
    Properties::parse("f", text).unwrap().disks.remove(0).measured.regions
}

#[test]
fn regions_get_into_a_file_and_replace_those_that_it_has() {
    let once = Properties::with_regions(FILE, &[region(500), region(1000)]).unwrap();
    assert!(once.starts_with(FILE), "{once}");
    assert_eq!(regions(&once), [region(500), region(1000)]);
    let again = Properties::with_regions(&once, &[region(2000)]).unwrap();
    assert!(again.starts_with(FILE), "{again}");
    assert_eq!(regions(&again), [region(2000)]);
    assert_eq!(Properties::with_regions(&again, &[]).as_deref(), Some(FILE));
    // A list may also be written in this form.
    let flat = again.replace("      - {", "    - {");
    assert_eq!(Properties::with_regions(&flat, &[]).as_deref(), Some(FILE));
}

#[test]
fn a_file_of_another_form_is_left_alone() {
    let two = format!("{FILE}{}", FILE.split_once("disks:\n").unwrap().1.replace("/mnt", "/srv"));
    let flow = "disks: [{mountpoint: /mnt, read_iops: 8, write_iops: 1, read_bandwidth: 5, \
                write_bandwidth: 5}]\n";
    let last = FILE.replace("io_properties: io-properties.yaml\n", "") + "io_properties: a.yaml\n";
    for text in [&two, flow, &last, "", "nonsense", "disks: []"] {
        assert_eq!(Properties::with_regions(text, &[region(500)]), None, "{text}");
    }
}

#[test]
fn the_factor_of_the_rates_is_one_of_regions_too() {
    let text = Properties::with_regions(FILE, &[region(500)]).unwrap();
    let text = text.replace("mountpoint: /mnt", "rate_factor: 0.5\n    mountpoint: /mnt");
    let halved = MixRegion { write_bandwidth: 150_000_000, read_iops: 4000, ..region(500) };
    assert_eq!(regions(&text), [halved]);
}

#[test]
fn regions_that_no_disk_has_are_refused() {
    let good = Properties::with_regions(FILE, &[region(500), region(600)]).unwrap();
    for (from, to, said) in [
        ("read_percentile: 95.0", "read_percentile: 100", "read_percentile: found 100.0; expected"),
        ("read_percentile: 95.0", "read_percentile: .nan", "read_percentile: found NaN"),
        ("latency_us: 500.000", "latency_us: 0", "latency_us: found 0.0; expected more than 0"),
        ("latency_us: 500.000", "latency_us: -1", "latency_us: found -1"),
        ("latency_us: 500.000", "latency_us: 600", "[1]: an earlier region has the same latency"),
        ("radii: [65536, ", "radii: [", "radii: 32 radii; expected 33"),
        ("radii: [65536, ", "radii: [0, ", "radii[0]: found 0; expected 1 to 131072"),
        ("radii: [65536, ", "radii: [131073, ", "found 131073; expected 1 to 131072"),
        ("read_iops: 8000, ", "", "read_iops"),
        ("radii:", "radi:", "unknown key `radi`"),
    ] {
        let error = Properties::parse("f.yaml", &good.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(said), "{from} to {to}: {error}");
    }
}

#[test]
fn the_goal_of_the_region_in_use_is_read_back_and_stays_when_regions_change() {
    let goal = "    region_goal: {read_percentile: 95.0, latency_us: 1000.000}\n";
    let text = format!("{FILE}{goal}");
    let with = Properties::with_regions(&text, &[region(500), region(1000)]).unwrap();
    let properties = Properties::parse("f", &with).unwrap();
    let latency = Duration::from_millis(1);
    let expected = RegionGoal { read_percentile: 95.0, latency };
    assert_eq!(properties.disks[0].measured.region_goal, Some(expected));
    assert_eq!(Properties::with_regions(&with, &[]).as_deref(), Some(text.as_str()));
    let written = properties.to_forebay_yaml("io-properties.yaml");
    assert!(written.contains(goal.trim()), "{written}");
    assert_eq!(Properties::parse("f", &written).unwrap(), properties);
    for (from, to, said) in [
        ("95.0", "0", "region_goal.read_percentile: found 0.0; expected a percentile"),
        ("1000.000", "0", "region_goal.latency_us: found 0.0; expected more than 0"),
        (", latency_us: 1000.000", "", "latency_us"),
    ] {
        let error = Properties::parse("f.yaml", &text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(said), "{from} to {to}: {error}");
    }
}
