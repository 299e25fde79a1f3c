//! Holders of a permit that ask for another.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use forebay::{DiskConfig, DiskRates, Limits, Op, Policy, Scheduler};

use crate::executor::{WakeCounter, block_on, poll_once};
use crate::{FAST, SLOW, scheduler, takes_at_once};

#[test]
fn two_threads_with_two_permits_each_do_not_wait_for_each_other() {
    let scheduler = takes_at_once(2);
    let class = scheduler.add_class("class", 100).unwrap();
    let barrier = Arc::new(Barrier::new(2));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let one = class.admit(Op::Read, 4096).unwrap();
                    barrier.wait();
                    // both places are taken now
                    let two = class.admit(Op::Read, 4096).unwrap();
                    drop((one, two));
                    barrier.wait();
                }
            });
        }
    });
    let counters = class.permit_counters();
    assert_eq!((counters.operations[0], counters.overdue), (400, 0));
}

#[test]
fn nor_do_two_threads_crosswise_on_two_disks() {
    let disk = |name| DiskConfig::new(name, SLOW).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(disk("a")).disk(disk("b")).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let on = |name| class.on(&scheduler.disk(name).unwrap()).unwrap();
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for (mine, other) in [("a", "b"), ("b", "a")] {
            let (mine, other, barrier) = (on(mine), on(other), &barrier);
            scope.spawn(move || {
                for _ in 0..100 {
                    let one = mine.admit(Op::Read, 4096).unwrap();
                    barrier.wait();
                    drop((one, other.admit(Op::Read, 4096).unwrap()));
                    barrier.wait();
                }
            });
        }
    });
    let counters = [on("a"), on("b")].map(|class| class.permit_counters());
    assert_eq!(counters.map(|class| (class.operations[0], class.overdue)), [(200, 0); 2]);
}

#[test]
fn a_task_asks_for_more_through_its_permit() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    block_on(async {
        let one = class.admit_async(Op::Read, 4096).await.unwrap();
        let two = one.admit_nested(&class, Op::Read, 4096).await.unwrap();
        let three = two.admit_nested(&class, Op::Write, 4096).await.unwrap();
        assert_eq!(class.permit_counters().in_disk, 3);
        drop((one, two, three));
    });
}

#[test]
fn more_permits_still_wait_for_the_pace() {
    let rates = DiskRates { read_iops: 1_000, write_iops: 1_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    let clock = forebay::Clock::of_process();
    let start = clock.now();
    block_on(async {
        let one = class.admit_async(Op::Read, 4096).await.unwrap();
        for _ in 0..20 {
            drop(one.admit_nested(&class, Op::Read, 4096).await.unwrap());
        }
    });
    let one = class.admit(Op::Read, 4096).unwrap();
    for _ in 0..20 {
        drop(class.admit(Op::Read, 4096).unwrap());
    }
    drop(one);
    // 42 ms of disk time, of which one goal and one request may run ahead
    let least = Duration::from_millis(40);
    assert!(clock.now().since(start) >= least, "no pace");
}

#[test]
fn a_dropped_request_for_more_is_forgotten() {
    let rates = DiskRates { read_iops: 1, write_iops: 1, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    let one = block_on(class.admit_async(Op::Read, 4096)).unwrap();
    let mut granted = Vec::new();
    loop {
        let mut more = Box::pin(one.admit_nested(&class, Op::Read, 4096));
        match poll_once(more.as_mut()) {
            Poll::Ready(permit) => granted.push(permit.unwrap()),
            Poll::Pending => break,
        }
    }
    let counters = class.permit_counters();
    assert_eq!((counters.queued, counters.in_disk as usize), (0, granted.len() + 1));
}

#[test]
fn a_detached_permit_is_not_the_threads() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let held = class.admit(Op::Read, 4096).unwrap();
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_some(), "it holds one");
    let sent = held.detach();
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_none(), "it holds none");
    drop(sent);
}

