//! Several requests that are granted together.

use std::future::Future;
use std::iter;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use forebay::{
    AdmitError, AdmitMany, Class, Control, DiskConfig, DiskRates, Op, Permit, Policy, Scheduler,
};

use crate::executor::{WakeCounter, block_on, poll_once};
use crate::{FAST, scheduler};

const READ: (Op, u64) = (Op::Read, 4096);
/// 10 ms per request, of which ten go at once, and twenty fill the window.
const TEN_AT_ONCE: DiskRates = DiskRates { read_iops: 100, write_iops: 100, ..FAST };
const GOAL: Policy =
    Policy::PaceWindow { latency_goal: Duration::from_millis(100), base_latency: None };

fn ten_at_once() -> (Scheduler, Class) {
    let scheduler = scheduler(TEN_AT_ONCE, GOAL);
    let class = scheduler.add_class("class", 100).unwrap();
    (scheduler, class)
}

/// Waiting, in the disk, and done.
fn counts(class: &Class) -> (u32, u32, u64) {
    let counters = class.permit_counters();
    (counters.queued, counters.in_disk, counters.operations[0])
}

/// Nothing waits or is in the disk, and it gets on.
fn assert_at_rest(scheduler: &Scheduler, classes: &[Class]) {
    for class in classes {
        let (queued, in_disk, _) = counts(class);
        assert_eq!((queued, in_disk), (0, 0), "{class:?}");
        let permit = class.admit_many(&[READ; 3]).wait().unwrap();
        assert_eq!(permit.requests(), 3);
    }
    let left: Duration = scheduler.disks().iter().map(forebay::Disk::in_flight).sum();
    assert_eq!(left, Duration::ZERO);
}

#[test]
fn a_batch_is_cut_where_it_costs_a_goal_and_its_room_comes_back_piece_by_piece() {
    let (scheduler, class) = ten_at_once();
    let mut permit = class.admit_many(&[READ; 32]).try_now().unwrap().unwrap();
    assert_eq!(permit.requests(), 10);
    let others = iter::from_fn(|| class.admit_many(&[READ; 32]).try_now().unwrap());
    let others = others.map(|permit| permit.requests()).sum::<usize>() as u64;
    assert!(others < 10, "the rate is used up");
    assert_eq!(counts(&class), (0, 10, others));
    let failed = Err::<(), _>(std::io::Error::other("a failure"));
    permit.complete_one(3, &Ok(()));
    permit.complete_one(3, &Ok(()));
    permit.complete_one(4, &failed);
    permit.complete_one(10, &Ok(()));
    assert_eq!(counts(&class), (0, 8, others + 1));
    drop(permit);
    assert_eq!(counts(&class), (0, 0, others + 9));
    assert_eq!(class.permit_counters().errors, 1);
    assert_at_rest(&scheduler, &[class]);
}

#[test]
fn a_batch_costs_what_its_requests_cost_alone() {
    let scheduler = scheduler(FAST, Policy::pace_window());
    let [batches, singles] = ["a", "b"].map(|name| scheduler.add_class(name, 100).unwrap());
    let requests: Vec<_> = (1..=40)
        .map(|n| if n % 3 == 0 { (Op::Write, n * 1000) } else { (Op::Read, n * 500) })
        .collect();
    let mut rest = &requests[..];
    while !rest.is_empty() {
        rest = &rest[batches.admit_many(rest).wait().unwrap().requests()..];
    }
    requests.iter().for_each(|&(op, len)| drop(singles.admit(op, len).unwrap()));
    let [one, other] = [batches, singles].map(|class| class.permit_counters());
    assert_eq!((one.operations, one.bytes), (other.operations, other.bytes));
    assert_eq!(one.consumption, other.consumption);
}

#[test]
fn an_invalid_request_of_a_batch_is_refused_before_any_is_queued() {
    let (_scheduler, class) = ten_at_once();
    let refused = class.admit_many(&[READ, (Op::Write, 0)]).wait();
    assert!(matches!(refused, Err(AdmitError::ZeroLength { op: Op::Write })));
    let refused = class.admit_many(&[READ, (Op::Read, u64::MAX)]).try_now();
    assert!(matches!(refused, Err(AdmitError::TooLong { .. })));
    assert_eq!(counts(&class), (0, 0, 0));
    let nothing = class.admit_many(&[]).wait().unwrap();
    assert_eq!(nothing.requests(), 0);
    assert_eq!(block_on(class.admit_many(&[])).unwrap().requests(), 0);
}

