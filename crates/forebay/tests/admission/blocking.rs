//! Threads.

use std::io::ErrorKind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use forebay::{AdmitError, DiskConfig, DiskRates, Limits, Op, Policy, Scheduler};

use crate::executor::{block_on, poll_once};
use crate::{FAST, scheduler, takes_at_once};

#[test]
fn a_permit_makes_room_when_it_is_dropped() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_none());
    drop(first);
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_some());
}

#[test]
fn a_queue_holds_as_many_requests_as_it_may() {
    let disk = DiskConfig::new("disk", FAST).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(disk).requests_max(3).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let _held = class.admit(Op::Read, 4096).unwrap().detach();
    let mut waiting = [(); 2].map(|()| Box::pin(class.admit_async(Op::Read, 4096)));
    assert!(waiting.iter_mut().all(|waiting| poll_once(waiting.as_mut()).is_pending()));
    let timeout = class.admit_timeout(Op::Read, 4096, Duration::from_secs(60)).unwrap_err();
    let now = class.try_admit(Op::Read, 4096).unwrap_err();
    let task = block_on(class.admit_async(Op::Read, 4096)).unwrap_err();
    for refused in [timeout, now, task] {
        assert!(matches!(&refused, AdmitError::QueueFull { disk } if disk == "disk"), "{refused}");
    }
    drop(waiting);
    assert!(class.try_admit(Op::Read, 4096).unwrap().is_none(), "there is room to wait again");
}

#[test]
fn a_thread_waits_for_a_place_in_a_full_queue() {
    let disk = DiskConfig::new("disk", FAST).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(disk).requests_max(1).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let (granted, grants) = mpsc::channel();
    thread::scope(|scope| {
        let held = class.admit(Op::Read, 4096).unwrap().detach();
        for thread in 0..8 {
            let (class, granted) = (class.clone(), granted.clone());
            scope.spawn(move || {
                let permit = class.admit(Op::Write, 4096).unwrap();
                // A holder gets the error at once: it may wait for itself.
                let another = class.admit(Op::Write, 4096).unwrap_err();
                assert!(matches!(another, AdmitError::QueueFull { .. }), "{another}");
                granted.send(thread).unwrap();
                drop(permit);
            });
        }
        assert!(grants.recv_timeout(Duration::from_millis(50)).is_err());
        drop(held);
        for _ in 0..8 {
            grants.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    });
}

#[test]
fn a_place_of_a_permit_that_was_forgotten_goes_to_the_thread_that_waits_for_one() {
    let disk = DiskConfig::new("disk", FAST).policy(Policy::Concurrency { requests: 1 });
    let scheduler = Scheduler::builder().disk(disk).requests_max(1).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    std::mem::forget(class.admit(Op::Read, 4096).unwrap().detach());
    thread::scope(|scope| {
        let granted = scope.spawn(|| class.admit(Op::Read, 4096).map(drop));
        granted.join().unwrap().unwrap();
    });
}

#[test]
fn waiters_are_granted_by_the_thread_that_completes() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let (granted, grants) = mpsc::channel();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (class, granted) = (class.clone(), granted.clone());
            scope.spawn(move || {
                let permit = class.admit(Op::Write, 1 << 20).unwrap();
                granted.send(thread).unwrap();
                drop(permit);
            });
        }
        while class.permit_counters().queued < 4 {
            thread::yield_now();
        }
        assert!(grants.try_recv().is_err());
        drop(first);
    });
    assert_eq!(grants.try_iter().count(), 4);
}

#[test]
fn a_wait_ends_in_time_and_leaves_the_queue() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let _first = class.admit(Op::Read, 4096).unwrap().detach();
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        let refused = class.admit_timeout(Op::Read, 4096, timeout);
        assert!(matches!(refused, Err(AdmitError::TimedOut)), "{refused:?}");
        assert_eq!(class.permit_counters().queued, 0);
    }
}

#[test]
fn a_length_of_zero_is_for_a_flush_only() {
    let scheduler = takes_at_once(4);
    let class = scheduler.add_class("class", 100).unwrap();
    for op in [Op::Read, Op::Write, Op::Discard] {
        let refused = class.admit(op, 0);
        assert!(matches!(refused, Err(AdmitError::ZeroLength { op: named }) if named == op));
        assert!(class.admit(op, 1).is_ok());
    }
    assert!(class.admit(Op::Flush, 0).is_ok());
}

