//! Shares, among threads at one queue.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forebay::{Class, DiskRates, Op, Policy};

use crate::executor::{block_on, poll_once};
use crate::scheduler;

const THREADS_PER_CLASS: usize = 2;
const SHARES: [u32; 4] = [100, 200, 400, 800];
/// What one thread queues per share, more than it gets: no class is ever
/// without work, however late the machine lets its threads run. What is granted
/// meanwhile is in the disk until all have queued, so that must not take long.
const QUEUED_PER_SHARE: u32 = 6;

/// Queues everything, and then takes what it gets.
fn client(class: &Class, shares: u32, all_queued: &Barrier, stop: &AtomicBool) {
    let admit = |_| {
        let mut admit = Box::pin(class.admit_async(Op::Read, 4096));
        let granted = poll_once(admit.as_mut()).is_ready();
        (admit, granted)
    };
    let queued: Vec<_> = (0..shares * QUEUED_PER_SHARE).map(admit).collect();
    all_queued.wait();
    for (admit, granted) in queued {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if !granted {
            drop(block_on(admit).unwrap());
        }
    }
}

/// What each class gets of 12,000 permits that come after the first 2,000.
fn granted(classes: &[Class]) -> Vec<u64> {
    let (stop, all_queued) =
        (AtomicBool::new(false), Barrier::new(classes.len() * THREADS_PER_CLASS + 1));
    thread::scope(|scope| {
        for (class, shares) in classes.iter().zip(SHARES) {
            for _ in 0..THREADS_PER_CLASS {
                let (all_queued, stop) = (&all_queued, &stop);
                scope.spawn(move || client(class, shares, all_queued, stop));
            }
        }
        all_queued.wait();
        let count = || classes.iter().map(|class| class.permit_counters().operations[0]);
        let reached = |total: u64| {
            while count().sum::<u64>() < total {
                thread::sleep(Duration::from_millis(1));
            }
            count().collect::<Vec<_>>()
        };
        let start = count().sum::<u64>();
        let (before, after) = (reached(start + 2_000), reached(start + 14_000));
        stop.store(true, Ordering::Relaxed);
        after.iter().zip(before).map(|(after, before)| after - before).collect()
    })
}

#[test]
fn eight_threads_share_a_binding_budget_by_shares() {
    let rates = DiskRates {
        read_iops: 20_000,
        write_iops: 20_000,
        read_bandwidth: 1_000_000_000,
        write_bandwidth: 1_000_000_000,
    };
    let scheduler = scheduler(rates, Policy::pace_window());
    let classes = SHARES.map(|n| scheduler.add_class(&format!("class {n}"), n).unwrap());
    let granted = granted(&classes);
    let total: u64 = granted.iter().sum();
    for (granted, share) in granted.iter().zip(SHARES) {
        let wanted = total * u64::from(share) / 1500;
        assert!(granted.abs_diff(wanted) * 50 <= wanted, "{granted} of {total}, not {wanted}");
    }
}