#[test]
fn a_batch_is_of_one_direction_of_a_duplex_disk_and_single_where_requests_are_counted() {
    let duplex = DiskConfig::new("disk", FAST).duplex(true).control(Control::Rates);
    let scheduler = Scheduler::builder().disk(duplex).build().unwrap();
    let class = scheduler.add_class("class", 100).unwrap();
    let requests = [READ, READ, (Op::Write, 4096), (Op::Flush, 0), READ];
    let pieces = [2, 2, 1];
    let mut rest = &requests[..];
    for expected in pieces {
        let permit = class.admit_many(rest).wait().unwrap();
        assert_eq!(permit.requests(), expected);
        rest = &rest[expected..];
    }
    let counted = crate::takes_at_once(4);
    let permit = counted.default_class().admit_many(&requests).wait().unwrap();
    assert_eq!(permit.requests(), 1);
}

#[test]
fn a_batch_that_times_out_half_granted_gives_everything_back() {
    let (scheduler, class) = ten_at_once();
    let first = class.admit_many(&[READ; 5]).wait().unwrap();
    let timed_out = class.admit_many(&[READ; 10]).wait_timeout(Duration::from_millis(5));
    assert!(matches!(timed_out, Err(AdmitError::TimedOut)));
    assert_eq!(counts(&class).1, 5);
    drop(first);
    assert_at_rest(&scheduler, &[class]);
}

/// A batch of a task, polled once.
fn batch_of<'a>(class: &Class, requests: &'a [(Op, u64)]) -> Pin<Box<AdmitMany<'a>>> {
    let mut batch = Box::pin(class.admit_many(requests));
    assert!(poll_once(batch.as_mut()).is_pending());
    batch
}

#[test]
fn a_batch_that_waits_for_its_rest_keeps_no_room_and_one_wake_up_tells_of_all() {
    let (scheduler, class) = ten_at_once();
    drop(class.admit_many(&[READ; 4]).wait().unwrap());
    let wakes = WakeCounter::new();
    let waker = Waker::from(wakes.clone());
    let mut batch = pin!(class.admit_many(&[READ; 10]));
    assert!(batch.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(counts(&class).1, 0, "some have had their turn, and hold no room");
    assert!(class.permit_counters().consumption > forebay::DiskTime::ZERO);
    while wakes.count() == 0 {
        thread::park();
    }
    let permit = block_on(batch).unwrap();
    assert_eq!((permit.requests(), wakes.count()), (10, 1));
    assert_eq!(counts(&class).1, 10);
    drop(permit);
    assert_at_rest(&scheduler, &[class]);
}

#[test]
fn batches_and_single_requests_of_a_class_go_in_the_order_in_which_they_were_asked_for() {
    let (scheduler, class) = ten_at_once();
    // The window is full.
    let held = [(); 2].map(|()| class.admit_many(&[READ; 10]).wait().unwrap().detach());
    let requests = [READ; 4];
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut single = Box::pin(class.admit_async(READ.0, READ.1));
        assert!(poll_once(single.as_mut()).is_pending());
        waiting.push((single, batch_of(&class, &requests)));
    }
    drop(held);
    for (single, batch) in waiting {
        let before = counts(&class).2;
        drop(block_on(single).unwrap());
        drop(block_on(batch).unwrap());
        assert_eq!(counts(&class).2 - before, 5);
    }
    assert_at_rest(&scheduler, &[class]);
}

#[test]
fn batches_that_are_granted_by_turns_do_not_wait_for_each_other() {
    for (classes, requests) in [(2, 10), (8, 10), (30, 3)] {
        let scheduler = scheduler(TEN_AT_ONCE, GOAL);
        let classes: Vec<_> =
            (0..classes).map(|n| scheduler.add_class(&n.to_string(), 100).unwrap()).collect();
        let begin = Barrier::new(classes.len());
        thread::scope(|scope| {
            for class in &classes {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    let batch = vec![READ; requests];
                    let permit = class.admit_many(&batch).wait().unwrap();
                    assert_eq!(permit.requests(), requests);
                });
            }
        });
        let overdue: u64 = classes.iter().map(|class| class.permit_counters().overdue).sum();
        assert_eq!(overdue, 0, "{} batches of {requests}", classes.len());
        assert_at_rest(&scheduler, &classes);
    }
}

#[test]
fn holders_of_batches_that_ask_for_another_do_not_deadlock() {
    let (scheduler, class) = ten_at_once();
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        for is_task in [false, true] {
            let (class, begin) = (&class, &begin);
            scope.spawn(move || {
                if is_task {
                    let first = block_on(class.admit_many(&[READ; 10])).unwrap();
                    begin.wait();
                    drop(block_on(class.nested_in(&first).admit_many(&[READ; 10])).unwrap());
                } else {
                    let first = class.admit_many(&[READ; 10]).wait().unwrap();
                    begin.wait();
                    drop((class.admit_many(&[READ; 10]).wait().unwrap(), first));
                }
            });
        }
    });
    assert_eq!(class.permit_counters().overdue, 0);
    assert_at_rest(&scheduler, &[class]);
}

