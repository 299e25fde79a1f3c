//! Permits that do not come back.

use std::thread;
use std::time::{Duration, Instant};

use forebay::{DiskConfig, Op, Policy, Scheduler, ThreadPermit};

use crate::executor::{block_on, poll_once};
use crate::{FAST, scheduler, takes_at_once};

/// A scheduler whose disk takes `requests` at a time, and each for 100 ms at most.
fn impatient(requests: u32) -> Scheduler {
    scheduler(FAST, Policy::Concurrency { requests })
}

#[test]
fn forgotten_permits_do_not_stop_threads() {
    let scheduler = impatient(2);
    let class = scheduler.add_class("class", 100).unwrap();
    for _ in 0..2 {
        std::mem::forget(class.admit(Op::Read, 4096).unwrap().detach());
    }
    for _ in 0..4 {
        drop(class.admit(Op::Read, 4096).unwrap());
    }
    let counters = class.permit_counters();
    assert_eq!((counters.operations[0], counters.in_disk), (4, 2));
    assert!((1..=2).contains(&counters.overdue), "{}", counters.overdue);
}

#[test]
fn nor_do_they_stop_tasks() {
    let scheduler = impatient(1);
    let class = scheduler.add_class("class", 100).unwrap();
    std::mem::forget(block_on(class.admit_async(Op::Read, 4096)).unwrap());
    block_on(async { drop(class.admit_async(Op::Read, 4096).await.unwrap()) });
    assert_eq!(class.permit_counters().overdue, 1);
}

#[test]
fn a_forgotten_permit_opens_the_window_to_its_thread_for_a_while_only() {
    let scheduler = impatient(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let other = takes_at_once(1).add_class("other", 100).unwrap();
    std::mem::forget(class.admit(Op::Read, 4096).unwrap());
    let _first = other.admit(Op::Read, 4096).unwrap().detach();
    assert!(other.try_admit(Op::Read, 4096).unwrap().is_some(), "the thread holds one");
    // it waits until the window has given up the forgotten one
    thread::scope(|scope| {
        scope.spawn(|| drop(class.admit(Op::Read, 4096).unwrap()));
    });
    assert!(other.try_admit(Op::Read, 4096).unwrap().is_none(), "it lapsed");
}

#[test]
fn a_disk_that_hangs_takes_no_more_than_probes() {
    let scheduler = impatient(4);
    let class = scheduler.add_class("class", 100).unwrap();
    let clock = forebay::Clock::of_process();
    let start = clock.now();
    let stuck: Vec<_> = (0..12).map(|_| class.admit(Op::Read, 4096).unwrap().detach()).collect();
    let nanos = clock.now().nanos_since(start);
    // 4 at once; after 100 ms, one per 10 ms
    assert!(nanos >= 100_000_000 + 7 * 10_000_000, "{nanos}");
    drop(stuck);
    // it is back
    let at_once: Vec<_> =
        (0..4).map(|_| class.try_admit(Op::Read, 1).unwrap().unwrap().detach()).collect();
    assert_eq!(class.permit_counters().in_disk, at_once.len() as u32);
}

#[test]
fn other_disks_do_not_notice() {
    let hung = impatient(1).add_class("hung", 100).unwrap();
    let fine = takes_at_once(1).add_class("fine", 100).unwrap();
    let _stuck = hung.admit(Op::Write, 4096).unwrap().detach();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| hung.admit(Op::Write, 4096).unwrap().complete(&Ok(())));
        for _ in 0..1_000 {
            drop(fine.admit(Op::Read, 4096).unwrap());
        }
        waiting.join().unwrap();
    });
    assert_eq!(fine.permit_counters().overdue, 0);
}

#[test]
fn futures_that_were_forgotten_once_granted_do_not_keep_their_places() {
    let disk = DiskConfig::new("disk", FAST).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(disk).requests_max(4).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let begin = Instant::now();
    let mut leaked = 0;
    while leaked < 10 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{leaked} keep their places");
        let Ok(held) = class.admit(Op::Read, 4096).map(ThreadPermit::detach) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let mut admit = Box::pin(class.admit_async(Op::Read, 4096));
        let mut batch = Box::pin(class.admit_many(&[(Op::Read, 4096)]));
        let waits = match leaked % 2 {
            0 => poll_once(admit.as_mut()).is_pending(),
            _ => poll_once(batch.as_mut()).is_pending(),
        };
        if waits {
            leaked += 1;
            std::mem::forget((admit, batch));
        } else {
            thread::sleep(Duration::from_millis(10));
        }
        drop(held);
    }
    // What is there again, and what the rest holds.
    let counters = class.permit_counters();
    assert!(counters.queued + counters.in_disk <= 4, "{counters:?}");
}

/// What the scheduler counts of its disk: stalls, and requests that were overdue in them.
fn stalls(scheduler: &Scheduler) -> (u64, u64) {
    let counters = scheduler.snapshot().disks[0].load.counters;
    (counters.stalls, counters.stall_overdue)
}

#[test]
fn held_permits_without_other_io_are_no_stall_of_the_disk() {
    let scheduler = impatient(2);
    let class = scheduler.add_class("class", 100).unwrap();
    let held: Vec<_> = (0..2).map(|_| class.admit(Op::Read, 4096).unwrap().detach()).collect();
    thread::sleep(Duration::from_millis(300));
    // it waits until one of these is given up
    drop(class.admit(Op::Read, 4096).unwrap());
    assert!(class.permit_counters().overdue > 0);
    assert_eq!(stalls(&scheduler), (0, 0));
    drop(held);
    assert_eq!(stalls(&scheduler), (0, 0));
}

#[test]
fn permits_of_which_none_comes_back_however_often_another_is_granted_are_a_stall() {
    let scheduler = impatient(4);
    let class = scheduler.add_class("class", 100).unwrap();
    let stuck: Vec<_> = (0..12).map(|_| class.admit(Op::Read, 4096).unwrap().detach()).collect();
    thread::sleep(Duration::from_millis(100));
    let (lasting, _) = stalls(&scheduler);
    drop(stuck);
    let (ended, overdue) = stalls(&scheduler);
    assert_eq!((lasting, ended), (1, 1));
    assert!(overdue > 0);
}