#[test]
fn lengths_that_no_file_has_are_refused() {
    let scheduler = scheduler(FAST, Policy::Unlimited);
    let class = scheduler.add_class("class", 100).unwrap();
    for len in [i64::MAX as u64 + 1, u64::MAX] {
        let refused = class.admit(Op::Read, len).unwrap_err();
        assert!(refused.to_string().contains(&format!("{len} bytes")), "{refused}");
    }
    assert!(class.admit(Op::Flush, i64::MAX as u64).is_ok());
    let refused = class.admit(Op::Discard, i64::MAX as u64).unwrap_err();
    assert!(matches!(refused, AdmitError::TooCostly { .. }), "{refused}");
}

#[test]
fn a_wrong_length_closes_the_disk_for_nobody() {
    for bandwidth in [13_000, 100_000_000, 100_000_000_000] {
        let rates = DiskRates { read_bandwidth: bandwidth, write_bandwidth: bandwidth, ..FAST };
        for policy in [Policy::pace_window(), Policy::Unlimited] {
            let scheduler = scheduler(rates, policy);
            let class = scheduler.add_class("class", 100).unwrap();
            let of_a_minute = (bandwidth * 60).max(1 << 20);
            for len in [of_a_minute + of_a_minute / 100, 1 << 50, i64::MAX as u64] {
                for op in [Op::Read, Op::Write] {
                    let case = format!("{bandwidth} B/s, {op:?} of {len}");
                    let error = class.admit(op, len).unwrap_err();
                    assert!(matches!(error, AdmitError::TooCostly { .. }), "{case}: {error}");
                    let said = error.to_string();
                    assert!(said.contains(&len.to_string()) && said.contains("split"), "{said}");
                    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::InvalidInput);
                    for refused in [
                        class.try_admit(op, len).map(drop),
                        class.admit_many(&[(op, len)]).wait().map(drop),
                        block_on(class.admit_async(op, len)).map(drop),
                        scheduler.admit_for(&class.disk(), op, len).wait().map(drop),
                    ] {
                        let too_costly = matches!(refused, Err(AdmitError::TooCostly { .. }));
                        assert!(too_costly, "{case}: {refused:?}");
                    }
                }
            }
            let other = scheduler.add_class("other", 100).unwrap();
            let permit = other.admit_timeout(Op::Read, 4096, Duration::from_secs(20));
            assert!(permit.is_ok(), "{bandwidth} B/s: {permit:?}");
        }
    }
}

#[test]
fn a_batch_goes_up_to_the_length_that_is_refused() {
    let scheduler = scheduler(FAST, Policy::Unlimited);
    let class = scheduler.add_class("class", 100).unwrap();
    let requests = [(Op::Read, 4096), (Op::Read, 1 << 62), (Op::Read, 4096)];
    assert_eq!(class.admit_many(&requests).wait().unwrap().requests(), 1);
    let refused = class.admit_many(&requests[1..]).wait();
    assert!(matches!(refused, Err(AdmitError::TooCostly { .. })), "{refused:?}");
}

#[test]
fn a_refusal_becomes_an_io_error_of_its_kind() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let error = std::io::Error::from(class.admit(Op::Read, 0).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let _first = class.admit(Op::Read, 4096).unwrap().detach();
    let refused = class.admit_timeout(Op::Read, 4096, Duration::ZERO).unwrap_err();
    let error = std::io::Error::from(refused);
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.get_ref().unwrap().is::<AdmitError>());
}

#[test]
fn waiters_at_a_limit_proceed_when_it_is_lifted_or_raised() {
    let bytes = |rate| Limits { bytes_per_second: rate, ..Limits::default() };
    for (grouped, raised) in
        [(false, None), (false, Some(1 << 30)), (true, None), (true, Some(1 << 30))]
    {
        let scheduler = scheduler(FAST, Policy::pace_window());
        let group = scheduler.add_class_group("group", 100).unwrap();
        let class = group.add_class("class", 100).unwrap();
        let limit = |limits: &Limits| {
            if grouped { group.set_limits(limits) } else { class.set_limits(limits) }
        };
        // one request every 1000 s
        limit(&bytes(Some(4))).unwrap();
        drop(class.admit(Op::Read, 4096).unwrap());
        thread::scope(|scope| {
            let (granted, wait) = mpsc::channel();
            let class = &class;
            scope.spawn(move || granted.send(class.admit(Op::Read, 4096).map(drop)));
            assert!(wait.recv_timeout(Duration::from_millis(100)).is_err());
            limit(&bytes(raised)).unwrap();
            wait.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
        });
    }
}

