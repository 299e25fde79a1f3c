//! A group of shards, and the conditions that must hold after each verb.

use std::fmt;
use std::time::Duration;

use forebay_core::{
    COST_UNCHECKED_LEN, ClassId, DiskModel, DiskRates, DiskTime, EnqueueError, GroupConfig,
    IoGroup, Limits, Outcome, Policy, REQUEST_COST_MAX, Ticket, Time,
};

use super::classes::Classes;
use super::shard::{Request, Shard, Stage};
use super::verb::{Asked, Bytes, Verb};

pub(super) struct Model {
    pub(super) group: IoGroup,
    /// By number of the shard; `None` for a shard that has left.
    pub(super) shards: Vec<Option<Shard>>,
    pub(super) classes: Classes,
    requests_max: usize,
    disk: DiskModel,
    pub(super) now: u64,
    /// The latest time so far: the clock may have stepped back since.
    pub(super) latest: u64,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} shards of {} requests, window {:?}, disk {:?}",
            self.shards.len(),
            self.requests_max,
            self.group.window(),
            self.disk.cost(forebay_core::Op::Read, 4096),
        )
    }
}

impl Model {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let goal = Duration::from_micros(u64::from(bytes.any()) * 20 + 1);
        let base = bytes.any();
        let base_latency = (base < 64).then(|| Duration::from_micros(u64::from(base) * 30));
        let disk = disk(usize::from(bytes.any()));
        let policy = Policy::PaceWindow { latency_goal: goal, base_latency };
        let mut config = GroupConfig::new(disk.clone(), policy);
        config.shards_max = [1, 2, 3, 5][usize::from(bytes.any()) % 4];
        config.requests_max = [8, 40, 200][usize::from(bytes.any()) % 3];
        let requests_max = config.requests_max as usize;
        let shards_max = config.shards_max;
        let group = IoGroup::new(config);
        let classes = Classes::new(&group);
        let shards = (0..shards_max).map(|_| Some(Shard::new(group.join().unwrap()))).collect();
        Self { group, shards, classes, requests_max, disk, now: 1, latest: 1 }
    }

    pub(super) fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    pub(super) fn apply(&mut self, verb: &Verb) {
        match *verb {
            Verb::Join => self.join(),
            Verb::Leave { queue } => self.leave(queue),
            Verb::Enqueue { queue, asked, nested } => self.enqueue(queue, asked, nested),
            Verb::DispatchAtOnce { queue, asked } => self.dispatch_at_once(queue, asked),
            Verb::Split { queue, asked } => self.split(queue, asked),
            Verb::Poll { queue } => self.poll(queue),
            Verb::Speed { disk: number } => {
                self.disk = disk(number);
                for shard in self.shards.iter_mut().flatten() {
                    shard.queue.set_model(self.disk.clone());
                }
            }
            Verb::BaseLatency { micros } => {
                self.group.set_base_latency(Duration::from_micros(micros));
            }
            Verb::Wait { nanos } => {
                self.now += nanos;
                self.latest = self.latest.max(self.now);
            }
            Verb::StepBack { nanos } => self.now = self.now.saturating_sub(nanos),
            Verb::AddClass { .. }
            | Verb::RemoveClass { .. }
            | Verb::AddGroup { .. }
            | Verb::RemoveGroup { .. }
            | Verb::Shares { .. }
            | Verb::GroupShares { .. }
            | Verb::Limit { .. }
            | Verb::GroupLimit { .. } => self.change(verb),
            _ => self.use_ticket(verb),
        }
    }

    fn change(&mut self, verb: &Verb) {
        let (group, classes) = (&self.group, &mut self.classes);
        let limits = |operations_per_second, bytes_per_second| Limits {
            operations_per_second,
            bytes_per_second,
        };
        match *verb {
            Verb::AddClass { parent, shares } => classes.add(group, parent, shares),
            Verb::RemoveClass { class } => {
                let shards = &self.shards;
                classes.remove(group, class, |class| queued(shards, class));
            }
            Verb::AddGroup { parent, shares } => classes.add_group(group, parent, shares),
            Verb::RemoveGroup { group: of } => classes.remove_group(group, of),
            Verb::Shares { class, shares } => classes.set_shares(group, class, shares),
            Verb::GroupShares { group: of, shares } => classes.set_group_shares(group, of, shares),
            Verb::Limit { class, operations, bytes } => {
                classes.set_limits(group, class, &limits(operations, bytes));
            }
            Verb::GroupLimit { group: of, operations, bytes } => {
                classes.set_group_limits(group, of, &limits(operations, bytes));
            }
            _ => {}
        }
    }

    /// Runs a verb on one request, if the shard has a request for it.
    fn use_ticket(&mut self, verb: &Verb) {
        let now = self.time();
        let Some(shard) = self.shard(verb.queue()) else { return };
        match *verb {
            Verb::PollOnce { .. } => {
                shard.poll_once(now);
            }
            Verb::Complete { pick, ok, reaped, .. } => {
                let Some(ticket) = shard.pick(pick, Stage::InDisk) else { return };
                let outcome = if ok { Outcome::Done } else { Outcome::Failed };
                shard.complete(now, ticket, outcome, if reaped { now } else { Time::ZERO });
            }
            Verb::Cancel { pick, .. } => {
                let stage = if pick % 4 == 0 { Stage::Parked } else { Stage::Queued };
                let Some(ticket) = shard.pick(pick, stage) else { return };
                shard.cancel(now, ticket);
            }
            Verb::Parked { pick, .. } => {
                let Some(ticket) = shard.pick(pick, Stage::InDisk) else { return };
                shard.park(now, ticket);
            }
            Verb::TakeUp { pick, .. } => {
                let Some(ticket) = shard.pick(pick, Stage::Parked) else { return };
                shard.resume(now, ticket);
            }
            Verb::UseStale { pick, .. } => {
                let Some(ticket) = shard.stale(pick) else { return };
                shard.check_void(now, ticket);
            }
            _ => {}
        }
    }

    pub(super) fn shard(&mut self, queue: usize) -> Option<&mut Shard> {
        let place = queue % self.shards.len();
        self.shards[place].as_mut()
    }

    fn join(&mut self) {
        let joined = self.group.join();
        match self.shards.iter_mut().find(|place| place.is_none()) {
            None => assert!(joined.is_err()),
            Some(place) => {
                let mut queue = joined.unwrap();
                queue.set_model(self.disk.clone());
                *place = Some(Shard::new(queue));
            }
        }
    }

    /// Lets a queue leave; every other time it is dropped instead.
    fn leave(&mut self, queue: usize) {
        let (now, place) = (self.time(), queue % self.shards.len());
        let Some(shard) = self.shards[place].take() else { return };
        if queue.is_multiple_of(2) {
            let _woken = shard.queue.leave(now).count();
        }
    }

    fn enqueue(&mut self, queue: usize, asked: Asked, nested: bool) {
        let (now, group_max) = (self.time(), self.requests_max);
        let Some(class) = self.classes.pick(asked.class) else { return };
        let removed = self.classes.is_removed(class);
        let Some(shard) = self.shard(queue) else { return };
        let full = shard.len() == group_max;
        let (Asked { op, len, .. }, queue) = (asked, &mut shard.queue);
        let made = if nested {
            queue.enqueue_nested(now, class, op, len)
        } else {
            queue.enqueue(now, class, op, len)
        };
        let cost = queue.cost(op, len);
        match made {
            Ok(ticket) => {
                assert!(!removed && !is_too_costly(len, cost));
                shard.made(request(ticket, Stage::Queued, class, cost), full);
            }
            Err(error) => check_refusal(error, removed, is_too_costly(len, cost), full),
        }
    }

    fn dispatch_at_once(&mut self, queue: usize, asked: Asked) {
        let (now, group_max) = (self.time(), self.requests_max);
        let Some(class) = self.classes.pick(asked.class) else { return };
        let removed = self.classes.is_removed(class);
        let Some(shard) = self.shard(queue) else { return };
        // a request that was given up may be forgotten to make room, and its ticket is not returned
        if shard.len() == group_max {
            return;
        }
        let cost = shard.queue.cost(asked.op, asked.len);
        match shard.queue.dispatch_at_once(now, class, asked.op, asked.len) {
            Ok(None) => assert!(!removed),
            Ok(Some(ticket)) => {
                assert!(!removed && !shard.has(Stage::Queued));
                shard.made(request(ticket, Stage::InDisk, class, cost), false);
                shard.check_wakes();
            }
            Err(error) => check_refusal(error, removed, is_too_costly(asked.len, cost), false),
        }
    }

    fn split(&mut self, queue: usize, asked: Asked) {
        let Some(class) = self.classes.pick(asked.class) else { return };
        let (group_max, mut next) = (self.requests_max, 0);
        let Some(shard) = self.shard(queue) else { return };
        let parts: Vec<_> = shard.queue.split(class, asked.op, asked.len).collect();
        assert!(parts.len() <= group_max);
        for (at, len) in parts {
            assert!(at == next && len > 0);
            next = at + len;
        }
        assert_eq!(next, asked.len);
    }

    pub(super) fn poll(&mut self, queue: usize) {
        let now = self.time();
        if let Some(shard) = self.shard(queue) {
            shard.poll(now);
        }
    }

    /// Checks that the counters of the group match the requests of its shards.
    pub(super) fn check(&self) {
        let shards = || self.shards.iter().flatten();
        shards().for_each(Shard::check);
        let in_disk = shards().flat_map(Shard::requests);
        let in_disk = in_disk.filter(|request| request.stage == Stage::InDisk);
        let unfinished: u64 = in_disk.map(|request| request.cost).sum();
        let overdue: u64 = shards().map(Shard::overdue).sum();
        let counted = self.group.in_flight().units();
        assert!(
            counted == unfinished || (overdue > 0 && counted < unfinished),
            "{counted} units in the disk, and requests of {unfinished}; {overdue} were given up"
        );
    }
}

