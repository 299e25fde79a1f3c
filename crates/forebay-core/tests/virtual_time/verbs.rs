//! Random calls of every verb, checked against a plain model.

use std::collections::HashMap;

use forebay_core::{
    Blocked, ClassId, DiskTime, IoGroup, IoQueue, Limits, Op, Outcome, Policy, Ticket, Time,
};
use proptest::prelude::*;

use crate::world::{by_figures, model};

const SHARDS: usize = 3;
const CLASSES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Enqueue { shard: usize, class: usize, op: usize, len: u64 },
    EnqueueForHolder { shard: usize, class: usize, op: usize, len: u64 },
    Poll { shard: usize },
    Parked { shard: usize, pick: usize },
    TakeUp { shard: usize, pick: usize },
    Complete { shard: usize, pick: usize, ok: bool },
    Cancel { shard: usize, pick: usize },
    Shares { class: usize, shares: u32 },
    Limit { class: usize, operations: Option<u64> },
    Wait { nanos: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let lens = prop_oneof![Just(512u64), Just(4096), Just(131_072), 0u64..=(16 << 20)];
    prop_oneof![
        1 => (0..SHARDS, 0..CLASSES, 0..4usize, lens.clone())
            .prop_map(|(shard, class, op, len)| Step::EnqueueForHolder { shard, class, op, len }),
        4 => (0..SHARDS, 0..CLASSES, 0..4usize, lens)
            .prop_map(|(shard, class, op, len)| Step::Enqueue { shard, class, op, len }),
        4 => (0..SHARDS).prop_map(|shard| Step::Poll { shard }),
        3 => (0..SHARDS, any::<usize>(), prop::bool::weighted(0.9))
            .prop_map(|(shard, pick, ok)| Step::Complete { shard, pick, ok }),
        1 => (0..SHARDS, any::<usize>()).prop_map(|(shard, pick)| Step::Cancel { shard, pick }),
        1 => (0..SHARDS, any::<usize>()).prop_map(|(shard, pick)| Step::Parked { shard, pick }),
        1 => (0..SHARDS, any::<usize>()).prop_map(|(shard, pick)| Step::TakeUp { shard, pick }),
        1 => (0..CLASSES, 1u32..=10_000).prop_map(|(class, shares)| Step::Shares { class, shares }),
        1 => (0..CLASSES, prop::option::weighted(0.3, 1_000u64..1_000_000))
            .prop_map(|(class, operations)| Step::Limit { class, operations }),
        3 => prop_oneof![0u64..2_000_000, 0u64..200_000_000].prop_map(|nanos| Step::Wait { nanos }),
    ]
}

/// The longest time that shards wait for others while the disk idles.
const TICK_NANOS: u64 = 500_000;

/// The state of a request, which decides the verbs for its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    InDisk,
    Parked,
}

struct Checked {
    group: IoGroup,
    queues: Vec<IoQueue>,
    classes: Vec<ClassId>,
    live: Vec<HashMap<Ticket, (Stage, DiskTime)>>,
    now: u64,
    enqueued: u64,
    finished: u64,
}

