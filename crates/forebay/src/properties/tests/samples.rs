//! Files from the field.

use std::path::Path;

use forebay_core::Op;

use crate::properties::{DiskProperties, Measured, Properties, Sharing};

/// The disk of `samples/iotune.yaml`.
pub(super) fn measured() -> DiskProperties {
    DiskProperties {
        mountpoints: vec!["/mnt/nvme".into()],
        read_iops: 218_786,
        write_iops: 121_499,
        read_bandwidth: 1_542_559_872,
        write_bandwidth: 1_130_867_072,
        read_saturation_length: None,
        write_saturation_length: None,
        physical_block_size: None,
        duplex: false,
        max_cost_function: None,
        latency_target: None,
        sharing: Sharing::Alone,
        measured: Measured::default(),
    }
}

#[test]
fn a_file_as_iotune_writes_it() {
    let text = include_str!("samples/iotune.yaml");
    let properties = Properties::parse("iotune.yaml", text).unwrap();
    assert_eq!(properties, Properties { disks: vec![measured()] });
}

#[test]
fn suffixes_are_powers_of_1024_and_the_factor_scales_all_four_rates() {
    let text = include_str!("samples/two_disks.yaml");
    let properties = Properties::parse("two_disks.yaml", text).unwrap();
    let [store, backup] = &properties.disks[..] else {
        panic!("two disks are in the file");
    };
    assert_eq!(store.read_bandwidth, 545 << 20);
    assert_eq!(store.read_saturation_length, Some(64 << 10));
    assert_eq!(store.write_saturation_length, Some(128 << 10));
    assert_eq!(store.physical_block_size, Some(4096));
    assert_eq!(backup.mountpoints.len(), 3);
    assert_eq!(backup.mountpoints[1], Path::new("/mnt/old backup"));
    // 921.6, 460.8, 241591910.4 and 120795955.2
    assert_eq!((backup.read_iops, backup.write_iops), (922, 461));
    assert_eq!(backup.read_bandwidth, 241_591_910);
    assert_eq!(backup.write_bandwidth, 120_795_955);
}

#[test]
fn a_file_in_flow_style_with_the_forks_key() {
    let text = include_str!("samples/flow_style.yaml");
    let properties = Properties::parse("flow_style.yaml", text).unwrap();
    let disk = &properties.disks[0];
    assert!(disk.duplex);
    assert_eq!(disk.max_cost_function, Some(false));
    assert_eq!(disk.read_iops, 201_912);
    assert_eq!(disk.write_bandwidth, 907_500_000);
}

#[test]
fn the_largest_file_is_accepted_and_one_disk_more_is_not() {
    let disks = |count: usize| Properties {
        disks: (0..count)
            .map(|index| DiskProperties {
                mountpoints: vec![format!("/mnt/{index}").into()],
                ..measured()
            })
            .collect(),
    };
    assert_eq!(Properties::parse("f", &disks(64).to_yaml()), Ok(disks(64)));
    let error = Properties::parse("f", &disks(65).to_yaml()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "f:322:5: disks[64]: one disk too many; expected at most 64; remove some"
    );
}

#[test]
fn a_file_is_loaded_by_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), include_str!("samples/iotune.yaml")).unwrap();
    assert_eq!(Properties::load(file.path()).unwrap().disks, [measured()]);

    std::fs::write(file.path(), "disks: 3").unwrap();
    let error = Properties::load(file.path()).unwrap_err();
    assert_eq!(error.file, file.path().display().to_string());
    assert_eq!((error.line, error.column, error.key.as_deref()), (1, 8, Some("disks")));
}

#[test]
fn requests_cost_whole_sectors_of_a_disk_that_misreports_them() {
    let sector = DiskProperties { physical_block_size: Some(16_384), ..measured() };
    let (sector, plain) = (sector.model().unwrap(), measured().model().unwrap());
    for op in [Op::Read, Op::Write] {
        assert_eq!(sector.cost(op, 512), plain.cost(op, 16_384));
        assert!(sector.cost(op, 512) > plain.cost(op, 512));
    }
}
