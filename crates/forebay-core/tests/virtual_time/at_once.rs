//! Dispatching at once equals queueing and polling, step for step. Twins that are driven alike, except
//! for that verb, never differ.

use forebay_core::{
    ClassId, EnqueueError, GroupConfig, IoGroup, IoQueue, LATENCY_GOAL_DEFAULT, Limits, Op,
    Outcome, Policy, ServiceOrder, Ticket, Time,
};
use proptest::prelude::*;

use crate::world::{by_figures, model};

const CLASSES: usize = 4;
const REQUESTS_MAX: u32 = 12;
/// A wait at the end, so that different tags show in the order.
const FINAL_NANOS: u64 = 50_000;

#[derive(Clone, Debug)]
enum Step {
    Arrive { shard: usize, class: usize, op: usize, len: u64 },
    Queue { shard: usize, class: usize, len: u64 },
    Complete { shard: usize, pick: usize, ok: bool },
    Poll { shard: usize },
    Cancel { shard: usize, pick: usize },
    Shares { class: usize, shares: u32 },
    Limit { class: usize, operations: Option<u64> },
    Replace { class: usize },
    Wait { nanos: u64 },
}

fn step(shards: usize) -> impl Strategy<Value = Step> {
    let lens = prop_oneof![4 => Just(4096u64), 2 => Just(131_072), 1 => 1u64..=(4 << 20)];
    prop_oneof![
        8 => (0..shards, 0..CLASSES, 0..4usize, lens.clone())
            .prop_map(|(shard, class, op, len)| Step::Arrive { shard, class, op, len }),
        2 => (0..shards, 0..CLASSES, lens)
            .prop_map(|(shard, class, len)| Step::Queue { shard, class, len }),
        8 => (0..shards, any::<usize>(), prop::bool::weighted(0.9))
            .prop_map(|(shard, pick, ok)| Step::Complete { shard, pick, ok }),
        5 => (0..shards).prop_map(|shard| Step::Poll { shard }),
        1 => (0..shards, any::<usize>()).prop_map(|(shard, pick)| Step::Cancel { shard, pick }),
        1 => (0..CLASSES, 1u32..=10_000).prop_map(|(class, shares)| Step::Shares { class, shares }),
        1 => (0..CLASSES, prop::option::weighted(0.3, 1_000u64..1_000_000))
            .prop_map(|(class, operations)| Step::Limit { class, operations }),
        1 => (0..CLASSES).prop_map(|class| Step::Replace { class }),
        6 => prop_oneof![3 => 0u64..300_000, 1 => 0u64..3_000_000, 1 => 0u64..200_000_000]
            .prop_map(|nanos| Step::Wait { nanos }),
    ]
}

fn config() -> impl Strategy<Value = GroupConfig> {
    let policy = prop_oneof![
        3 => Just(Policy::pace_window()),
        1 => Just(Policy::Unlimited),
        1 => Just(Policy::Concurrency { requests: 3 }),
        1 => Just(Policy::LittlesLaw { latency_goal: LATENCY_GOAL_DEFAULT }),
        1 => Just(Policy::TwoLevelBucket { latency_goal: LATENCY_GOAL_DEFAULT }),
        1 => Just(Policy::FlowRatio { latency_goal: LATENCY_GOAL_DEFAULT }),
    ];
    let orders = vec![
        ServiceOrder::StartTime,
        ServiceOrder::StartTime,
        ServiceOrder::ExponentialDecay { tau_nanos: 1 << 27 },
    ];
    (policy, prop::sample::select(orders)).prop_map(|(policy, order)| {
        let mut config = by_figures(model(20_000, 500_000_000), policy);
        config.order = order;
        config.requests_max = REQUESTS_MAX;
        config
    })
}

