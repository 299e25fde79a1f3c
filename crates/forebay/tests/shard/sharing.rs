//! Shards of several threads on one disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use forebay::engine::{BackendChoice, EngineConfig, Operation};
use forebay::shard::ShardError;
use forebay::{DirectFile, DiskConfig, DiskRates, Op, Scheduler};

use crate::fixture::{BLOCK, filled};

const RATES: DiskRates = DiskRates {
    read_iops: 20_000,
    write_iops: 20_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 1_000_000_000,
};

fn null_config() -> EngineConfig {
    EngineConfig { backend: BackendChoice::Null, ..EngineConfig::default() }
}

fn scheduler() -> Scheduler {
    Scheduler::builder().disk(DiskConfig::new("disk", RATES)).build().unwrap()
}

/// One class per thread, each with a shard of its own: shares hold across.
#[test]
fn shares_hold_across_shards() {
    // A request takes 10 ms, which few threads are ever late by.
    const SLOW: DiskRates = DiskRates { read_iops: 100, write_iops: 100, ..RATES };
    const ENOUGH: u64 = 200;
    let disk = DiskConfig::new("disk", SLOW);
    let scheduler = Scheduler::builder().disk(disk).build().unwrap();
    let null = DirectFile::options().read(true).write(true).open("/dev/null").unwrap();
    let done: [AtomicU64; 2] = Default::default();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (index, shares) in [(0, 300), (1, 100)] {
            let class = scheduler.add_class(&format!("class {index}"), shares).unwrap();
            let (done, over, null, scheduler) = (&done, &over, &null, &scheduler);
            scope.spawn(move || {
                let disk = scheduler.disk("disk").unwrap();
                let mut shard = disk.shard(&null_config()).unwrap();
                for _ in 0..32 {
                    let read = Operation::read(null.clone(), 0, filled(BLOCK, 0));
                    shard.submit(&class, read).unwrap();
                }
                while !over.load(Ordering::Relaxed) {
                    shard.run_once(Some(Duration::from_millis(10))).unwrap();
                    while let Some(finished) = shard.pop() {
                        shard.submit(&class, finished.operation).unwrap();
                        done[index].fetch_add(1, Ordering::Relaxed);
                    }
                    let total: u64 = done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
                    over.fetch_or(total >= ENOUGH, Ordering::Relaxed);
                }
            });
        }
    });
    let [heavy, light] = done.map(AtomicU64::into_inner);
    let ratio = heavy as f64 / light as f64;
    // Three to one; but a thread that the machine does not let run asks for
    // less than its share. Exactness is shown under virtual time.
    assert!((1.5..=6.0).contains(&ratio), "{heavy} to {light}");
}

#[test]
fn a_permit_that_is_dropped_wakes_a_shard() {
    let scheduler = scheduler();
    let class = scheduler.add_class("class", 100).unwrap();
    let disk = scheduler.disk("disk").unwrap();
    let null = DirectFile::options().read(true).write(true).open("/dev/null").unwrap();
    let mut shard = disk.shard(&null_config()).unwrap();
    for _ in 0..100 {
        // More than the window.
        let permit = class.admit(Op::Read, 16 << 20).unwrap().detach();
        shard.submit(&class, Operation::read(null.clone(), 0, filled(BLOCK, 0))).unwrap();
        shard.run_once(Some(Duration::ZERO)).unwrap();
        let waited = shard.pop().is_none();
        let thread = std::thread::spawn(move || drop(permit));
        while waited && shard.pop().is_none() {
            shard.run_once(Some(Duration::from_secs(60))).unwrap();
        }
        thread.join().unwrap();
    }
}

#[test]
fn there_are_no_more_shards_than_allowed() {
    let builder = Scheduler::builder().disk(DiskConfig::new("disk", RATES)).shards_max(1);
    let disk = builder.build().unwrap().disk("disk").unwrap();
    let first = disk.shard(&null_config()).unwrap();
    let error = disk.shard(&null_config()).unwrap_err();
    assert!(matches!(error, ShardError::NoShard { .. }));
    assert!(error.to_string().contains("shards_max"), "{error}");
    drop(first);
    disk.shard(&null_config()).unwrap();
}