/// Both classes have more queued than they get in the test.
#[test]
fn holders_get_the_share_of_their_class() {
    let rates = DiskRates { read_iops: 10_000, write_iops: 10_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let [plain, held] = [("plain", 300), ("held", 100)]
        .map(|(name, shares)| scheduler.add_class(name, shares).unwrap());
    // more than may be unfinished
    let outer: Vec<_> =
        (0..16).map(|_| block_on(held.admit_async(Op::Read, 4096)).unwrap()).collect();
    let nested = held.nested_in(&outer[0]);
    let mut asked = Vec::new();
    for n in 0..12_000 {
        let class = if n % 4 == 0 { &nested } else { &plain };
        let mut admit = Box::pin(class.admit_async(Op::Read, 4096));
        if let Poll::Ready(permit) = poll_once(admit.as_mut()) {
            drop(permit.unwrap());
        }
        asked.push(admit);
    }
    let used = || [&plain, &held].map(|class| class.permit_counters().consumption.units());
    let after = |nanos: u64| {
        while used().iter().sum::<u64>() < nanos * 64 {
            thread::sleep(Duration::from_millis(1));
        }
        used()
    };
    let start = used().iter().sum::<u64>() / 64;
    let (before, after) = (after(start + 30_000_000), after(start + 530_000_000));
    let ratio = (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64;
    assert!((2.95..3.05).contains(&ratio), "{ratio}");
    assert!(scheduler.disks()[0].permit_counters().window_bypasses > 0);
}

#[test]
fn a_grant_wakes_one_of_the_many_who_wait_for_more() {
    let rates = DiskRates { read_iops: 200, write_iops: 200, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    let one = block_on(class.admit_async(Op::Read, 4096)).unwrap();
    let wakes = WakeCounter::new();
    let waker = Waker::from(Arc::clone(&wakes));
    let mut many: Vec<_> =
        (0..500).map(|_| Box::pin(one.admit_nested(&class, Op::Read, 4096))).collect();
    for more in &mut many {
        _ = more.as_mut().poll(&mut Context::from_waker(&waker));
    }
    thread::sleep(Duration::from_millis(500));
    let woken = wakes.count();
    let granted = scheduler.disks()[0].permit_counters().dispatched;
    assert!(woken > 10 && woken as u64 <= granted, "{woken} wake-ups for {granted}");
}

/// Tasks that hold a permit of a class without a limit while they ask for one of
/// a class with one, as often as they get it.
fn nested_under_a_limit(
    scheduler: &Scheduler,
    limits: &Limits,
    is_nested: bool,
) -> (u64, Duration) {
    let held = scheduler.add_class("held", 100).unwrap();
    let limited = scheduler.add_class("limited", 100).unwrap();
    limited.set_limits(limits).unwrap();
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let clock = forebay::Clock::of_process();
    let start = clock.now();
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let one = block_on(held.admit_async(Op::Read, 4096)).unwrap();
                    let two = if is_nested {
                        block_on(limited.nested_in(&one).admit_async(Op::Read, 4096))
                    } else {
                        block_on(one.admit_nested(&limited, Op::Read, 4096))
                    };
                    drop((two.unwrap(), one));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        // all of them end with what they have
        let result = (done.load(Ordering::Relaxed), clock.now().since(start));
        limited.set_limits(&Limits::default()).unwrap();
        result
    })
}

#[test]
fn a_limit_holds_for_a_class_that_only_holders_use() {
    let operations = |rate| Limits { operations_per_second: Some(rate), ..Limits::default() };
    let bytes = |rate| Limits { bytes_per_second: Some(rate), ..Limits::default() };
    let limits = [(20, operations(20)), (500, operations(500)), (500, bytes(500 * 4096))];
    for (rate, limits) in limits {
        for is_nested in [false, true] {
            let scheduler = scheduler(FAST, Policy::pace_window());
            let (done, time) = nested_under_a_limit(&scheduler, &limits, is_nested);
            let due = rate as f64 * time.as_secs_f64();
            // 10 ms worth at once, and a request
            let most = due * 1.02 + rate as f64 / 100.0 + 1.0;
            let case = format!("{limits:?}, {is_nested}: {done} of {due}");
            assert!(done as f64 <= most, "{case}");
            // a machine under load wakes threads late
            assert!(done as f64 >= due * 0.8 - 1.0, "{case}");
        }
    }
}

#[test]
fn others_have_the_disk_while_a_limit_holds_holders_back() {
    let rates = DiskRates { read_iops: 10_000, write_iops: 10_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let [held, limited, other] =
        ["held", "limited", "other"].map(|name| scheduler.add_class(name, 100).unwrap());
    let limits = Limits { operations_per_second: Some(1), ..Limits::default() };
    limited.set_limits(&limits).unwrap();
    // more than may be unfinished
    let held: Vec<_> = (0..20).map(|_| held.admit(Op::Read, 4096).unwrap().detach()).collect();
    let mut more: Vec<_> =
        held.iter().map(|one| Box::pin(one.admit_nested(&limited, Op::Read, 4096))).collect();
    for more in &mut more {
        _ = poll_once(more.as_mut());
    }
    let clock = forebay::Clock::of_process();
    let start = clock.now();
    let mut served = 0;
    while clock.now().since(start) < Duration::from_millis(80) {
        let asked: Vec<_> = (0..32).map(|_| Box::pin(other.admit_async(Op::Read, 4096))).collect();
        for admit in asked {
            drop(block_on(admit).unwrap());
            served += 1;
        }
    }
    // before any of what is held is given up. A machine under load wakes threads
    // late
    let due = clock.now().since(start).as_secs_f64() * 10_000.0;
    assert!(f64::from(served) >= due * 0.5, "{served} of {due}");
    let counters = scheduler.disks()[0].permit_counters();
    assert!(counters.window_bypasses > 0, "{counters:?}");
}