impl Checked {
    fn new() -> Self {
        let mut config = by_figures(model(20_000, 500_000_000), Policy::pace_window());
        config.shards_max = SHARDS;
        let group = IoGroup::new(config);
        let parent = group.add_class_group(None, 50).unwrap();
        let classes = (0..CLASSES)
            .map(|index| group.add_class((index % 2 == 0).then_some(parent), 100).unwrap())
            .collect();
        let queues = (0..SHARDS).map(|_| group.join().unwrap()).collect();
        let live = vec![HashMap::new(); SHARDS];
        Self { group, queues, classes, live, now: 1, enqueued: 0, finished: 0 }
    }

    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    fn apply(&mut self, step: &Step) {
        let now = self.time();
        match *step {
            Step::Enqueue { shard, class, op, len } => {
                let op = Op::ALL[op];
                let ticket = self.queues[shard].enqueue(now, self.classes[class], op, len).unwrap();
                let cost = self.group.model().cost(op, len);
                assert!(self.live[shard].insert(ticket, (Stage::Queued, cost)).is_none());
                self.enqueued += 1;
            }
            Step::EnqueueForHolder { shard, class, op, len } => {
                let (class, op) = (self.classes[class], Op::ALL[op]);
                let queue = &mut self.queues[shard];
                let ticket = queue.enqueue_nested(now, class, op, len).unwrap();
                let cost = self.group.model().cost(op, len);
                assert!(self.live[shard].insert(ticket, (Stage::Queued, cost)).is_none());
                self.enqueued += 1;
            }
            Step::Poll { shard } => self.poll(shard),
            Step::Parked { shard, pick } => {
                let Some(ticket) = self.pick(shard, pick, Stage::InDisk) else { return };
                // a request that was given up has no room to return
                if self.queues[shard].park(now, ticket).is_ok() {
                    self.live[shard].get_mut(&ticket).unwrap().0 = Stage::Parked;
                    assert!(self.queues[shard].complete(now, ticket, Outcome::Done).is_err());
                }
            }
            Step::TakeUp { shard, pick } => {
                let Some(ticket) = self.pick(shard, pick, Stage::Parked) else { return };
                let goes = self.queues[shard].resume(now, ticket).unwrap();
                let stage = if goes { Stage::InDisk } else { Stage::Queued };
                self.live[shard].get_mut(&ticket).unwrap().0 = stage;
            }
            Step::Complete { shard, pick, ok } => {
                let Some(ticket) = self.pick(shard, pick, Stage::InDisk) else { return };
                let outcome = if ok { Outcome::Done } else { Outcome::Failed };
                self.queues[shard].complete(now, ticket, outcome).unwrap();
                assert!(self.queues[shard].complete(now, ticket, outcome).is_err());
                self.live[shard].remove(&ticket);
                self.finished += 1;
            }
            Step::Cancel { shard, pick } => {
                let stage = if pick % 4 == 0 { Stage::Parked } else { Stage::Queued };
                let Some(ticket) = self.pick(shard, pick, stage) else { return };
                assert!(self.queues[shard].cancel(now, ticket));
                assert!(!self.queues[shard].cancel(now, ticket));
                self.live[shard].remove(&ticket);
                self.finished += 1;
            }
            Step::Shares { class, shares } => {
                self.group.set_shares(self.classes[class], shares).unwrap();
            }
            Step::Limit { class, operations } => {
                let limits = Limits { operations_per_second: operations, bytes_per_second: None };
                self.group.set_limits(self.classes[class], &limits).unwrap();
            }
            Step::Wait { nanos } => self.now += nanos,
        }
    }

    fn poll(&mut self, shard: usize) {
        let now = self.time();
        while let Some(ticket) = self.queues[shard].poll_dispatch(now) {
            let stage = self.live[shard].get_mut(&ticket).map(|entry| &mut entry.0);
            assert_eq!(stage.as_deref(), Some(&Stage::Queued));
            *stage.unwrap() = Stage::InDisk;
        }
        while self.queues[shard].poll_wake().is_some() {}
        let queued = self.live[shard].values().any(|&(stage, _)| stage == Stage::Queued);
        let blocked = self.queues[shard].blocked().unwrap();
        assert_eq!(blocked == Blocked::Empty, !queued, "{blocked:?}");
        // for any reason, a queue with work is polled again within 100 ms, or when its budget or its
        // limits open, at the latest after a burst
        if queued {
            assert!(self.queues[shard].poll_timeout(now).is_some());
        }
        if self.group.unused(now) >= self.group.effective_goal() {
            // shards that were passed over and have just been woken are waited for, for about a tick
            let gives_way = blocked == Blocked::FairnessLead
                && self.queues[shard].poll_timeout(now).unwrap().nanos_since(now) <= TICK_NANOS;
            let waits = matches!(blocked, Blocked::Empty | Blocked::ClassLimit) || gives_way;
            assert!(waits, "an idle disk and {blocked:?}");
        }
    }

    fn pick(&self, shard: usize, pick: usize, wanted: Stage) -> Option<Ticket> {
        let mut tickets: Vec<_> = self.live[shard]
            .iter()
            .filter(|(_, (stage, _))| *stage == wanted)
            .map(|(ticket, _)| *ticket)
            .collect();
        tickets.sort_unstable_by_key(|ticket| ticket.index());
        (!tickets.is_empty()).then(|| tickets[pick % tickets.len()])
    }

    fn check(&self) {
        let live: usize = self.live.iter().map(HashMap::len).sum();
        assert_eq!(self.enqueued, self.finished + live as u64);
        for (queue, live) in self.queues.iter().zip(&self.live) {
            assert_eq!(queue.len(), live.len());
        }
        let overdue: u64 = self.queues.iter().map(|queue| queue.counters().overdue).sum();
        let in_disk = self.live.iter().flat_map(HashMap::values);
        let unfinished: u64 = in_disk
            .filter(|(stage, _)| *stage == Stage::InDisk)
            .map(|(_, cost)| cost.units())
            .sum();
        let counted = self.group.in_flight().units();
        assert!(counted == unfinished || (overdue > 0 && counted < unfinished));
    }

