//! Whom room wakes that was freed: as many as it is for, those first that are behind.

use forebay_core::{ClassId, Op, Outcome, Policy, Ticket, Time};

use crate::world::{MILLI, World, model};

const STEP: u64 = 10_000;

/// Shards that wait for room, one request each, and one that has the whole
/// window.
struct Crowd {
    world: World,
    /// Whose turn is first.
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
        // each has had something else, and so has another tag
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
        // the rate is open, and nobody has been silent for long
        crowd.now += MILLI;
        for (shard, class) in classes.iter().enumerate() {
            let queue = &mut crowd.world.shards[shard].queue;
            queue.enqueue(at(crowd.now), *class, Op::Read, 4096).unwrap();
        }
        // the first time each looks at the new classes, and wakes others for that
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

    /// A request that goes, now or later.
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

    /// The oldest request has come back: the shards to wake.
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
        // of more than are looked at in one go, the first of those that were
        if waiting <= 32 {
            assert_eq!(woken, [crowd.first], "of {waiting}");
            let queue = &mut crowd.world.shards[crowd.first].queue;
            assert!(queue.poll_dispatch(at(crowd.now)).is_some(), "of {waiting}: in vain");
        }
    }
}
