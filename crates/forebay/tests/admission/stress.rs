//! A million admissions, and nothing is lost.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use forebay::{
    AdmitFuture, Class, ClassCounters, DiskRates, Op, Permit, Policy, Scheduler,
    properties::Properties,
};

use crate::executor::poll_once;
use crate::scheduler;

/// Admissions of all threads together.
const ADMISSIONS: u64 = 1_000_000;
const THREADS: u64 = 2;
const CLASSES: usize = 4;
/// Futures and permits that one thread has at a time.
const AT_ONCE: usize = 64;
const MEDDLE_EVERY: Duration = Duration::from_millis(1);
/// A million requests of 128 KiB on average take four seconds: so slow that
/// the pace binds on every machine, and some wait, time out or are dropped.
const BINDING: DiskRates = DiskRates {
    read_iops: 10_000_000,
    write_iops: 10_000_000,
    read_bandwidth: 32_000_000_000,
    write_bandwidth: 32_000_000_000,
};

#[derive(Default)]
struct Tally {
    asked: u64,
    dropped_waiting: u64,
    completed: u64,
    failed: u64,
    forgotten: u64,
    refused: u64,
}

struct Client<'a> {
    classes: &'a [Class],
    waiting: Vec<(usize, Pin<Box<AdmitFuture>>)>,
    permits: Vec<Permit>,
    random: u64,
    tally: Tally,
}

impl Client<'_> {
    fn random(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % below
    }

    fn step(&mut self) {
        let pick = self.random(self.waiting.len().max(1) as u64) as usize;
        match self.random(16) {
            0..=6 if self.waiting.len() < AT_ONCE => self.ask(),
            7..=10 if !self.waiting.is_empty() => self.poll(pick),
            11 if !self.waiting.is_empty() => self.drop_waiting(pick),
            12 => self.ask_as_thread(),
            13 if self.random(256) == 0 => {
                let class = self.random(CLASSES as u64) as usize;
                let shares = 1 + self.random(1_000) as u32;
                self.classes[class].set_shares(shares).unwrap();
            }
            _ => self.finish_one(),
        }
    }

    fn ask(&mut self) {
        let class = self.random(CLASSES as u64) as usize;
        // of discards only two are in the disk at a time: many would wait for those alone
        let op = match self.random(256) {
            0 => Op::Discard,
            other => [Op::Read, Op::Write, Op::Flush][other as usize % 3],
        };
        let len = 1 + self.random(256 * 1024);
        let admit = Box::pin(self.classes[class].admit_async(op, len));
        self.tally.asked += 1;
        self.waiting.push((class, admit));
        self.poll(self.waiting.len() - 1);
    }

    fn poll(&mut self, pick: usize) {
        if let Poll::Ready(permit) = poll_once(self.waiting[pick].1.as_mut()) {
            drop(self.waiting.swap_remove(pick));
            self.permits.push(permit.unwrap());
        }
    }

    /// Dropped while it waits or with a grant that it never saw.
    fn drop_waiting(&mut self, pick: usize) {
        drop(self.waiting.swap_remove(pick));
        self.tally.dropped_waiting += 1;
    }

    fn ask_as_thread(&mut self) {
        let class = &self.classes[self.tally.asked as usize % CLASSES];
        self.tally.asked += 1;
        let permit = if self.tally.asked.is_multiple_of(2) {
            class.try_admit(Op::Read, 4096).unwrap()
        } else {
            class.admit_timeout(Op::Read, 4096, Duration::from_micros(20)).ok()
        };
        match permit {
            Some(permit) => self.permits.push(permit.detach()),
            None => self.tally.refused += 1,
        }
    }

    fn finish_one(&mut self) {
        let Some(permit) = self.permits.pop() else { return };
        match self.random(4_096) {
            0 => {
                std::mem::forget(permit);
                self.tally.forgotten += 1;
            }
            1..=400 => {
                permit.fail();
                self.tally.failed += 1;
            }
            _ => {
                drop(permit);
                self.tally.completed += 1;
            }
        }
    }
}

fn run(classes: &[Class], seed: u64) -> Tally {
    let mut client = Client {
        classes,
        waiting: Vec::new(),
        permits: Vec::new(),
        random: seed,
        tally: Tally::default(),
    };
    while client.tally.asked < ADMISSIONS / THREADS {
        client.step();
        if client.permits.len() >= AT_ONCE {
            client.finish_one();
        }
    }
    client.tally.dropped_waiting += client.waiting.len() as u64;
    client.tally.completed += client.permits.len() as u64;
    client.waiting.clear();
    client.permits.clear();
    client.tally
}

