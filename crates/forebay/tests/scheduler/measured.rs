//! What a measurement knows alongside the rates.

use std::time::Duration;

use forebay::properties::Properties;
use forebay::{Op, Scheduler};

use crate::properties;

/// A disk of 1000 operations per second, of which more is known.
fn forebay_yaml(mountpoint: &str, base_latency_us: u32) -> String {
    let rates = properties(mountpoint, 100_000_000);
    format!(
        "io_properties: io-properties.yaml\n{rates}    base_latency_us: {base_latency_us}\n    \
         read_cost_ns: [[4096, 1000000], [16384, 1010000], [1048576, 10485760]]\n    \
         flush_us: 3000\n"
    )
}

#[test]
fn base_latency_and_costs_of_a_forebay_yaml_are_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let path = dir.path().join("forebay.yaml");
    std::fs::write(&path, forebay_yaml(at, 10_000)).unwrap();
    let scheduler = Scheduler::from_file(&path).unwrap();
    let disk = scheduler.disk(at).unwrap();
    assert_eq!(disk.effective_goal(), Some(Duration::from_millis(10)));
    let class = scheduler.add_class("class", 100).unwrap();
    let cost = |op, len| {
        let permit = class.admit(op, len).unwrap();
        let in_flight = disk.in_flight();
        drop(permit);
        in_flight
    };
    assert_eq!(cost(Op::Read, 16_384), Duration::from_micros(1010));
    assert_eq!(cost(Op::Flush, 0), Duration::from_millis(3));
}

#[test]
fn a_base_latency_follows_a_reload() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let parsed = |text: &str| Properties::parse("forebay.yaml", text).unwrap();
    let without = parsed(&properties(at, 100_000_000));
    let scheduler = Scheduler::builder().properties(&without).build().unwrap();
    let goal = || scheduler.disk(at).unwrap().effective_goal().unwrap();
    assert!(goal() < Duration::from_millis(2), "what 128 KiB cost");
    for millis in [30, 20] {
        scheduler.reload(&parsed(&forebay_yaml(at, millis * 1000))).unwrap();
        assert_eq!(goal(), Duration::from_millis(millis.into()));
    }
}
