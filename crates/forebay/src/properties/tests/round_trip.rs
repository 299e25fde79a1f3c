//! Written files are read back unchanged, foreign ones are refused, and nothing panics.

use std::path::PathBuf;
use std::time::Duration;

use proptest::collection::{hash_set, vec};
use proptest::option;
use proptest::prelude::*;

use forebay_core::{Ceiling, LatencyTarget, Op};

use crate::properties::{
    CostAt, DiscardCost, DiskProperties, Lasting, Measured, MeasuredDirection, MixRegion,
    Properties, REGION_RADII, RegionGoal, Sharing, Steadiness, TargetBelowBase,
};

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
            measured: Measured::default(),
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
            latency_target: None,
            sharing: Sharing::Alone,
        })
}

fn direction(iops: u64, bandwidth: u64) -> impl Strategy<Value = MeasuredDirection> {
    let time = |nanos: f64| Duration::from_nanos((nanos.round() as u64).max(1));
    let large = time(1e9 * f64::from(1 << 20) / bandwidth as f64);
    let cost = vec![
        CostAt { bytes: 4096, cost: time(1e9 / iops as f64) },
        CostAt { bytes: 1 << 20, cost: large },
    ];
    let steadiness = (any::<bool>(), -1.0..1e6, 0..1_u64 << 32).prop_map(|(steady, excess, s)| {
        Steadiness { steady, burst_excess: excess, observed: Duration::from_secs(s) }
    });
    // With these rates, costs and rates agree within the rounding to a nanosecond.
    let exact = iops <= 10_000_000 && bandwidth <= 10_000_000_000 && bandwidth > 1 << 20;
    let lasting = || option::of(prop_oneof![Just(Lasting::Yes), Just(Lasting::Unknown)]);
    let lasting = (lasting(), lasting());
    let known = (any::<bool>(), option::of(0.0..1e6), option::of(1..=100_000_000_u64));
    (known, option::of(steadiness), lasting).prop_map(
        move |((known, knee, sequential_iops), steadiness, lasting)| MeasuredDirection {
            cost: if known && exact { cost.clone() } else { Vec::new() },
            knee,
            steadiness,
            sequential_iops,
            iops_sustained: lasting.0,
            bandwidth_sustained: lasting.1,
        },
    )
}

fn latency_target() -> impl Strategy<Value = LatencyTarget> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    (op, 500..=999_u32, 1..=60_000_000_000_u64).prop_map(|(op, permille, nanos)| {
        LatencyTarget::new(op, permille, Duration::from_nanos(nanos)).unwrap()
    })
}

fn sharing() -> impl Strategy<Value = Sharing> {
    let path = option::of("/.{1,20}[a-z]".prop_map(PathBuf::from));
    prop_oneof![
        Just(Sharing::Alone),
        path.prop_map(|path| Sharing::Segment { path }),
        (1..=1_000_000_u32).prop_map(Sharing::Part),
    ]
}

fn region() -> impl Strategy<Value = MixRegion> {
    let radii = vec(1..=1_u32 << 17, REGION_RADII);
    let rates = (1..=1_000_000_000_000_u64, 1..=100_000_000_u64);
    (0.001..99.999, 1..100_000_000_000_u64, rates, radii).prop_map(
        |(read_percentile, nanos, (write_bandwidth, read_iops), radii)| MixRegion {
            read_percentile,
            latency: Duration::from_nanos(nanos),
            write_bandwidth,
            read_iops,
            radii,
        },
    )
}

fn ceiling() -> impl Strategy<Value = Ceiling> {
    prop_oneof![Just(Ceiling::Never), Just(Ceiling::AfterBurst), Just(Ceiling::Always)]
}

fn measured(disk: DiskProperties) -> impl Strategy<Value = DiskProperties> {
    let time = || (1..100_000_000_000_u64).prop_map(Duration::from_nanos);
    let discard = (time(), time()).prop_map(|(command, gib)| DiscardCost { command, gib });
    let parts = (
        direction(disk.read_iops, disk.read_bandwidth),
        direction(disk.write_iops, disk.write_bandwidth),
        ((any::<bool>(), ceiling()), option::of(time()), option::of(time()), option::of(discard)),
        vec(region(), 0..3).prop_filter("different", |regions| {
            regions.len() < 2 || regions[0].latency != regions[1].latency
        }),
        option::of((0.001..99.999, time())),
        (option::of(latency_target()), sharing()),
    );
    parts.prop_map(move |(read, write, times, regions, goal, (target, sharing))| {
        let ((seeks, ceiling), base_latency, flush, discard) = times;
        let region_goal =
            goal.map(|(read_percentile, latency)| RegionGoal { read_percentile, latency });
        let measured = Measured {
            base_latency,
            seeks,
            ceiling,
            read,
            write,
            flush,
            discard,
            regions,
            region_goal,
            renamed_keys: Vec::new(),
        };
        let summed = disk.max_cost_function == Some(false);
        let max_cost_function = if summed { None } else { disk.max_cost_function };
        let latency_target = target
            .filter(|&target| TargetBelowBase::check(Some(target), measured.base_latency).is_ok());
        DiskProperties { measured, max_cost_function, latency_target, sharing, ..disk.clone() }
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
    fn keys_of_forebay_alone_are_read_back(
        disk in disk(vec!["/data".into()]).prop_flat_map(measured),
    ) {
        let properties = Properties { disks: vec![disk] };
        let text = properties.to_forebay_yaml("io-properties.yaml");
        prop_assert_eq!(Properties::parse("f", &text), Ok(properties.clone()), "{}", text);
        prop_assert!(properties.disks[0].model().is_ok());
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
        Just("base_latency_us"),
        Just("read_cost_ns"),
        Just("read_knee"),
        Just("<<"),
    ];
    let value = "([0-9]{0,24}[.]?[0-9]{0,24}[kMGT]?|\\[.{0,3}\\]|[&*]a|-?[.](inf|nan)|.{0,8})";
    (prop_oneof![Just("  - "), Just("    ")], key, value)
        .prop_map(|(lead, key, value)| format!("{lead}{key}: {value}"))
}
