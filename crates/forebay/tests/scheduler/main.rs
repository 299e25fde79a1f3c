//! Schedulers: how they are made, changed and reloaded.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod classes;
mod configuration;
mod duplex;
mod figures;
mod measured;
mod order;
mod reload;
mod scope;
mod target;

use forebay::{DiskConfig, DiskRates, Scheduler, SchedulerBuilder};

const RATES: DiskRates = DiskRates {
    read_iops: 100_000,
    write_iops: 50_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 500_000_000,
};

fn disk(name: &str) -> DiskConfig {
    DiskConfig::new(name, RATES)
}

fn two_disks() -> SchedulerBuilder {
    Scheduler::builder().disk(disk("data")).disk(disk("log"))
}

/// An io-properties file with one disk, at `mountpoint`.
fn properties(mountpoint: &str, read_bandwidth: u64) -> String {
    format!(
        "disks:\n  - mountpoint: {mountpoint}\n    read_iops: 1000\n    write_iops: 1000\n    \
         read_bandwidth: {read_bandwidth}\n    write_bandwidth: 100000000\n"
    )
}