/// Runs all threads; what they count together, and what the queue has counted.
/// `meddle` goes on alongside them, with the number of its round.
fn run_all(scheduler: &Scheduler, meddle: impl Fn(u32) + Sync) -> (Tally, ClassCounters) {
    let class = |index| scheduler.add_class(&format!("class {index}"), 100).unwrap();
    let classes: Vec<Class> = (0..CLASSES).map(class).collect();
    let done = AtomicBool::new(false);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        scope.spawn(|| {
            (0..).take_while(|_| !done.load(Ordering::Relaxed)).for_each(|round| {
                meddle(round);
                thread::sleep(MEDDLE_EVERY);
            });
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                scope.spawn({
                    let classes = &classes;
                    move || run(classes, seed)
                })
            })
            .collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().map(|tally| tally.unwrap()).collect()
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.asked += tally.asked;
        sum.dropped_waiting += tally.dropped_waiting;
        sum.completed += tally.completed;
        sum.failed += tally.failed;
        sum.forgotten += tally.forgotten;
        sum.refused += tally.refused;
    }
    let mut counted = ClassCounters::default();
    classes.iter().for_each(|class| counted.merge(&class.permit_counters()));
    (sum, counted)
}

fn balances(tally: &Tally, counted: &ClassCounters) {
    assert_eq!(tally.asked, ADMISSIONS);
    let outcomes =
        [tally.dropped_waiting, tally.completed, tally.failed, tally.forgotten, tally.refused];
    assert_eq!(outcomes.iter().sum::<u64>(), tally.asked, "{outcomes:?}");
    assert!(outcomes.iter().all(|count| *count > 0), "not exercised: {outcomes:?}");
    assert_eq!(counted.queued, 0);
    assert_eq!(u64::from(counted.in_disk), tally.forgotten);
    assert_eq!(counted.errors, tally.failed);
    // a dropped request was cancelled, or its grant given back
    let given_back = counted.operations.iter().sum::<u64>() - tally.completed;
    assert_eq!(counted.cancelled + given_back, tally.dropped_waiting + tally.refused);
    assert!(counted.cancelled > 0 && given_back > 0, "{} {given_back}", counted.cancelled);
}

#[test]
fn a_million_admissions_under_a_pace_and_a_window() {
    let scheduler = scheduler(BINDING, Policy::pace_window());
    let (tally, counted) = run_all(&scheduler, |_| ());
    balances(&tally, &counted);
    // room is left: the forgotten ones are given up one after the other
    drop(scheduler.default_class().admit(Op::Read, 4096).unwrap());
}

#[test]
fn a_million_admissions_while_classes_go_and_properties_change() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let properties = [32_000_000_000_u64, 16_000_000_000].map(|bandwidth| {
        let text = format!(
            "disks:\n  - mountpoint: {at}\n    read_iops: 10000000\n    \
             write_iops: 10000000\n    read_bandwidth: {bandwidth}\n    \
             write_bandwidth: {bandwidth}\n"
        );
        Properties::parse("forebay.yaml", &text).unwrap()
    });
    let scheduler = Scheduler::builder().properties(&properties[0]).build().unwrap();
    let refused = AtomicU32::new(0);
    let (tally, counted) = run_all(&scheduler, |round| {
        scheduler.reload(&properties[round as usize % 2]).unwrap();
        let class = scheduler.add_class("for a moment", 100).unwrap();
        {
            let mut waiting = pin!(class.admit_async(Op::Read, 1 << 20));
            let granted = poll_once(waiting.as_mut());
            if granted.is_pending() {
                // it has work, unless that was granted just now
                refused.fetch_add(
                    u32::from(scheduler.remove_class(&class).is_err()),
                    Ordering::Relaxed,
                );
            }
        }
        // already gone if the first removal was not refused
        let _ = scheduler.remove_class(&class);
        assert!(class.admit(Op::Read, 4096).is_err(), "removed");
    });
    balances(&tally, &counted);
    assert!(refused.into_inner() > 0, "no class was busy when it was to go");
    drop(scheduler.default_class().admit(Op::Read, 4096).unwrap());
}
