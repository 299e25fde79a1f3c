//! Freed room wakes as many shards as it is for, those furthest behind first.

use forebay_core::{ClassId, Op, Outcome, Policy, Ticket, Time};

use crate::world::{Client, MILLI, World, model};

const STEP: u64 = 10_000;
const WARM: u64 = 60 * MILLI;
const SPAN: u64 = 60 * MILLI;
/// The cost of a request of 4 KiB, in nanoseconds.
const COST: u64 = 10_000;

/// Shards that wait for room with one request each, and one that has the whole window.
struct Crowd {
    world: World,
    /// The shard that is next.
    first: usize,
    in_disk: Vec<Ticket>,
    now: u64,
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

impl Crowd {
    fn new(waiting: usize) -> Self {
        let policy = Policy::pace_window();
        let world = World::new(model(10_000, 1_000_000_000), policy, waiting + 1);
        let mut crowd = Self { world, first: 0, in_disk: Vec::new(), now: 0 };
        // each has been served a different amount, and so has another tag
        let stride = if waiting.is_multiple_of(7) { 5 } else { 7 };
        let had = |shard: usize| 1 + (shard + 1) * stride % waiting;
        let classes: Vec<_> = (0..waiting).map(|_| crowd.class(100)).collect();
        for (shard, class) in classes.iter().enumerate() {
            let ticket = crowd.goes(shard, *class, 131_072 * had(shard) as u64);
            let queue = &mut crowd.world.shards[shard].queue;
            queue.complete(at(crowd.now), ticket, Outcome::Done).unwrap();
        }
        let most = crowd.class(10_000);
        while crowd.world.group.in_flight() < crowd.world.group.window() {
            let sent = crowd.goes(waiting, most, 4096);
            crowd.in_disk.push(sent);
        }
        // the pace is open, and no shard has been silent for long
        crowd.now += MILLI;
        for (shard, class) in classes.iter().enumerate() {
            let queue = &mut crowd.world.shards[shard].queue;
            queue.enqueue(at(crowd.now), *class, Op::Read, 4096).unwrap();
        }
        // the first time, each applies the new classes, and wakes others for that
        for shard in (0..waiting).chain(0..waiting) {
            let queue = &mut crowd.world.shards[shard].queue;
            assert_eq!(queue.poll_dispatch(at(crowd.now)), None);
            while queue.poll_wake().is_some() {}
        }
        crowd.first = (0..waiting).min_by_key(|shard| had(*shard)).unwrap();
        crowd
    }

    fn class(&self, shares: u32) -> ClassId {
        self.world.group.add_class(None, shares).unwrap()
    }

    /// Enqueues a request, and waits until it is dispatched.
    fn goes(&mut self, shard: usize, class: ClassId, len: u64) -> Ticket {
        let queue = &mut self.world.shards[shard].queue;
        queue.enqueue(at(self.now), class, Op::Read, len).unwrap();
        loop {
            self.now += STEP;
            if let Some(ticket) = queue.poll_dispatch(at(self.now)) {
                return ticket;
            }
        }
    }