    /// Completes all requests: none is lost.
    fn drain(&mut self) {
        for class in self.classes.clone() {
            self.group.set_limits(class, &Limits::default()).unwrap();
        }
        for _ in 0..200_000 {
            if self.queues.iter().all(IoQueue::is_empty) {
                break;
            }
            self.now += 1_000_000;
            for shard in 0..SHARDS {
                while let Some(ticket) = self.pick(shard, 0, Stage::Parked) {
                    let now = self.time();
                    let goes = self.queues[shard].resume(now, ticket).unwrap();
                    let stage = if goes { Stage::InDisk } else { Stage::Queued };
                    self.live[shard].get_mut(&ticket).unwrap().0 = stage;
                }
                self.poll(shard);
                while let Some(ticket) = self.pick(shard, 0, Stage::InDisk) {
                    let now = self.time();
                    self.queues[shard].complete(now, ticket, Outcome::Done).unwrap();
                    self.live[shard].remove(&ticket);
                    self.finished += 1;
                }
            }
        }
        self.check();
        assert_eq!(self.enqueued, self.finished);
        assert_eq!(self.group.in_flight(), DiskTime::ZERO);
        for class in &self.classes {
            self.group.remove(*class).unwrap();
        }
    }
}

proptest! {
    // 250 cases of up to 4,000 steps: a million in all
    #![proptest_config(ProptestConfig { cases: 250, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn no_request_is_lost_or_completed_twice(steps in prop::collection::vec(step(), 3_900..4_100)) {
        let mut checked = Checked::new();
        for step in &steps {
            checked.apply(step);
        }
        checked.check();
        checked.drain();
    }

    #[test]
    fn two_busy_classes_are_at_most_one_largest_request_each_apart(
        shares in (1u32..=10_000, 1u32..=10_000),
        lens in prop::collection::vec((512u64..1_000_000, 512u64..1_000_000), 50..200),
    ) {
        let mut config = by_figures(model(20_000, 500_000_000), Policy::Unlimited);
        config.shards_max = 1;
        let group = IoGroup::new(config);
        let classes = [shares.0, shares.1].map(|shares| group.add_class(None, shares).unwrap());
        let mut queue = group.join().unwrap();
        let now = Time::from_nanos(1);
        let mut largest = [0f64; 2];
        let mut queued = [0u32; 2];
        for len in &lens {
            for (at, len) in [len.0, len.1].into_iter().enumerate() {
                queue.enqueue(now, classes[at], Op::Read, len).unwrap();
                let cost = group.model().cost(Op::Read, len).units() as f64;
                largest[at] = largest[at].max(cost);
                queued[at] += 1;
            }
        }
        let weights = [f64::from(shares.0), f64::from(shares.1)];
        // one unit per class for the rounding of integer tags
        let bound = (largest[0] + weights[0]) / weights[0] + (largest[1] + weights[1]) / weights[1];
        while queue.poll_dispatch(now).is_some() {
            let used = [0, 1].map(|at| queue.class(classes[at]).unwrap());
            if used.iter().any(|counters| counters.queued == 0) {
                break;
            }
            let [a, b] = [0, 1].map(|at| used[at].consumption.units() as f64 / weights[at]);
            prop_assert!((a - b).abs() <= bound, "{a} and {b}, {bound} allowed");
        }
    }
}

#[test]
fn a_class_in_the_place_of_a_removed_one_counts_from_zero() {
    let group = IoGroup::new(by_figures(model(20_000, 500_000_000), Policy::pace_window()));
    let mut queue = group.join().unwrap();
    let now = Time::from_nanos(1);
    let mut go = |class, len| {
        queue.enqueue(now, class, Op::Read, len).unwrap();
        queue.poll_dispatch(now).unwrap()
    };
    let first = group.add_class(None, 100).unwrap();
    let held = go(first, 4096);
    group.remove(first).unwrap();
    let second = group.add_class(None, 100).unwrap();
    assert_eq!(first.index(), second.index());
    let ticket = go(second, 512);
    // the last request of the removed class completes late
    for ticket in [held, ticket] {
        queue.complete(now, ticket, Outcome::Done).unwrap();
    }
    let counters = queue.class(second).unwrap();
    assert!(counters.are_of(second) && !counters.are_of(first));
    assert_eq!((counters.in_disk, counters.activations), (0, 1));
    assert_eq!(queue.classes().len(), 1);
    let mut twice = counters.clone();
    twice.merge(counters);
    assert_eq!(twice.bytes[Op::Read.index()], 2 * (4096 + 512));
}
