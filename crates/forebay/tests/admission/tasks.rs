//! Tasks, on any executor.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use forebay::{AdmitError, Class, DiskConfig, DiskRates, Op, Permit, Policy, Scheduler};

use crate::executor::{WakeCounter, block_on, poll_once};
use crate::{FAST, scheduler, takes_at_once};

/// Of 1,000 operations per second: pace stops whatever comes at once.
fn paced() -> Class {
    paced_at(1_000)
}

/// Of this many operations per second.
pub(crate) fn paced_at(iops: u64) -> Class {
    let rates = DiskRates { read_iops: iops, write_iops: iops, ..FAST };
    scheduler(rates, Policy::pace_window()).add_class("class", 100).unwrap()
}

/// Needs time to pass, and nothing but wakers to notice.
async fn some_permits(class: Class) {
    for _ in 0..10 {
        let permit = class.admit_async(Op::Read, 4096).await.unwrap();
        permit.complete(&Ok(()));
    }
}

#[test]
fn a_task_is_woken_once_when_it_is_granted() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    let wakes = WakeCounter::new();
    let waker = Waker::from(wakes.clone());
    let mut context = Context::from_waker(&waker);
    let mut admit = pin!(class.admit_async(Op::Read, 4096));
    assert!(admit.as_mut().poll(&mut context).is_pending());
    assert!(admit.as_mut().poll(&mut context).is_pending());
    assert_eq!(wakes.count(), 0);
    drop(first);
    assert_eq!(wakes.count(), 1);
    assert!(matches!(admit.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
}

#[test]
fn the_waker_polled_with_last_is_woken() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    let (before, after) = (WakeCounter::new(), WakeCounter::new());
    let mut admit = pin!(class.admit_async(Op::Read, 4096));
    for wakes in [&before, &after] {
        let waker = Waker::from(wakes.clone());
        assert!(admit.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(first);
    assert_eq!((before.count(), after.count()), (0, 1));
}

#[test]
fn a_dropped_future_leaves_the_queue() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    let mut admit = Box::pin(class.admit_async(Op::Read, 4096));
    assert!(poll_once(admit.as_mut()).is_pending());
    assert_eq!(class.permit_counters().queued, 1);
    drop(admit);
    let counters = class.permit_counters();
    assert_eq!((counters.queued, counters.cancelled), (0, 1));
    drop(first);
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_some());
}

#[test]
fn a_future_dropped_with_its_grant_gives_it_back() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    let mut unpolled = Box::pin(class.admit_async(Op::Read, 4096));
    let mut next = Box::pin(class.admit_async(Op::Read, 4096));
    assert!(poll_once(unpolled.as_mut()).is_pending());
    assert!(poll_once(next.as_mut()).is_pending());
    drop(first);
    assert!(poll_once(next.as_mut()).is_pending(), "only one fits");
    drop(unpolled);
    assert!(matches!(poll_once(next.as_mut()), Poll::Ready(Ok(_))));
    assert_eq!(class.permit_counters().in_disk, 0);
}

#[test]
fn a_task_that_ends_with_its_waker_does_so_outside_the_lock() {
    /// Owns what keeps it waiting.
    struct Owner(std::sync::Mutex<Option<std::pin::Pin<Box<forebay::AdmitFuture>>>>);
    impl std::task::Wake for Owner {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let _first = class.admit(Op::Read, 4096).unwrap().detach();
    let owner = std::sync::Arc::new(Owner(std::sync::Mutex::new(None)));
    let waker = Waker::from(owner.clone());
    let mut inner = Box::pin(class.admit_async(Op::Read, 4096));
    let mut outer = Box::pin(class.admit_async(Op::Read, 4096));
    assert!(poll_once(inner.as_mut()).is_pending());
    assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    *owner.0.lock().unwrap() = Some(inner);
    drop((owner, waker));
    // its waker is the last owner of the other future
    drop(outer);
    assert_eq!(class.permit_counters().queued, 0);
}

#[test]
fn errors_come_from_the_first_poll() {
    let class = paced();
    let refused = block_on(class.admit_async(Op::Write, 0));
    assert!(matches!(refused, Err(AdmitError::ZeroLength { op: Op::Write })));
}

#[test]
fn an_executor_of_our_own() {
    block_on(some_permits(paced()));
}

#[test]
fn tokio_on_several_threads() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let class = paced();
        let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(some_permits(class.clone()))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(class.permit_counters().operations[0], 40);
        // ten seconds of disk time
        let _all = class.admit_async(Op::Read, 1_000_000_000_000).await.unwrap();
        let late = class.admit_async(Op::Read, 4096);
        assert!(tokio::time::timeout(Duration::from_millis(1), late).await.is_err());
        assert_eq!(class.permit_counters().queued, 0);
    });
}

