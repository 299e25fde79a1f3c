//! Waiting for permits, in every interleaving of a few threads.
//!
//! A lost wake-up leaves a thread asleep for ever, and loom reports that. No request is ever
//! overdue here, because that would wake the thread in any case.

use std::sync::Arc;
use std::task::{Wake, Waker};

use forebay_core::{
    ClassId, DiskModel, DiskRates, GroupConfig, LATENCY_GOAL_DEFAULT, Op, Outcome, Policy, Ticket,
    Time,
};
use loom::thread::{self, JoinHandle};

use super::{DiskGroup, NoGrant, PermitQueue, PermitRequest, Started};
use crate::sys::sync::{AtomicBool, Clock, Mutex, Ordering, Thread, current, park};
use crate::sys::waker::KeptWaker;

/// A request of this many bytes takes 6 ms of disk time, far more than a burst.
const LEN: u64 = 6_000_000;
const RATES: DiskRates = DiskRates {
    read_iops: 1_000_000,
    write_iops: 1_000_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 1_000_000_000,
};

/// Permits of one disk.
#[derive(Clone)]
struct Bed {
    group: Arc<DiskGroup>,
    class: ClassId,
}

impl Bed {
    fn new(policy: Policy) -> Self {
        Clock::begin();
        let model = DiskModel::from_rates(&RATES).unwrap();
        let mut config = GroupConfig::new(model, policy);
        config.shards_max = 1;
        let group = Arc::new(DiskGroup::new("disk", config, 0, crate::events::Hook::default()));
        let class = group.io.add_class(None, 100).unwrap();
        Self { group, class }
    }

    /// A disk that grants one request at a time.
    fn one_at_a_time() -> Self {
        Self::new(Policy::Concurrency { requests: 1 })
    }

    /// A disk that grants one request per 6 ms, however many are unfinished.
    fn one_per_6_ms() -> Self {
        Self::new(Policy::TokenBucket { latency_goal: LATENCY_GOAL_DEFAULT })
    }

    fn permits(&self) -> &PermitQueue {
        self.group.permits().unwrap()
    }

    fn request(&self) -> PermitRequest {
        PermitRequest { class: self.class, access: Op::Read.into(), len: LEN, holder: false }
    }

    fn now(&self) -> Time {
        self.permits().clock.now()
    }

    /// Takes a permit, while nobody else asks.
    fn take(&self) -> Ticket {
        self.permits().try_admit(&self.group, self.now(), self.request()).ok().unwrap().0
    }

    fn admit(&self, deadline: Option<Time>) -> Result<Ticket, NoGrant> {
        let admitted = self.permits().admit(&self.group, self.now(), self.request(), deadline);
        admitted.map(|(ticket, _)| ticket)
    }

    fn start_task(&self, waker: &Waker) -> (Ticket, bool) {
        let waker = KeptWaker::of(waker);
        match self.permits().start_task(&self.group, self.request(), waker, false).ok().unwrap() {
            Started::Granted(ticket) => (ticket, true),
            Started::Waits(ticket) => (ticket, false),
            Started::WaitsForPlace(_) => unreachable!("it was refused"),
        }
    }

    fn complete(&self, ticket: Ticket) {
        assert!(self.permits().complete(&self.group, ticket, Outcome::Done).is_some());
    }

    /// A thread that waits for a permit without a limit.
    fn spawn_thread(&self) -> JoinHandle<()> {
        let bed = self.clone();
        thread::spawn(move || bed.complete(bed.admit(None).ok().unwrap()))
    }

    /// A thread that waits for 1 ms. Returns whether it got a permit.
    fn spawn_impatient_thread(&self) -> JoinHandle<bool> {
        let bed = self.clone();
        thread::spawn(move || {
            let deadline = Clock::of_process().now().plus_nanos(1_000_000);
            let admitted = bed.admit(Some(deadline));
            assert!(!matches!(admitted, Err(NoGrant::Refused(_) | NoGrant::Timer(_))));
            admitted.map(|ticket| bed.complete(ticket)).is_ok()
        })
    }

    /// A thread that runs a task which waits for a permit.
    fn spawn_task(&self) -> JoinHandle<()> {
        let bed = self.clone();
        thread::spawn(move || {
            let waker = Waker::from(Arc::new(Unpark(current())));
            let (ticket, granted) = bed.start_task(&waker);
            while !granted && !bed.permits().poll_task(&bed.group, ticket, KeptWaker::of(&waker)) {
                park();
            }
            bed.complete(ticket);
        })
    }

