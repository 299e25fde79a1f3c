//! Owners that hold a request in the disk while they wait for the next, and disks whose rates change.

mod limits;

use std::collections::VecDeque;

use forebay_core::{ClassId, DiskTime, IoGroup, IoQueue, Op, Outcome, Policy, Ticket, Time};

use crate::world::{MILLI, SECOND, World, model};

/// A disk of 10,000 requests of 4 KiB per second: 100 us each.
fn world(policy: Policy) -> World {
    World::new(model(10_000, 1_000_000_000), policy, 1)
}

const STEP: u64 = 10_000;

/// A thread that takes one request of the class `held`, and `inner` others one after the other while it
/// holds that.
struct Owner {
    shard: usize,
    held: ClassId,
    class: ClassId,
    len: u64,
    inner: u32,
    outer: Option<Ticket>,
    inner_left: u32,
    rounds: u64,
}

/// Owners, and a disk that serves one request after the other in `slowness` percent of their cost, and
/// answers 200 us later.
struct Bed {
    group: IoGroup,
    queues: Vec<IoQueue>,
    owners: Vec<Owner>,
    waiting: Vec<(usize, Ticket, usize)>,
    in_disk: VecDeque<(u64, usize, Ticket, usize)>,
    slowness: u64,
    free_at: u64,
    now: u64,
    in_flight_max: DiskTime,
    /// Whether each queue is due to be polled.
    due: Vec<bool>,
}

impl Bed {
    fn new(policy: Policy, count: usize) -> Self {
        let World { group, shards, .. } = World::new(model(10_000, 1_000_000_000), policy, count);
        Self {
            group,
            queues: shards.into_iter().map(|shard| shard.queue).collect(),
            owners: Vec::new(),
            waiting: Vec::new(),
            in_disk: VecDeque::new(),
            slowness: 100,
            free_at: 0,
            now: SECOND,
            in_flight_max: DiskTime::ZERO,
            due: vec![false; count],
        }
    }

    fn class(&self, shares: u32) -> ClassId {
        self.group.add_class(None, shares).unwrap()
    }

    fn owners(&mut self, count: usize, (shard, class): (usize, ClassId), len: u64, inner: u32) {
        self.owners_of_two(count, (shard, class, class), len, inner);
    }