#[test]
fn smol_on_several_threads() {
    let class = paced();
    smol::block_on(async {
        let tasks: Vec<_> = (0..4).map(|_| smol::spawn(some_permits(class.clone()))).collect();
        for task in tasks {
            task.await;
        }
    });
    assert_eq!(class.permit_counters().operations[0], 40);
}

#[test]
fn threads_and_tasks_wait_in_one_queue() {
    let class = paced();
    thread::scope(|scope| {
        scope.spawn(|| block_on(some_permits(class.clone())));
        scope.spawn(|| (0..10).for_each(|_| drop(class.admit(Op::Read, 4096).unwrap())));
        scope.spawn(|| block_on(some_permits(class.clone())));
    });
    assert_eq!(class.permit_counters().operations[0], 30);
}

#[test]
fn a_permit_goes_where_its_task_goes() {
    fn is_send<T: Send + 'static>(_: &T) {}
    let class = paced();
    let admit = class.admit_async(Op::Read, 4096);
    is_send(&admit);
    let permit: Permit = block_on(admit).unwrap();
    is_send(&permit);
    thread::spawn(move || drop(permit)).join().unwrap();
    assert_eq!(class.permit_counters().operations[0], 1);
}

/// Permits that a task which is polled `polls` times, every this many
/// milliseconds, takes at these polls, while threads keep the window full.
fn taken_now_and_then(every: u64, polls: usize) -> usize {
    let rates = DiskRates { read_iops: 4_000, write_iops: 4_000, ..FAST };
    let scheduler = Scheduler::builder().disk(DiskConfig::new("disk", rates)).build().unwrap();
    let [backlog, polled] =
        ["backlog", "polled"].map(|name| scheduler.add_class(name, 100).unwrap());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let permit = backlog.admit(Op::Read, 4096).unwrap();
                    thread::sleep(Duration::from_millis(2));
                    drop(permit);
                }
            });
        }
        let ask = || Box::pin(polled.admit_async(Op::Read, 4096));
        let (mut task, mut taken) = (ask(), 0);
        for _ in 0..polls {
            if let Poll::Ready(permit) = poll_once(task.as_mut()) {
                taken += 1;
                drop(permit.unwrap());
                task = ask();
                if let Poll::Ready(permit) = poll_once(task.as_mut()) {
                    drop(permit.unwrap());
                    task = ask();
                }
            }
            thread::sleep(Duration::from_millis(every));
        }
        stop.store(true, Ordering::Relaxed);
        taken
    })
}

#[test]
fn a_rarely_polled_task_gets_a_permit_each_time_under_a_backlog() {
    for (every, polls) in [(1, 200), (5, 100), (20, 50)] {
        // the machine may be too slow for it now and then
        let best = (0..5).map(|_| taken_now_and_then(every, polls)).max().unwrap();
        assert!(best >= polls * 9 / 10, "{best} in {polls} polls every {every} ms");
    }
}

/// Whether a thread gets a permit, in less time than it takes to give up what
/// is overdue, while grants that nobody polls would fill the window.
fn is_served_with_unpolled_grants(tasks: usize) -> bool {
    let rates = DiskRates { read_iops: 4_000, write_iops: 4_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let [urgent, unpolled] =
        [1000, 100].map(|shares| scheduler.add_class(&format!("of {shares}"), shares).unwrap());
    let mut waiting = Vec::new();
    for _ in 0..tasks {
        let mut task = Box::pin(unpolled.admit_async(Op::Read, 4096));
        if poll_once(task.as_mut()).is_pending() {
            waiting.push(task);
        }
    }
    // all are granted, as far as the window lets them
    thread::sleep(Duration::from_millis(20));
    urgent.admit_timeout(Op::Read, 4096, Duration::from_millis(40)).is_ok()
}

#[test]
fn grants_that_nobody_polls_keep_no_thread_waiting() {
    for tasks in [12, 50, 200] {
        // the machine may be too slow for it now and then
        assert!((0..5).any(|_| is_served_with_unpolled_grants(tasks)), "{tasks} tasks");
    }
}
