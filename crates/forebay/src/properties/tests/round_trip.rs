//! What is written is read back; what is not ours is refused, and nothing panics.

use std::path::PathBuf;

use proptest::collection::{hash_set, vec};
use proptest::option;
use proptest::prelude::*;

use crate::properties::{DiskProperties, Properties};

fn disk(mountpoints: Vec<PathBuf>) -> impl Strategy<Value = DiskProperties> {
    let iops = 1..=100_000_000_u64;
    let bandwidth = 1..=1_000_000_000_000_u64;
    let length = option::of(1..=16_u64 << 20);
    (
        (iops.clone(), iops, bandwidth.clone(), bandwidth),
        (length.clone(), length, option::of((9..=20_u32).prop_map(|shift| 1 << shift))),
        (any::<bool>(), option::of(any::<bool>())),
    )
        .prop_map(move |(rates, lengths, flags)| DiskProperties {
            mountpoints: mountpoints.clone(),
            read_iops: rates.0,
            write_iops: rates.1,
            read_bandwidth: rates.2,
            write_bandwidth: rates.3,
            read_saturation_length: lengths.0,
            write_saturation_length: lengths.1,
            physical_block_size: lengths.2,
            duplex: flags.0,
            max_cost_function: flags.1,
        })
}

/// Any text is a path, and some are hard to write as YAML.
fn properties() -> impl Strategy<Value = Properties> {
    let path = prop_oneof!["/[a-z/]{1,20}", "\\PC{1,20}", ".{1,20}", Just(String::from("~"))];
    hash_set(path.prop_map(PathBuf::from), 1..12)
        .prop_flat_map(|paths| {
            let paths: Vec<PathBuf> = paths.into_iter().collect();
            let per_disk = paths.len().div_ceil(4);
            paths.chunks(per_disk).map(|chunk| disk(chunk.to_vec())).collect::<Vec<_>>()
        })
        .prop_map(|disks| Properties { disks })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(properties in properties()) {
        prop_assert_eq!(Properties::parse("f", &properties.to_yaml()), Ok(properties));
    }

    #[test]
    fn arbitrary_text_is_refused_without_a_panic(text in any::<String>()) {
        prop_assert!(Properties::parse("f", &text).is_err());
    }

    /// Text that gets past the first checks: lines of known keys and of YAML's signs.
    #[test]
    fn text_that_looks_like_properties_does_not_panic(lines in vec(line(), 0..12)) {
        let _ = Properties::parse("f", &format!("disks:\n{}", lines.join("\n")));
    }
}

fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("mountpoint"),
        Just("mountpoints"),
        Just("read_iops"),
        Just("rate_factor"),
        Just("duplex"),
        Just("<<"),
    ];
    let value = "([0-9]{0,24}[.]?[0-9]{0,24}[kMGT]?|\\[.{0,3}\\]|[&*]a|-?[.](inf|nan)|.{0,8})";
    (prop_oneof![Just("  - "), Just("    ")], key, value)
        .prop_map(|(lead, key, value)| format!("{lead}{key}: {value}"))
}
