//! Any text is refused, or gives properties within their bounds that are written and read back.

#![no_main]

use forebay::properties::{DISKS_MAX, Measured, Properties};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(properties) = Properties::parse("f", text) else {
        return;
    };
    assert!((1..=DISKS_MAX).contains(&properties.disks.len()));
    for disk in &properties.disks {
        assert!(!disk.mountpoints.is_empty());
        assert!((1..=100_000_000).contains(&disk.read_iops.min(disk.write_iops)));
        assert!((1..=100_000_000).contains(&disk.read_iops.max(disk.write_iops)));
        assert!((1..=1_000_000_000_000).contains(&disk.read_bandwidth));
        assert!((1..=1_000_000_000_000).contains(&disk.write_bandwidth));
    }
    for disk in &properties.disks {
        disk.model().unwrap();
    }
    let all = properties.to_forebay_yaml("io-properties.yaml");
    assert_eq!(Properties::parse("f", &all).as_ref(), Ok(&properties), "{all}");
    let mut bare = properties;
    bare.disks.iter_mut().for_each(|disk| disk.measured = Measured::default());
    assert_eq!(Properties::parse("f", &bare.to_yaml()), Ok(bare));
});