#[test]
fn a_removed_class_gets_nothing() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("passing", 100).unwrap();
    let held = class.admit(Op::Read, 4096).unwrap().detach();
    scheduler.remove_class(&class).unwrap();
    let refused = class.admit(Op::Read, 4096).unwrap_err();
    assert!(refused.to_string().contains("`passing` was removed"), "{refused}");
    // its permit is still good
    drop(held);
    assert!(scheduler.try_admit(Op::Read, 4096).unwrap().is_some());
}

#[test]
fn results_are_counted() {
    let scheduler = scheduler(FAST, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    class.admit(Op::Read, 4096).unwrap().complete(&Ok(4096));
    class.admit(Op::Write, 512).unwrap().complete::<()>(&Err(ErrorKind::Other.into()));
    class.admit(Op::Flush, 0).unwrap().fail();
    drop(class.admit(Op::Read, 512).unwrap());
    let counters = class.permit_counters();
    assert_eq!(counters.operations, [2, 0, 0, 0]);
    assert_eq!(counters.bytes[Op::Read.index()], 4608);
    assert_eq!(counters.errors, 2);
    assert_eq!((counters.queued, counters.in_disk), (0, 0));
}

#[test]
fn the_clock_alone_lets_a_lone_thread_go_on() {
    // 1,000 operations per second: pace stops the second permit
    let rates = DiskRates { read_iops: 1_000, write_iops: 1_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    for _ in 0..20 {
        drop(class.admit(Op::Read, 4096).unwrap());
    }
    let counters = class.permit_counters();
    assert_eq!(counters.operations[0], 20);
    assert!(counters.queue_nanos > 0, "nothing waited");
}

#[test]
fn waiting_requests_outlive_the_scheduler() {
    let scheduler = takes_at_once(1);
    let class = scheduler.add_class("class", 100).unwrap();
    let first = class.admit(Op::Read, 4096).unwrap().detach();
    drop(scheduler);
    let waiting = thread::spawn({
        let class = class.clone();
        move || class.admit(Op::Read, 4096).map(drop)
    });
    while class.permit_counters().queued < 1 {
        thread::yield_now();
    }
    drop(class);
    drop(first);
    waiting.join().unwrap().unwrap();
}

#[test]
fn the_class_entered_last_is_current() {
    let scheduler = takes_at_once(4);
    let outer = scheduler.add_class("outer", 100).unwrap();
    let inner = scheduler.add_class("inner", 100).unwrap();
    let other: Scheduler = takes_at_once(4);
    assert_eq!(scheduler.current_class(), scheduler.default_class());
    let entered = outer.enter();
    {
        let _inner = inner.enter();
        let _foreign = other.default_class().enter();
        assert_eq!(scheduler.current_class(), inner);
        drop(scheduler.admit(Op::Read, 1).unwrap());
    }
    assert_eq!(scheduler.current_class(), outer);
    let after = inner.enter();
    drop(entered);
    assert_eq!(scheduler.current_class(), inner, "guards may go in any order");
    drop(after);
    drop(scheduler.admit(Op::Read, 1).unwrap());
    let done = |class: &forebay::Class| class.permit_counters().operations[0];
    assert_eq!((done(&inner), done(&scheduler.default_class())), (1, 1));
    assert_eq!(done(&outer), 0);
}

#[test]
fn how_long_a_permit_is_held_is_not_taken_for_the_disks_latency() {
    let scheduler = scheduler(FAST, Policy::pace_window());
    let class = scheduler.add_class("class", 100).unwrap();
    let disk = scheduler.disk("disk").unwrap();
    let goal = disk.effective_goal();
    for _ in 0..40 {
        let permit = class.admit(Op::Read, 4096).unwrap();
        thread::sleep(Duration::from_millis(10));
        drop(permit);
    }
    assert_eq!(disk.effective_goal(), goal);
}
