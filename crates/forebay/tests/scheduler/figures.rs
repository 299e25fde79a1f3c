//! Figures from code: what a file may not say, a program may not either.

use std::time::Duration;

use forebay::properties::{
    CostAt, DiskProperties, Measured, MixRegion, Properties, RADIUS_ONE, REGION_RADII, REGIONS_MAX,
    RegionGoal,
};
use forebay::{DiskConfig, Scheduler};

use crate::RATES;

fn region() -> MixRegion {
    MixRegion {
        read_percentile: 95.0,
        latency: Duration::from_millis(1),
        write_bandwidth: RATES.write_bandwidth,
        read_iops: RATES.read_iops,
        radii: vec![RADIUS_ONE; REGION_RADII],
    }
}

/// Asserts that figures with this change are refused from code with the words of the file.
#[track_caller]
fn refused(change: impl FnOnce(&mut DiskProperties)) {
    let dir = tempfile::tempdir().unwrap();
    let good = DiskProperties::from_rates(&RATES, vec![dir.path().to_owned()]);
    let mut bad = good.clone();
    change(&mut bad);
    let bad = Properties { disks: vec![bad] };
    let parsed = Properties::parse("io.yaml", &bad.to_forebay_yaml("io.yaml")).unwrap_err();
    let key = parsed.key.unwrap();
    let (key, said) = (key.strip_prefix("disks[0].").unwrap(), parsed.message);
    let name = dir.path().display();
    let expected = format!("the disk `{name}`: {key}: {said}");
    let error = Scheduler::builder().properties(&bad).build().unwrap_err();
    assert_eq!(error.to_string(), expected);
    let scheduler = Scheduler::builder().properties(&Properties { disks: vec![good] }).build();
    let scheduler = scheduler.unwrap();
    let goal = || scheduler.disks()[0].effective_goal();
    let before = goal();
    assert_eq!(scheduler.reload(&bad).unwrap_err().to_string(), expected);
    assert_eq!(goal(), before);
}

#[track_caller]
fn refused_region(change: impl FnOnce(&mut MixRegion)) {
    let mut bad = region();
    change(&mut bad);
    refused(|disk| disk.measured.regions = vec![bad]);
}

#[test]
fn regions_that_a_file_may_not_have_are_refused_from_code() {
    refused_region(|region| region.radii = Vec::new());
    refused_region(|region| region.radii = vec![RADIUS_ONE]);
    refused_region(|region| region.radii = vec![RADIUS_ONE; 10_000]);
    refused_region(|region| region.radii[7] = 0);
    refused_region(|region| region.radii[32] = u32::MAX);
    refused_region(|region| region.write_bandwidth = u64::MAX);
    refused_region(|region| region.write_bandwidth = 0);
    refused_region(|region| region.read_iops = 0);
    refused_region(|region| region.read_percentile = f64::NAN);
    refused_region(|region| region.read_percentile = 100.0);
    refused_region(|region| region.read_percentile = -1.0);
    refused_region(|region| region.latency = Duration::ZERO);
    refused_region(|region| region.latency = Duration::MAX);
    refused(|disk| disk.measured.regions = vec![region(); 2]);
    refused(|disk| {
        let longer = |ms| MixRegion { latency: Duration::from_millis(ms), ..region() };
        disk.measured.regions = (1..=REGIONS_MAX as u64 + 1).map(longer).collect();
    });
    refused(|disk| {
        let goal = RegionGoal { read_percentile: f64::INFINITY, latency: Duration::from_millis(1) };
        disk.measured.region_goal = Some(goal);
    });
}

#[test]
fn figures_that_a_file_may_not_have_are_refused_from_code() {
    refused(|disk| disk.physical_block_size = Some(520));
    refused(|disk| disk.read_saturation_length = Some(0));
    refused(|disk| disk.write_saturation_length = Some(1 << 40));
    refused(|disk| disk.measured.base_latency = Some(Duration::ZERO));
    refused(|disk| disk.measured.flush = Some(Duration::from_secs(1000)));
    refused(|disk| disk.measured.read.knee = Some(-1.0));
    refused(|disk| {
        // far from the rates
        disk.measured.read.cost = vec![CostAt { bytes: 4096, cost: Duration::from_secs(1) }];
    });
}

#[test]
fn a_disk_without_a_mountpoint_and_one_with_everything_are_good() {
    let mut disk = DiskProperties::from_rates(&RATES, Vec::new());
    disk.measured = Measured {
        base_latency: Some(Duration::from_micros(80)),
        regions: vec![region()],
        region_goal: Some(RegionGoal { read_percentile: 99.0, latency: Duration::from_millis(2) }),
        ..Measured::default()
    };
    disk.physical_block_size = Some(4096);
    Scheduler::builder().disk(DiskConfig::from_properties(&disk)).build().unwrap();
    Scheduler::builder().disk(DiskConfig::new("by name", RATES)).build().unwrap();
}