/// A group and its queues. The tickets of twins have equal indices.
struct Twin {
    group: IoGroup,
    queues: Vec<IoQueue>,
    classes: Vec<ClassId>,
    at_once: bool,
    in_disk: Vec<Vec<Ticket>>,
    queued: Vec<Vec<Ticket>>,
    /// The number of requests that were dispatched at once.
    passed: usize,
}

impl Twin {
    fn new(mut config: GroupConfig, shards: usize, at_once: bool) -> Self {
        config.shards_max = shards;
        let group = IoGroup::new(config);
        let outer = group.add_class_group(None, 50).unwrap();
        let inner = group.add_class_group(Some(outer), 200).unwrap();
        let parents = [None, Some(outer), Some(inner), None];
        let classes = parents.map(|parent| group.add_class(parent, 100).unwrap()).to_vec();
        let queues = (0..shards).map(|_| group.join().unwrap()).collect();
        let none = vec![Vec::new(); shards];
        Self { group, queues, classes, at_once, in_disk: none.clone(), queued: none, passed: 0 }
    }

    fn apply(&mut self, now: Time, step: &Step) {
        match *step {
            Step::Arrive { shard, class, op, len } => {
                if self.arrive(now, shard, class, Op::ALL[op], len) == Ok(false) {
                    self.poll(now, shard);
                }
            }
            Step::Queue { shard, class, len } => {
                let _ = self.queue(now, shard, class, Op::Write, len);
            }
            Step::Poll { shard } => self.poll(now, shard),
            Step::Complete { shard, pick, ok } => {
                let Some(at) = pick.checked_rem(self.in_disk[shard].len()) else { return };
                let ticket = self.in_disk[shard].remove(at);
                let outcome = if ok { Outcome::Done } else { Outcome::Failed };
                // it fails for both twins if the class was replaced
                let _ = self.queues[shard].complete(now, ticket, outcome);
            }
            Step::Cancel { shard, pick } => {
                let Some(at) = pick.checked_rem(self.queued[shard].len()) else { return };
                let ticket = self.queued[shard].remove(at);
                assert!(self.queues[shard].cancel(now, ticket));
            }
            Step::Shares { class, shares } => {
                self.group.set_shares(self.classes[class], shares).unwrap();
            }
            Step::Limit { class, operations: operations_per_second } => {
                let limits = Limits { operations_per_second, bytes_per_second: None };
                self.group.set_limits(self.classes[class], &limits).unwrap();
            }
            Step::Replace { class } => {
                if self.group.remove(self.classes[class]).is_ok() {
                    self.classes[class] = self.group.add_class(None, 100).unwrap();
                }
            }
            Step::Wait { .. } => {}
        }
    }

    /// Whether a request was dispatched at once; otherwise it is queued.
    fn arrive(
        &mut self,
        now: Time,
        shard: usize,
        class: usize,
        op: Op,
        len: u64,
    ) -> Result<bool, EnqueueError> {
        if self.at_once {
            let class = self.classes[class];
            if let Some(ticket) = self.queues[shard].dispatch_at_once(now, class, op, len)? {
                self.in_disk[shard].push(ticket);
                self.passed += 1;
                return Ok(true);
            }
        }
        self.queue(now, shard, class, op, len).map(|()| false)
    }

    fn queue(
        &mut self,
        now: Time,
        shard: usize,
        class: usize,
        op: Op,
        len: u64,
    ) -> Result<(), EnqueueError> {
        let ticket = self.queues[shard].enqueue(now, self.classes[class], op, len)?;
        self.queued[shard].push(ticket);
        Ok(())
    }

    fn poll(&mut self, now: Time, shard: usize) {
        while let Some(ticket) = self.queues[shard].poll_dispatch(now) {
            self.queued[shard].retain(|queued| *queued != ticket);
            self.in_disk[shard].push(ticket);
        }
    }

