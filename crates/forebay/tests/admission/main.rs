//! Permits: for threads and for tasks, under load, and when things go wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod batches;
mod blocking;
mod executor;
mod holders;
mod overdue;
mod parts;
mod shares;
mod stress;
mod tasks;
mod wakers;

use forebay::{Control, DiskConfig, DiskRates, Policy, Scheduler};

/// A disk so fast that its pace never binds.
const FAST: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 100_000_000_000,
    write_bandwidth: 100_000_000_000,
};

fn scheduler(rates: DiskRates, policy: Policy) -> Scheduler {
    // these tests are about what waits, for the pace and for a window of two goals
    let disk = DiskConfig::new("disk", rates).policy(policy).control(Control::Rates);
    Scheduler::builder().disk(disk).build().unwrap()
}

/// Figures of which the scheduler concludes that requests take minutes, so
/// that none is overdue however slow the machine that runs the tests.
const SLOW: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 13_000,
    write_bandwidth: 13_000,
};

/// A scheduler whose disk takes `requests` at a time, at any rate.
fn takes_at_once(requests: u32) -> Scheduler {
    scheduler(SLOW, Policy::Concurrency { requests })
}