    /// Completes the oldest request. Returns the shards to wake.
    fn complete_oldest(&mut self) -> Vec<usize> {
        let queue = &mut self.world.shards.last_mut().unwrap().queue;
        while queue.poll_wake().is_some() {}
        queue.complete(at(self.now), self.in_disk.remove(0), Outcome::Done).unwrap();
        std::iter::from_fn(|| queue.poll_wake()).map(|other| other.index()).collect()
    }
}

#[test]
fn a_completion_wakes_one_of_those_who_wait_for_room_the_one_furthest_behind() {
    for waiting in [2, 3, 7, 8, 31, 32, 63, 64, 127, 255] {
        let mut crowd = Crowd::new(waiting);
        let woken = crowd.complete_oldest();
        assert_eq!(woken.len(), 1, "of {waiting}: {woken:?}");
        // of more shards than are checked in one step, the first of those checked
        if waiting <= 32 {
            assert_eq!(woken, [crowd.first], "of {waiting}");
            let queue = &mut crowd.world.shards[crowd.first].queue;
            assert!(queue.poll_dispatch(at(crowd.now)).is_some(), "of {waiting}: in vain");
        }
    }
}

#[test]
fn several_completions_wake_as_many_as_room_was_freed_for_in_one_turn() {
    for waiting in [8, 31, 64, 255] {
        for done in [1, 2, 5] {
            let mut crowd = Crowd::new(waiting);
            let now = at(crowd.now);
            let queue = &mut crowd.world.shards.last_mut().unwrap().queue;
            assert_eq!(queue.poll_dispatch(now), None);
            while queue.poll_wake().is_some() {}
            for ticket in crowd.in_disk.drain(..done) {
                queue.complete(now, ticket, Outcome::Done).unwrap();
            }
            let woken = std::iter::from_fn(|| queue.poll_wake()).count();
            assert_eq!(woken, done, "of {waiting}");
        }
    }
}

#[test]
fn a_window_that_empties_wakes_few_for_each_request() {
    for waiting in [127, 255] {
        let mut crowd = Crowd::new(waiting);
        let now = at(crowd.now);
        let fits = crowd.in_disk.len();
        let queue = &mut crowd.world.shards.last_mut().unwrap().queue;
        assert_eq!(queue.poll_dispatch(now), None);
        while queue.poll_wake().is_some() {}
        for ticket in crowd.in_disk.drain(..) {
            queue.complete(now, ticket, Outcome::Done).unwrap();
        }
        let woken = std::iter::from_fn(|| queue.poll_wake()).count();
        assert!(woken >= fits && woken <= 4 * fits, "{woken} of {waiting} for {fits}");
    }
}

/// Shards with a backlog of `depth` requests each, on a disk that takes `slowness` percent of the time
/// of its model. Timers and wake-ups are `late` nanoseconds late.
#[derive(Clone, Copy, Debug)]
struct Herd {
    shards: usize,
    depth: usize,
    shares: &'static [u32],
    slowness: u64,
    late: u64,
}

/// Wake-ups of other shards and turns, in hundredths per dispatch, and the use of the disk, in percent.
fn per_dispatch(herd: Herd) -> (u64, u64, u64) {
    let Herd { shards, depth, shares, slowness, late } = herd;
    let mut world = World::new(model(100_000, 1_000_000_000), Policy::pace_window(), shards);
    (world.disk.slowness, world.late) = (slowness, late);
    let classes: Vec<_> =
        shares.iter().map(|&shares| world.group.add_class(None, shares).unwrap()).collect();
    for shard in 0..shards {
        let class = classes[shard % classes.len()];
        world.clients(depth, Client { shard, class, op: Op::Read, len: 4096, pause: 0 });
    }
    let counted = |world: &World| {
        world.shards.iter().fold((0, 0), |(dispatched, done), shard| {
            let counters = shard.queue.counters();
            (dispatched + counters.dispatched, done + counters.completed)
        })
    };
    world.run_until(WARM);
    let before = counted(&world);
    (world.wakes, world.turns) = (0, 0);
    world.run_until(WARM + SPAN);
    let after = counted(&world);
    let dispatched = (after.0 - before.0).max(1);
    let busy = (after.1 - before.1) * COST * slowness / 100;
    (world.wakes * 100 / dispatched, world.turns * 100 / dispatched, busy * 100 / SPAN)
}

fn herds(slowness: &[u64]) -> Vec<Herd> {
    let mut herds = Vec::new();
    for &slowness in slowness {
        for shards in [2, 8, 31, 64, 128, 256] {
            for depth in [1, 2, 8, 32] {
                for shares in [&[100][..], &[100, 1000, 10]] {
                    for late in [0, 20_000] {
                        herds.push(Herd { shards, depth, shares, slowness, late });
                    }
                }
            }
        }
    }
    herds
}

/// Asserts at most these wake-ups and turns, in hundredths per dispatch. A disk that all backlogs
/// together can fill must be used.
fn cost_at_most(herds: Vec<Herd>, (wakes_max, turns_max): (u64, u64)) {
    for herd in herds {
        let (wakes, turns, used) = per_dispatch(herd);
        let text =
            format!("{herd:?}: {wakes} % wake-ups, {turns} % turns per dispatch, use {used}");
        println!("{text}");
        assert!(wakes <= wakes_max && turns <= turns_max, "{text}");
        let fills = herd.shards * herd.depth >= 256 && herd.slowness >= 100;
        assert!(used >= 98 || !fills, "{text}");
    }
}

#[test]
fn where_the_window_binds_a_request_costs_few_wake_ups_at_any_number_of_shards() {
    cost_at_most(herds(&[105, 120, 200, 400]), (200, 800));
}

#[test]
fn where_the_rate_binds_a_request_costs_few_turns_at_any_number_of_shards() {
    cost_at_most(herds(&[80, 100]), (150, 2000));
}
