//! What a group learns about a disk of which only the rates were stated.

use std::collections::VecDeque;

use forebay_core::{ClassId, GroupConfig, IoGroup, IoQueue, Op, Outcome, Policy, Ticket, Time};

use crate::world::{Client, MILLI, SECOND, World, by_figures, model};

const COST: u64 = 10_000;
const GOAL: u64 = 750_000;

/// A disk that serves one request after the other in `slowness` times their cost, and answers `latency`
/// later. Its engine sleeps until then.
struct Bed {
    queue: IoQueue,
    group: IoGroup,
    class: ClassId,
    now: u64,
    free_at: u64,
    disk: VecDeque<(u64, Ticket)>,
    slowness: u64,
    latency: u64,
    disk_nanos_max: u64,
}

impl Bed {
    fn new() -> Self {
        let mut config = by_figures(model(SECOND / COST, 1_000_000_000), Policy::pace_window());
        config.shards_max = 1;
        let group = IoGroup::new(config);
        Self {
            queue: group.join().unwrap(),
            class: group.add_class(None, 100).unwrap(),
            group,
            now: 1,
            free_at: 0,
            disk: VecDeque::new(),
            slowness: 1,
            latency: 80_000,
            disk_nanos_max: 0,
        }
    }

    fn enqueue(&mut self, count: usize) {
        let now = Time::from_nanos(self.now);
        for _ in 0..count {
            self.queue.enqueue(now, self.class, Op::Read, 4096).unwrap();
        }
        self.dispatch();
    }

    fn dispatch(&mut self) {
        while let Some(ticket) = self.queue.poll_dispatch(Time::from_nanos(self.now)) {
            self.free_at = self.free_at.max(self.now) + COST * self.slowness;
            self.disk.push_back((self.free_at + self.latency, ticket));
        }
    }

    /// Runs until `end`. With `refills`, each completed request is queued again.
    fn run(&mut self, end: u64, refills: bool) {
        self.disk_nanos_max = 0;
        while self.now < end {
            let timeout = self.queue.poll_timeout(Time::from_nanos(self.now));
            let done_at = self.disk.front().map(|&(at, _)| at);
            let next = [timeout.map(Time::as_nanos), done_at, Some(end)];
            self.now = next.into_iter().flatten().min().unwrap().max(self.now + 1);
            let now = Time::from_nanos(self.now);
            while let Some(&(_, ticket)) = self.disk.front().filter(|(at, _)| *at <= self.now) {
                self.disk.pop_front();
                let done = self.queue.complete_polled(now, ticket, Outcome::Done, now).unwrap();
                self.disk_nanos_max = self.disk_nanos_max.max(done.disk_nanos);
                if refills {
                    self.queue.enqueue(now, self.class, Op::Read, 4096).unwrap();
                }
            }
            self.dispatch();
        }
    }

    fn goal(&self) -> u64 {
        self.group.effective_goal().as_nanos_ceil()
    }
}

#[test]
fn a_disk_slower_than_its_model_does_not_make_its_own_goal_run_away() {
    for slowness in [2, 4, 6, 8, 10, 20] {
        let mut bed = Bed::new();
        bed.slowness = slowness;
        for _ in 0..15 {
            bed.enqueue(5_000);
            bed.run(bed.now + 2 * SECOND * slowness / 10 + SECOND, false);
            // a quarter of the requested window, `slowness` times slower
            let most = GOAL.max(bed.latency + GOAL / 2 * slowness);
            assert!(bed.goal() <= most, "{slowness} x slower: {} ns", bed.goal());
        }
        bed.slowness = 1;
        bed.enqueue(20_000);
        bed.run(bed.now + 60 * SECOND, true);
        assert_eq!(bed.goal(), GOAL, "{slowness} x slower, then well");
        bed.run(bed.now + SECOND, true);
        assert!(bed.disk_nanos_max <= 3 * GOAL, "{slowness}: {} ns", bed.disk_nanos_max);
    }
}

#[test]
fn a_disk_that_answers_late_is_known_from_light_load_but_nothing_is_believed_above_20_ms() {
    for (latency_ms, expected) in
        [(5, 5 * MILLI), (15, 15 * MILLI), (20, 20 * MILLI), (60, 20 * MILLI)]
    {
        let mut bed = Bed::new();
        bed.latency = latency_ms * MILLI;
        for _ in 0..64 {
            bed.enqueue(1);
            bed.run(bed.now + 100 * MILLI, false);
        }
        assert_eq!(bed.goal(), expected, "{latency_ms} ms");
    }
}

/// Each permit waits for its turn, is held for `held`, and is reported later.
#[test]
fn how_long_its_owner_holds_a_permit_is_not_taken_for_the_disks_latency() {
    for held_ms in [1, 5, 20, 100] {
        for is_late_to_look in [false, true] {
            let mut bed = Bed::new();
            for _ in 0..64 {
                let now = Time::from_nanos(bed.now);
                let class = bed.class;
                let ticket = bed.queue.enqueue(now, class, Op::Read, 4096).unwrap();
                assert_eq!(bed.queue.poll_dispatch(now), Some(ticket));
                bed.now += held_ms * MILLI;
                let (then, now) = (now, Time::from_nanos(bed.now));
                let done = if is_late_to_look {
                    bed.queue.complete_polled(now, ticket, Outcome::Done, then)
                } else {
                    bed.queue.complete(now, ticket, Outcome::Done)
                };
                assert!(done.is_ok());
                assert_eq!(bed.queue.poll_dispatch(now), None);
            }
            assert_eq!(bed.goal(), GOAL, "held for {held_ms} ms");
        }
    }
}

#[test]
fn a_backlog_finds_the_window_that_a_late_disk_needs() {
    let disks = [
        (20_000, 500_000_000, 5 * MILLI),
        (20_000, 500_000_000, 2 * MILLI),
        (1_200, 1_500_000_000, 8 * MILLI),
        (100_000, 1_000_000_000, 80_000),
    ];
    for (iops, bandwidth, latency) in disks {
        for (len, shards) in [(4096, 1), (131_072, 1), (4096, 4), (131_072, 4)] {
            let config = GroupConfig::new(model(iops, bandwidth), Policy::pace_window());
            let mut world = World::with_config(config, shards);
            world.disk.latency = latency;
            let class = world.group.add_class(None, 100).unwrap();
            for shard in 0..shards {
                let client = Client { shard, class, op: Op::Read, len, pause: 0 };
                world.clients(1024 / shards, client);
            }
            world.run_until(4 * SECOND);
            let before = world.total();
            world.run_until(20 * SECOND);
            let used = (world.total() - before) / (16.0 * 64.0 * SECOND as f64);
            let window = world.group.window().as_nanos_ceil();
            let seen = format!("{iops}/s, {latency} ns, {shards} x {len}: {used:.3}, {window} ns");
            assert!(used >= 0.94, "{seen}");
        }
    }
}
