//! From which size on streams reach their bandwidth, on disks where that is known.

use std::fmt::Write;

use forebay_tune::Budget;

use super::{Found, tune};
use crate::disks::{Known, parse, presets};
use crate::uneven::Uneven;

/// Disks whose streams reach 95 % of their bandwidth from `bytes` on.
fn saturating(bytes: u64) -> Vec<Known> {
    let ideal = |channels: u64, latency_us: u64, part: f64| {
        let bandwidth = (channels * bytes) as f64 / latency_us as f64 * 1e6 * part;
        format!(
            "kind: ideal\nchannels: {channels}\nread_latency: {latency_us}us\n\
             write_latency: {latency_us}us\nbandwidth: {bandwidth:.0}\n"
        )
    };
    let cloud = |iops: u64, part: f64| {
        let bandwidth = (iops * bytes) as f64 * part;
        format!(
            "kind: cloud\niops: {iops}\nbandwidth: {bandwidth:.0}\nlatency: 500us\njitter: 100us\n"
        )
    };
    // a command and its bytes take each other's time: 95 % where it takes a twentieth
    let flash = |bandwidth: u64| {
        let command = bytes * 1_000_000_000 / bandwidth / 20;
        format!(
            "kind: flash\ncapacity: 512GB\nread_command: {command}ns\nwrite_command: {command}ns\n\
             bandwidth: {bandwidth}\nread_latency: 20us\nwrite_latency: 5us\ndies: 64\n\
             page: 32kB\npage_read: 45us\nprogram_bandwidth: {bandwidth}\nsuspend: 100us\n\
             write_buffer: 64MB\n"
        )
    };
    let few = 1_000_000_000 / bytes;
    let mut disks =
        vec![ideal(4, 1000, 0.98), ideal(8, 4000, 0.75), flash(500_000_000), flash(3_000_000_000)];
    // volumes count a larger request as several
    if bytes <= 128 << 10 {
        disks.extend([cloud(few, 0.9), cloud(few * 4, 0.7)]);
    }
    let known = |yaml: String| {
        let name = format!("{} KiB: {}", bytes >> 10, yaml.replace('\n', ", "));
        let spec = parse(&name, &yaml);
        Known { name, lasting: spec.clone(), spec, shows: true, fills: None }
    };
    disks.into_iter().map(known).collect()
}

fn found(known: &Known, budget: &Budget, seed: u64, deviation: Option<f64>) -> Found {
    let disk = known.spec.build(seed);
    match deviation {
        Some(deviation) => tune(known, Box::new(Uneven::new(disk, deviation, seed).0), budget),
        None => tune(known, disk, budget),
    }
}

/// Of this many seeds and both directions, how many verdicts are within a power of two of `bytes`,
/// and how many there are of any size.
fn right(
    known: &Known,
    budget: &Budget,
    bytes: u64,
    seeds: u64,
    deviation: Option<f64>,
) -> [usize; 2] {
    let all = (1..=seeds).flat_map(|seed| found(known, budget, seed, deviation).saturation);
    let all: Vec<Option<u64>> = all.collect();
    let mut sizes = String::new();
    all.iter().for_each(|bytes| {
        let _ = match bytes {
            Some(bytes) => write!(sizes, " {}", bytes >> 10),
            None => write!(sizes, " ?"),
        };
    });
    let said: Vec<u64> = all.into_iter().flatten().collect();
    let near = said.iter().filter(|&&said| said >= bytes / 2 && said <= bytes * 2).count();
    println!("{near} of {}: {}, {}, {deviation:?}:{sizes}", seeds * 2, budget.name, known.name);
    [near, said.len()]
}

/// Presets that were fitted to a measured surface.
const SURFACES: [&str; 3] = ["gcp-pd-SSD-2TB", "i3.2xlarge", "i3en.3xlarge"];
const SIZES: [u64; 4] = [16 << 10, 128 << 10, 512 << 10, 2 << 20];

#[test]
fn the_size_from_which_on_streams_reach_their_bandwidth_is_right_to_a_power_of_two() {
    for bytes in SIZES {
        for known in saturating(bytes) {
            let [near, _] = right(&known, &Budget::QUICK, bytes, 1, None);
            assert_eq!(near, 2, "{}", known.name);
        }
    }
}

#[test]
fn no_measured_disk_is_said_to_need_larger_requests_than_it_does() {
    for known in presets() {
        if SURFACES.contains(&known.name.as_str()) {
            for seed in 1..=4 {
                let said = found(&known, &Budget::QUICK, seed, None).saturation;
                assert!(said.into_iter().flatten().all(|bytes| bytes <= 128 << 10), "{said:?}");
            }
        }
    }
}

/// `cargo test --release -p forebay-tune --test truth saturation -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn saturation_of_twenty_seeds() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for budget in super::budgets() {
        for bytes in SIZES {
            for deviation in [None, Some(0.02)] {
                let mut known = saturating(bytes);
                known.retain(|known| known.name.contains(&only));
                let near = known.iter().map(|known| right(known, &budget, bytes, 20, deviation)[0]);
                let near: usize = near.sum();
                println!(
                    "{} KiB, {}, {deviation:?}: {near} of {}",
                    bytes >> 10,
                    budget.name,
                    known.len() * 40
                );
            }
        }
        for known in presets() {
            if SURFACES.contains(&known.name.as_str()) && known.name.contains(&only) {
                right(&known, &budget, 64 << 10, 20, None);
            }
        }
    }
}
