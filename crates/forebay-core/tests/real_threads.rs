//! Queues that real threads drive, with a disk that sleeps. A thread runs when the host lets it, which
//! no virtual clock imitates well.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use forebay_core::{
    Control, DiskModel, DiskRates, GroupConfig, IoGroup, IoQueue, LATENCY_GOAL_DEFAULT, Op,
    Outcome, Policy, Ticket, Time,
};

const IOPS: u64 = 20_000;
const SERVICE_NANOS: u64 = 1_000_000_000 / IOPS;
/// The latency of the disk beyond the service time, in nanoseconds.
const LATENCY_NANOS: u64 = 100_000;
const LENGTH: Duration = Duration::from_secs(1);
/// For each thread, the shares of its class, and its number of requests at a time.
const THREADS: [(u32, usize); 2] = [(700, 1), (100, 64)];
const ATTEMPTS: usize = 3;

/// Serves one request after the other, even while no thread polls.
struct Disk {
    free_at: AtomicU64,
}

impl Disk {
    /// The completion time of a request that arrives at `now`, in nanoseconds.
    fn answers_at(&self, now: u64) -> u64 {
        let serve = |free_at: u64| Some(free_at.max(now) + SERVICE_NANOS);
        let began = self.free_at.fetch_update(Ordering::AcqRel, Ordering::Acquire, serve).unwrap();
        began.max(now) + SERVICE_NANOS + LATENCY_NANOS
    }
}

/// The state that both threads share.
struct Host {
    begin: Instant,
    disk: Disk,
    threads: [OnceLock<Thread>; THREADS.len()],
    ready: Barrier,
    is_over: AtomicBool,
}

impl Host {
    fn now(&self) -> u64 {
        1 + self.begin.elapsed().as_nanos() as u64
    }

    /// Drives a queue until the end of the run. Returns the number of requests served, and the time for
    /// which the thread waited for a processor.
    fn drive(&self, queue: &mut IoQueue, group: &IoGroup, index: usize) -> (u64, Duration) {
        let (shares, requests) = THREADS[index];
        let class = group.add_class(None, shares).unwrap();
        self.threads[queue.shard().index()].set(thread::current()).unwrap();
        self.ready.wait();
        let waited = waited_for_processor();
        let mut in_disk: VecDeque<(u64, Ticket)> = VecDeque::new();
        let mut served = 0;
        let enqueue = |queue: &mut IoQueue, now| {
            queue.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap();
        };
        (0..requests).for_each(|_| enqueue(queue, self.now()));
        while !self.is_over.load(Ordering::Relaxed) {
            let now = self.now();
            while let Some(&(at, ticket)) = in_disk.front()
                && at <= now
            {
                in_disk.pop_front();
                queue.complete(Time::from_nanos(now), ticket, Outcome::Done).unwrap();
                served += 1;
                enqueue(queue, now);
            }
            while let Some(ticket) = queue.poll_dispatch(Time::from_nanos(now)) {
                in_disk.push_back((self.disk.answers_at(now), ticket));
            }
            while let Some(other) = queue.poll_wake() {
                self.threads[other.index()].get().unwrap().unpark();
            }
            let timer = queue.poll_timeout(Time::from_nanos(now)).map(Time::as_nanos);
            let answer = in_disk.front().map(|&(at, _)| at);
            let next = timer.into_iter().chain(answer).min();
            let pause =
                next.map_or(LENGTH, |at| Duration::from_nanos(at.saturating_sub(self.now())));
            thread::park_timeout(pause);
        }
        (served, waited_for_processor().saturating_sub(waited))
    }
}

/// The total time for which the calling thread was ready but did not run; zero if it is not known.
fn waited_for_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// The requests that the disk served, in thousandths of what it can. `None` if a thread waited for a
/// processor for a fifth of the time.
fn used(policy: Policy) -> Option<u64> {
    let rates = DiskRates {
        read_iops: IOPS,
        write_iops: IOPS,
        read_bandwidth: 1_000_000_000,
        write_bandwidth: 1_000_000_000,
    };
    let mut config = GroupConfig::new(DiskModel::from_rates(&rates).unwrap(), policy);
    config.control = Control::Rates;
    config.shards_max = THREADS.len();
    let group = IoGroup::new(config);
    let host = Host {
        begin: Instant::now(),
        disk: Disk { free_at: AtomicU64::new(0) },
        threads: [const { OnceLock::new() }; THREADS.len()],
        ready: Barrier::new(THREADS.len() + 1),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let (group, host) = (&group, &host);
        let drivers = [0, 1].map(|index| {
            let mut queue = group.join().unwrap();
            scope.spawn(move || host.drive(&mut queue, group, index))
        });
        host.ready.wait();
        let begin = Instant::now();
        thread::sleep(LENGTH);
        let elapsed = begin.elapsed();
        host.is_over.store(true, Ordering::Relaxed);
        host.threads.iter().for_each(|thread| thread.get().unwrap().unpark());
        let results = drivers.map(|driver| driver.join().unwrap());
        let served: u64 = results.iter().map(|(served, _)| served).sum();
        let starved = results.iter().any(|&(_, waited)| waited > elapsed / 5);
        (!starved).then(|| served * 1_000 * SERVICE_NANOS / elapsed.as_nanos() as u64)
    })
}

/// One thread has most of the shares and a single request at a time, the other one has a backlog.
#[test]
fn two_threads_use_as_much_of_the_disk_as_without_a_scheduler() {
    let base_latency = Some(Duration::from_nanos(LATENCY_NANOS));
    let policy = Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency };
    let attempts = (0..ATTEMPTS).filter_map(|_| Some((used(policy)?, used(Policy::Unlimited)?)));
    let Some(best) = attempts.map(|(with, without)| with * 1_000 / without.max(1)).max() else {
        return eprintln!("skipped: the threads waited for a processor");
    };
    assert!(best >= 970, "{best} thousandths of what no scheduler gets");
}
