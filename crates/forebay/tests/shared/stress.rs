//! What the stress tests of files and shards have in common.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forebay::properties::Properties;
use forebay::{Class, DiskRates, Scheduler};

/// Fast enough for the budget to bind only now and then.
pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 200_000,
    write_iops: 200_000,
    read_bandwidth: 2_000_000_000,
    write_bandwidth: 2_000_000_000,
};

/// A class that comes and goes.
const PASSING: &str = "passing";

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// Rounds per thread: `STRESS_ROUNDS`, or else `usual`.
pub(crate) fn rounds(usual: u64) -> u64 {
    let given = std::env::var("STRESS_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    given.unwrap_or(usual)
}

/// A class to work in: that of the caller, or one that may go at any time.
pub(crate) fn any_class(scheduler: &Scheduler, own: &Class, random: &mut Random) -> Class {
    let passing = if random.below(4) == 0 { scheduler.class(PASSING) } else { None };
    passing.unwrap_or_else(|| own.clone())
}

/// Adds and removes a class, changes shares, and loads other figures for the
/// disk at `mountpoint`, until it is over.
pub(crate) fn meddle(scheduler: &Scheduler, mountpoint: &Path, over: &AtomicBool) {
    let mut random = Random(99);
    let (mut removed, mut refused) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        match (random.below(4), scheduler.class(PASSING)) {
            (0, _) => scheduler.reload(&properties(mountpoint, &mut random)).unwrap(),
            (1, Some(passing)) => passing.set_shares(1 + random.below(1000) as u32).unwrap(),
            (_, None) => drop(scheduler.add_class(PASSING, 100).unwrap()),
            (_, Some(passing)) => match scheduler.remove_class(&passing) {
                Ok(()) => removed += 1,
                // it has work queued
                Err(_) => refused += 1,
            },
        }
        thread::sleep(Duration::from_micros(100));
    }
    eprintln!("a class was removed {removed} times, and {refused} times it had work queued");
    while scheduler.class(PASSING).is_some_and(|passing| scheduler.remove_class(&passing).is_err())
    {
        thread::yield_now();
    }
}

fn properties(mountpoint: &Path, random: &mut Random) -> Properties {
    let mut figure = |least: usize| least + random.below(3 * least);
    let text = format!(
        "disks:\n  - mountpoint: {}\n    read_iops: {}\n    write_iops: {}\n    \
         read_bandwidth: {}\n    write_bandwidth: {}\n",
        mountpoint.display(),
        figure(100_000),
        figure(100_000),
        figure(500_000_000),
        figure(500_000_000),
    );
    Properties::parse("stress", &text).unwrap()
}