fn request(ticket: Ticket, stage: Stage, class: ClassId, cost: DiskTime) -> Request {
    Request { ticket, stage, class, cost: cost.units(), went: stage == Stage::InDisk }
}

fn queued(shards: &[Option<Shard>], class: ClassId) -> bool {
    let requests = shards.iter().flatten().flat_map(Shard::requests);
    requests.into_iter().any(|request| request.stage == Stage::Queued && request.class == class)
}

fn is_too_costly(len: u64, cost: DiskTime) -> bool {
    len > COST_UNCHECKED_LEN && cost > REQUEST_COST_MAX
}

fn check_refusal(error: EnqueueError, removed: bool, too_costly: bool, full: bool) {
    let expected = match error {
        EnqueueError::Class(_) => removed,
        EnqueueError::TooCostly { .. } => too_costly,
        EnqueueError::Full => full,
    };
    assert!(expected, "{error}");
}

/// From a failing hard disk to one that is faster than any.
fn disk(number: usize) -> DiskModel {
    let (iops, bandwidth) = [
        (20_000, 500_000_000),
        (1_000_000, 4_000_000_000),
        (100, 2_000_000),
        (1, 1_000_000),
        (100_000_000, 1_000_000_000_000),
    ][number % 5];
    let rates = DiskRates {
        read_iops: iops,
        write_iops: iops.div_ceil(2),
        read_bandwidth: bandwidth,
        write_bandwidth: bandwidth / 2,
    };
    DiskModel::from_rates(&rates).unwrap()
}