    /// Asserts that all visible state of both is equal.
    fn assert_equals(&mut self, other: &mut Self, now: Time, step: &Step) {
        let group = |twin: &Self| {
            let io = &twin.group;
            (io.in_flight(), io.unused(now), io.effective_goal())
        };
        assert_eq!(group(self), group(other), "after {step:?}");
        let indices = |tickets: &[Ticket]| tickets.iter().map(|t| t.index()).collect::<Vec<_>>();
        for shard in 0..self.queues.len() {
            let [seen, expected] = [&mut *self, &mut *other].map(|twin| {
                let queue = &mut twin.queues[shard];
                let woken: Vec<_> = std::iter::from_fn(|| queue.poll_wake()).collect();
                let stopped = (queue.blocked(), queue.poll_timeout(now));
                let tickets = (indices(&twin.in_disk[shard]), indices(&twin.queued[shard]));
                (queue.counters(), queue.classes().to_vec(), woken, stopped, tickets)
            });
            assert_eq!(seen, expected, "after {step:?}");
        }
    }
}

fn compare(config: &GroupConfig, shards: usize, steps: &[Step]) -> usize {
    let mut plain = Twin::new(config.clone(), shards, false);
    let mut twin = Twin::new(config.clone(), shards, true);
    let mut now = 1_000;
    // at the end every class queues on every shard: the order shows the tags
    let last = (0..2 * CLASSES * shards).map(|n| Step::Queue {
        shard: n % shards,
        class: n / shards % CLASSES,
        len: 65_536,
    });
    let polls = (0..20 * shards).map(|n| Step::Poll { shard: n % shards });
    for step in steps.iter().cloned().chain(last).chain(polls) {
        match step {
            Step::Wait { nanos } => now += nanos,
            Step::Poll { .. } => now += FINAL_NANOS,
            _ => {}
        }
        let at = Time::from_nanos(now);
        plain.apply(at, &step);
        twin.apply(at, &step);
        twin.assert_equals(&mut plain, at, &step);
    }
    twin.passed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn dispatch_at_once_leaves_the_queue_like_enqueue_and_poll(
        config in config(),
        (shards, steps) in (1usize..=3)
            .prop_flat_map(|shards| (Just(shards), prop::collection::vec(step(shards), 1..200))),
    ) {
        compare(&config, shards, &steps);
    }
}

#[test]
fn nothing_passes_what_waits() {
    let mut config = by_figures(model(1_000, 100_000_000), Policy::pace_window());
    config.shards_max = 1;
    let mut twin = Twin::new(config, 1, true);
    let now = Time::from_nanos(1_000);
    twin.poll(now, 0);
    let (first, second) = (twin.classes[0], twin.classes[1]);
    let queue = &mut twin.queues[0];
    assert!(queue.dispatch_at_once(now, first, Op::Read, 4096).unwrap().is_some());
    assert!(queue.dispatch_at_once(now, second, Op::Read, 4096).unwrap().is_some());
    let waits = queue.enqueue(now, first, Op::Read, 4096).unwrap();
    assert_eq!(queue.dispatch_at_once(now, second, Op::Read, 4096), Ok(None));
    let later = Time::from_nanos(900_000_000);
    assert_eq!(queue.dispatch_at_once(later, second, Op::Read, 4096), Ok(None));
    assert_eq!(queue.poll_dispatch(later), Some(waits));
}

#[test]
fn most_of_what_comes_to_an_idle_queue_goes_at_once() {
    for shards in 1..=3 {
        let config = by_figures(model(20_000, 500_000_000), Policy::pace_window());
        let arrive = |n| Step::Arrive { shard: n % shards, class: n % CLASSES, op: 0, len: 4096 };
        let complete = |n| Step::Complete { shard: n % shards, pick: 0, ok: true };
        let wait = Step::Wait { nanos: 100_000 };
        let steps: Vec<_> =
            (0..1_000).flat_map(|n| [arrive(n), complete(n), wait.clone()]).collect();
        assert!(compare(&config, shards, &steps) >= 1_000 - shards);
    }
}