    /// Checks that nothing waits or is in the disk after this many permits.
    fn assert_ended(self, permits: u64) {
        self.permits().with_queue(|queue| {
            let counters = queue.counters();
            assert!(queue.is_empty());
            assert_eq!((counters.dispatched, counters.completed), (permits, permits));
        });
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker that reports its call through a full channel: it parks the thread that wakes it until
/// there is room.
struct FullChannel {
    sender: Mutex<Option<Thread>>,
    has_room: AtomicBool,
}

impl FullChannel {
    fn new() -> Arc<Self> {
        Arc::new(Self { sender: Mutex::new(None), has_room: AtomicBool::new(false) })
    }

    fn make_room(&self) {
        self.has_room.store(true, Ordering::SeqCst);
        if let Some(sender) = self.sender.lock().unwrap().take() {
            sender.unpark();
        }
    }
}

impl Wake for FullChannel {
    fn wake(self: Arc<Self>) {
        *self.sender.lock().unwrap() = Some(current());
        while !self.has_room.load(Ordering::SeqCst) {
            park();
        }
    }
}

/// A waker that works for this many nanoseconds on the thread that wakes it.
struct Slow(u64);

impl Wake for Slow {
    fn wake(self: Arc<Self>) {
        Clock::pass(self.0);
    }
}

/// A waker that waits for a permit on the thread that wakes it.
struct Asks {
    bed: Bed,
    done: AtomicBool,
}

impl Wake for Asks {
    fn wake(self: Arc<Self>) {
        self.bed.complete(self.bed.admit(None).ok().unwrap());
        self.done.store(true, Ordering::SeqCst);
    }
}

fn join<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Runs every interleaving in which threads are interrupted at most three times, or
/// `LOOM_MAX_PREEMPTIONS` times.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(run);
}

#[test]
fn threads_that_wait_are_woken_one_after_the_other() {
    model(|| {
        let bed = Bed::one_at_a_time();
        let first = bed.take();
        let threads = [bed.spawn_thread(), bed.spawn_thread()];
        bed.complete(first);
        join(threads);
        bed.assert_ended(3);
    });
}

#[test]
fn a_task_that_waits_is_woken() {
    model(|| {
        let bed = Bed::one_at_a_time();
        let first = bed.take();
        let task = bed.spawn_task();
        bed.complete(first);
        join([task]);
        bed.assert_ended(2);
    });
}

#[test]
fn a_grant_of_a_future_that_is_being_dropped_goes_to_the_next() {
    model(|| {
        let bed = Bed::one_at_a_time();
        let first = bed.take();
        let (ticket, granted) = bed.start_task(Waker::noop());
        assert!(!granted);
        let waiting = bed.spawn_thread();
        let dropping = {
            let bed = bed.clone();
            thread::spawn(move || bed.permits().abandon(&bed.group, ticket))
        };
        bed.complete(first);
        join([waiting, dropping]);
        let dispatched = bed.permits().with_queue(|queue| queue.counters().dispatched);
        assert!((2..=3).contains(&dispatched));
        bed.assert_ended(dispatched);
    });
}

#[test]
fn a_grant_that_races_with_a_timeout_is_taken_or_goes_to_the_next() {
    model(|| {
        let bed = Bed::one_at_a_time();
        let first = bed.take();
        let impatient = bed.spawn_impatient_thread();
        let patient = bed.spawn_thread();
        bed.complete(first);
        let permits = 2 + u64::from(join([impatient])[0]);
        join([patient]);
        bed.assert_ended(permits);
    });
}

#[test]
fn a_thread_that_keeps_time_and_has_its_grant_hands_it_to_another() {
    model(|| {
        let bed = Bed::one_per_6_ms();
        let mut held = vec![bed.take()];
        let threads = [0, 1].map(|_| {
            let bed = bed.clone();
            thread::spawn(move || bed.admit(None).ok().unwrap())
        });
        held.extend(join(threads));
        held.into_iter().for_each(|ticket| bed.complete(ticket));
        bed.assert_ended(3);
    });
}

#[test]
fn a_thread_that_keeps_time_and_gives_up_hands_it_to_another() {
    model(|| {
        let bed = Bed::one_per_6_ms();
        let first = bed.take();
        let impatient = bed.spawn_impatient_thread();
        let patient = bed.spawn_thread();
        let permits = 2 + u64::from(join([impatient])[0]);
        join([patient]);
        bed.complete(first);
        bed.assert_ended(permits);
    });
}

#[test]
fn a_thread_that_keeps_time_and_gives_up_hands_it_to_the_timer() {
    model(|| {
        let bed = Bed::one_per_6_ms();
        let first = bed.take();
        let task = bed.spawn_task();
        let impatient = bed.spawn_impatient_thread();
        let permits = 2 + u64::from(join([impatient])[0]);
        join([task]);
        bed.complete(first);
        bed.assert_ended(permits);
    });
}

#[test]
fn a_waker_that_parks_a_thread_does_not_keep_it_from_owning_the_deadline() {
    model(|| {
        let bed = Bed::one_per_6_ms();
        let first = bed.take();
        let channel = FullChannel::new();
        let (task, granted) = bed.start_task(&Waker::from(Arc::clone(&channel)));
        assert!(!granted);
        let waiting = bed.spawn_thread();
        channel.make_room();
        join([waiting]);
        bed.complete(first);
        bed.permits().abandon(&bed.group, task);
        bed.assert_ended(3);
    });
}

#[test]
fn a_waker_that_waits_for_a_permit_does_not_keep_the_deadline_owner_asleep() {
    model(|| {
        let bed = Bed::one_per_6_ms();
        let first = bed.take();
        let asks = Arc::new(Asks { bed: bed.clone(), done: AtomicBool::new(false) });
        let (task, granted) = bed.start_task(&Waker::from(Arc::clone(&asks)));
        assert!(!granted);
        let waiting = bed.spawn_thread();
        join([waiting]);
        while !asks.done.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        bed.complete(first);
        bed.permits().abandon(&bed.group, task);
        bed.assert_ended(4);
    });
}

#[test]
fn a_slow_waker_does_not_lengthen_the_sleep_after_it() {
    // The longest one ends just before the next permit. A grant that the task does not notice for
    // longer than a goal also ends sleeps.
    for nanos in [0, 1_000_000, 5_000_000, 6_500_000] {
        model(move || {
            let bed = Bed::one_per_6_ms();
            let begin = bed.now();
            let first = bed.take();
            let (task, granted) = bed.start_task(&Waker::from(Arc::new(Slow(nanos))));
            assert!(!granted);
            let admitted = bed.permits().admit(&bed.group, bed.now(), bed.request(), None);
            let (ticket, at) = admitted.ok().unwrap();
            assert!(at <= begin.plus_nanos(12_000_000), "{nanos}: {at:?}");
            [first, ticket].into_iter().for_each(|ticket| bed.complete(ticket));
            bed.permits().abandon(&bed.group, task);
            bed.assert_ended(3);
        });
    }
}