    fn owners_of_two(
        &mut self,
        count: usize,
        (shard, held, class): (usize, ClassId, ClassId),
        len: u64,
        inner: u32,
    ) {
        for _ in 0..count {
            let (outer, inner_left, rounds) = (None, inner, 0);
            self.owners.push(Owner { shard, held, class, len, inner, outer, inner_left, rounds });
            self.ask(self.owners.len() - 1);
        }
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    fn ask(&mut self, owner: usize) {
        let now = self.time();
        let Owner { shard, held, class, len, inner, ref outer, .. } = self.owners[owner];
        let queue = &mut self.queues[shard];
        let ticket = if outer.is_some() {
            queue.enqueue_nested(now, class, Op::Read, len)
        } else {
            queue.enqueue(now, if inner > 0 { held } else { class }, Op::Read, len)
        };
        self.waiting.push((shard, ticket.unwrap(), owner));
        self.due[shard] = true;
    }

    fn run(&mut self, nanos: u64) {
        let end = self.now + nanos;
        while self.now < end {
            self.now += STEP;
            while let Some(&(at, shard, ticket, owner)) = self.in_disk.front()
                && at <= self.now
            {
                self.in_disk.pop_front();
                self.answered(shard, ticket, owner);
            }
            for (due, queue) in self.due.iter_mut().zip(&self.queues) {
                let now = Time::from_nanos(self.now);
                *due |= queue.poll_timeout(now).is_some_and(|at| at <= now);
            }
            // any thread may be first
            let shards = self.due.len();
            let first = (self.now / STEP).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let first = first as usize % shards;
            let in_turn = |n| (first + n) % shards;
            while let Some(shard) = (0..shards).map(in_turn).find(|&shard| self.due[shard]) {
                self.due[shard] = false;
                self.dispatch(shard);
                while let Some(other) = self.queues[shard].poll_wake() {
                    self.due[other.index()] = true;
                }
            }
            self.in_flight_max = self.in_flight_max.max(self.group.in_flight());
        }
    }

    fn dispatch(&mut self, shard: usize) {
        let now = self.time();
        while let Some(ticket) = self.queues[shard].poll_dispatch(now) {
            let at = self.waiting.iter().position(|&(on, other, _)| (on, other) == (shard, ticket));
            let (_, _, owner) = self.waiting.swap_remove(at.unwrap());
            let this = &mut self.owners[owner];
            let cost = self.queues[shard].cost(Op::Read, this.len).as_nanos_ceil();
            self.free_at = self.free_at.max(self.now) + cost * self.slowness / 100;
            if this.inner > 0 && this.outer.is_none() {
                // it continues with the others while it holds this one
                this.outer = Some(ticket);
                self.ask(owner);
            } else {
                self.in_disk.push_back((self.free_at + 200_000, shard, ticket, owner));
            }
        }
    }

    fn answered(&mut self, shard: usize, ticket: Ticket, owner: usize) {
        let now = self.time();
        self.queues[shard].complete(now, ticket, Outcome::Done).unwrap();
        let this = &mut self.owners[owner];
        if this.outer.is_some() {
            this.inner_left -= 1;
        }
        if this.inner_left == 0 || this.inner == 0 {
            this.rounds += 1;
            this.inner_left = this.inner;
            if let Some(outer) = this.outer.take() {
                self.queues[shard].complete(now, outer, Outcome::Done).unwrap();
            }
        }
        self.ask(owner);
    }

    fn consumption(&self, class: ClassId) -> f64 {
        let of = |queue: &IoQueue| queue.class(class).map_or(0, |c| c.consumption.units());
        self.queues.iter().map(of).sum::<u64>() as f64
    }

    fn operations(&self, class: ClassId) -> u64 {
        let of = |queue: &IoQueue| queue.class(class).map_or(0, |c| c.operations.iter().sum());
        self.queues.iter().map(of).sum()
    }

    fn window_bypasses(&self) -> u64 {
        self.queues.iter().map(|queue| queue.counters().window_bypasses).sum()
    }
}

#[test]
fn holders_who_wait_for_each_other_behind_a_blocked_head_get_on() {
    for policy in [Policy::pace_window(), Policy::Concurrency { requests: 8 }] {
        for (shards, nested) in [(1, 2), (1, 8), (1, 32), (2, 2), (2, 8), (2, 32)] {
            let mut bed = Bed::new(policy, shards);
            let [light, heavy] = [1, 1000].map(|shares| bed.class(shares));
            bed.owners(nested, (0, light), 4096, 1);
            bed.owners(64, (shards - 1, heavy), 4096, 0);
            bed.run(20 * SECOND);
            let rounds: Vec<_> = bed.owners[..nested].iter().map(|one| one.rounds).collect();
            // two requests each; one share in 1001 is 200 requests in 20 s
            let least = 80 / nested as u64;
            let case = format!("{policy:?}, {shards} shards, {nested} nested");
            assert!(rounds.iter().all(|rounds| *rounds >= least), "{case}: {rounds:?}");
        }
    }
}

/// Holders have the whole window, and none of their requests completes. Before any is given up as
/// overdue, after 100 ms, the requests before the nested ones have been dispatched at the pace, and
/// then the nested ones.
#[test]
fn holders_who_have_the_whole_window_go_on_behind_a_blocked_head() {
    let cases = [(1, 2, 1), (1, 2, 64), (1, 15, 64), (2, 2, 1), (2, 2, 64), (2, 15, 64)];
    for (shards, nested, before) in cases {
        let case = format!("{shards} shards, {nested} nested, {before} before them");
        let mut world = World::new(model(10_000, 1_000_000_000), Policy::pace_window(), shards);
        let [light, heavy] = [1, 1000].map(|shares| world.group.add_class(None, shares).unwrap());
        let mut now = SECOND;
        let queue = &mut world.shards[0].queue;
        while world.group.in_flight() < world.group.window() {
            queue.enqueue(Time::from_nanos(now), light, Op::Read, 4096).unwrap();
            while queue.poll_dispatch(Time::from_nanos(now)).is_none() {
                now += STEP;
            }
        }
        let (asked, since) = (Time::from_nanos(now), now);
        for shard in &mut world.shards {
            for _ in 0..before {
                shard.queue.enqueue(asked, heavy, Op::Read, 4096).unwrap();
            }
        }
        let queue = &mut world.shards[0].queue;
        let ask = |_| queue.enqueue_nested(asked, light, Op::Read, 4096).unwrap();
        let mut waiting: Vec<_> = (0..nested).map(ask).collect();
        while !waiting.is_empty() && now < since + 50 * MILLI {
            now += STEP;
            for shard in &mut world.shards {
                while let Some(ticket) = shard.queue.poll_dispatch(Time::from_nanos(now)) {
                    waiting.retain(|other| *other != ticket);
                }
            }
        }
        assert!(waiting.is_empty(), "{case}: {} wait for each other", waiting.len());
        // 100 us each
        let pace = (before * shards + nested) as u64 * MILLI / 10;
        let waited = now - since;
        assert!(waited <= pace + 2 * MILLI, "{case}: {waited} ns at a pace of {pace}");
        assert!(waited + MILLI >= pace, "{case}: {waited} ns, faster than the pace");
    }
}

#[test]
fn holders_get_the_share_of_their_class() {
    for (shards, shares) in [1, 2, 3].into_iter().flat_map(|shards| {
        [[1, 1000], [1, 10], [100, 100], [1000, 1]].map(|shares| (shards, shares))
    }) {
        for (len, inner) in [(4096, 1), (4096, 20), (131_072, 5)] {
            let mut bed = Bed::new(Policy::pace_window(), shards);
            let [held, plain] = shares.map(|shares| bed.class(shares));
            for shard in 0..shards.min(2) {
                bed.owners(8, (shard, held), len, inner);
            }
            bed.owners(64, (shards - 1, plain), 4096, 0);
            bed.run(11 * SECOND);
            let [held, plain] = [held, plain].map(|class| bed.consumption(class));
            let due = (held + plain) * f64::from(shares[0]) / f64::from(shares[0] + shares[1]);
            // shards may lead each other by one goal
            let request = bed.queues[0].cost(Op::Read, len).units() as f64;
            let off = (held - due).abs();
            let case = format!("{shards} shards, {shares:?} shares, {inner} of {len}");
            assert!(off < due * 0.01 + 8.0 * request, "{case}: off by {}", off / due);
        }
    }
}

#[test]
fn past_the_window_is_at_most_what_the_pace_gives_while_a_holder_waits() {
    let mut world = world(Policy::pace_window());
    let [light, heavy] = [1, 50].map(|shares| world.group.add_class(None, shares).unwrap());
    let (group, queue) = (&world.group, &mut world.shards[0].queue);
    let mut now = SECOND;
    let queued = |queue: &mut IoQueue, class, now| {
        queue.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap()
    };
    queued(queue, light, now);
    assert!(queue.poll_dispatch(Time::from_nanos(now)).is_some());
    (0..200).for_each(|_| _ = queued(queue, heavy, now));
    while now < SECOND + 20 * MILLI {
        now += STEP;
        while queue.poll_dispatch(Time::from_nanos(now)).is_some() {}
    }
    let full = group.in_flight();
    assert!(full >= group.window() && queue.counters().window_bypasses == 0);
    let since = now;
    let nested = queue.enqueue_nested(Time::from_nanos(now), light, Op::Read, 4096).unwrap();
    let mut went = None;
    while now < since + 30 * MILLI {
        now += STEP;
        while let Some(ticket) = queue.poll_dispatch(Time::from_nanos(now)) {
            assert_eq!(went, None, "the window is closed again");
            went = (ticket == nested).then_some(now);
        }
    }
    let waited = went.unwrap() - since;
    assert!(waited >= MILLI, "others were before it: {waited} ns");
    let counters = queue.counters();
    let beyond = counters.window_bypass_consumption;
    assert_eq!(group.in_flight(), full.plus(beyond));
    assert_eq!(counters.window_bypasses * 100_000, beyond.as_nanos_ceil());
    let pace = DiskTime::from_nanos(waited).plus(group.effective_goal());
    assert!(beyond <= pace.plus(DiskTime::from_nanos(100_000)), "{beyond:?} in {waited} ns");
}

#[test]
fn a_holder_that_gives_up_or_whose_queue_ends_closes_the_window() {
    for drops in [false, true] {
        let mut bed = Bed::new(Policy::pace_window(), 2);
        let class = bed.class(100);
        let (mut held, mut plain) = (bed.queues.remove(0), bed.queues.remove(0));
        let mut now = SECOND;
        for _ in 0..1_000 {
            plain.enqueue(Time::from_nanos(now), class, Op::Read, 4096).unwrap();
        }
        let mut goes_in_10_ms = |queues: &mut [&mut IoQueue]| {
            let (end, mut count) = (now + 10 * MILLI, 0);
            while now < end {
                now += STEP;
                for queue in &mut *queues {
                    let next = || queue.poll_dispatch(Time::from_nanos(now));
                    count += std::iter::from_fn(next).count();
                }
            }
            (count, Time::from_nanos(now))
        };
        goes_in_10_ms(&mut [&mut plain]);
        assert_eq!(goes_in_10_ms(&mut [&mut plain]).0, 0, "the window is full");
        let (_, now) = goes_in_10_ms(&mut [&mut plain]);
        let mut asked: Vec<_> =
            (0..50).map(|_| held.enqueue_nested(now, class, Op::Read, 4096).unwrap()).collect();
        while let Some(went) = held.poll_dispatch(now) {
            asked.retain(|ticket| *ticket != went);
        }
        assert!((1..50).contains(&asked.len()), "past the window, until the pace stops it");
        if drops {
            drop(held);
            assert_eq!(goes_in_10_ms(&mut [&mut plain]).0, 0);
        } else {
            assert!(asked.into_iter().all(|ticket| held.cancel(now, ticket)));
            // the disk time owed to the plain shard, at most one goal, and no more
            assert!(goes_in_10_ms(&mut [&mut held, &mut plain]).0 <= 8);
            assert_eq!(goes_in_10_ms(&mut [&mut held, &mut plain]).0, 0);
        }
    }
}

/// The number of requests of a backlog that complete in a second.
fn served_in_a_second(queue: &mut IoQueue, class: ClassId, from: u64) -> u64 {
    let mut count = 0;
    for step in 0..10_000 {
        let now = Time::from_nanos(from + step * MILLI / 10);
        while queue.len() < 32 {
            queue.enqueue(now, class, Op::Read, 4096).unwrap();
        }
        while let Some(ticket) = queue.poll_dispatch(now) {
            queue.complete(now, ticket, Outcome::Done).unwrap();
            count += 1;
        }
    }
    count
}

#[test]
fn new_rates_hold_for_what_is_queued_from_then_on() {
    let mut world = world(Policy::pace_window());
    let class = world.group.add_class(None, 100).unwrap();
    let queue = &mut world.shards[0].queue;
    let before = served_in_a_second(queue, class, SECOND);
    assert!((9_990..=10_010).contains(&before), "{before}");
    queue.set_model(model(2_000, 40_000_000));
    // 128 KiB take 3.3 ms on the new disk
    assert_eq!(world.group.effective_goal().as_nanos_ceil(), 3_276_800);
    let after = served_in_a_second(queue, class, 3 * SECOND);
    // 32 requests of the old cost were queued, and a burst was saved up
    assert!((2_000..=2_040).contains(&after), "{after}");
}
