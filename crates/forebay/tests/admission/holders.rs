//! Whoever holds a permit and asks for another.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use forebay::{DiskConfig, DiskRates, Op, Policy, Scheduler};

use crate::executor::block_on;
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
        let two = one.admit_more(&class, Op::Read, 4096).await.unwrap();
        let three = two.admit_more(&class, Op::Write, 4096).await.unwrap();
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
            drop(one.admit_more(&class, Op::Read, 4096).await.unwrap());
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
        let mut more = Box::pin(one.admit_more(&class, Op::Read, 4096));
        match crate::executor::poll_once(more.as_mut()) {
            std::task::Poll::Ready(permit) => granted.push(permit.unwrap()),
            std::task::Poll::Pending => break,
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