#[test]
fn a_granted_batch_that_nobody_polls_gives_its_room_back_and_has_it_when_polled() {
    let (scheduler, class) = ten_at_once();
    drop(class.admit_many(&[READ; 8]).wait().unwrap());
    let mut unpolled = batch_of(&class, &[READ; 4]);
    // A request that waits behind the batch is granted after it.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60)
        && scheduler.disk("disk").unwrap().in_flight() == Duration::ZERO
    {
        thread::sleep(Duration::from_millis(1));
    }
    while begin.elapsed() < Duration::from_secs(60)
        && scheduler.disk("disk").unwrap().in_flight() > Duration::ZERO
    {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(counts(&class), (4, 0, 8), "set aside");
    assert!(poll_once(unpolled.as_mut()).is_ready(), "taken up");
    assert_at_rest(&scheduler, &[class]);
}

/// A small generator of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Asks for batches of all sizes, and gives up on some of them at any moment.
fn uses_and_cancels(class: &Class, seed: u64, rounds: usize) {
    let mut numbers = Numbers(seed);
    let requests = [READ; 40];
    let mut held: Vec<Permit> = Vec::new();
    for _ in 0..rounds {
        let part = &requests[..=numbers.below(40) as usize];
        match numbers.below(4) {
            0 => held.extend(class.admit_many(part).try_now().unwrap().map(|p| p.detach())),
            1 => {
                let timeout = Duration::from_micros(numbers.below(500));
                if let Ok(permit) = class.admit_many(part).wait_timeout(timeout) {
                    held.push(permit.detach());
                }
            }
            _ => {
                let mut batch = Box::pin(class.admit_many(part));
                for _ in 0..numbers.below(4) {
                    if let std::task::Poll::Ready(permit) = poll_once(batch.as_mut()) {
                        held.push(permit.unwrap());
                        break;
                    }
                    thread::sleep(Duration::from_micros(numbers.below(300)));
                }
            }
        }
        for permit in &mut held {
            permit.complete_one(numbers.below(40) as usize, &Ok(()));
        }
        held.truncate(numbers.below(3) as usize);
    }
}

#[test]
fn batches_cancelled_at_any_moment_give_everything_back() {
    let rates = DiskRates { read_iops: 50_000, write_iops: 50_000, ..FAST };
    let scheduler = scheduler(rates, Policy::pace_window());
    let classes = [100, 1000].map(|n| scheduler.add_class(&n.to_string(), n).unwrap());
    thread::scope(|scope| {
        for seed in 0..4 {
            let class = &classes[seed % 2];
            scope.spawn(move || uses_and_cancels(class, seed as u64 + 1, 1000));
        }
    });
    assert_at_rest(&scheduler, &classes);
}

/// Classes that always wait, one with batches and one with single requests.
#[test]
fn batches_and_single_requests_have_the_disk_by_shares() {
    const READS: [(Op, u64); 10] = [READ; 10];
    for (shares, seconds) in [([100, 100], 1), ([100, 400], 1), ([400, 100], 1)] {
        let rates = DiskRates { read_iops: 5_000, write_iops: 5_000, ..FAST };
        let scheduler = scheduler(rates, Policy::pace_window());
        let classes = [0, 1].map(|n| scheduler.add_class(&n.to_string(), shares[n]).unwrap());
        let count = || classes.each_ref().map(|class| counts(class).2);
        let stop = AtomicBool::new(false);
        let got = thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop(classes[0].admit_many(&READS).wait().unwrap());
                    }
                });
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop(classes[1].admit(READ.0, READ.1).unwrap());
                    }
                });
            }
            thread::sleep(Duration::from_millis(200));
            let before = count();
            thread::sleep(Duration::from_secs(seconds));
            let after = count();
            stop.store(true, Ordering::Relaxed);
            [0, 1].map(|n| after[n] - before[n])
        });
        let total = got[0] + got[1];
        let wanted = total * u64::from(shares[0]) / u64::from(shares[0] + shares[1]);
        // Two in a hundred, and a goal at either end.
        let off = got[0].abs_diff(wanted);
        assert!(off <= wanted / 50 + 2 * 10, "{got:?}, not {wanted} of {total}: {shares:?}");
    }
}
