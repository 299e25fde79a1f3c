//! What must hold at every step of a run, whatever the load and the disk do.
//!
//! - Every request ends once, with the bytes that the disk did (`requests`).
//! - No ticket is lost or completed twice, and the budget counts exactly what is dispatched,
//!   unfinished and not given up (`ledger`).
//! - The disk does not idle while work waits (`conservation`).
//! - Of two classes that both have work waiting neither gets ahead (`lag`).
//! - Each class with shares gets its turn (`starvation`).
//!
//! The checks know what the shards were told and what came of it, and nothing of how the scheduler
//! goes about it.

mod classes;
mod conservation;
mod given_up;
mod lag;
mod ledger;
mod requests;
mod starvation;
mod violation;

use forebay_core::{
    Access, Completion, DiskModel, DiskTime, IoGroup, Policy, RUN_CHARGED_NANOS, ServiceOrder,
    Ticket, Time, saturating_nanos,
};
use forebay_driver::Driver;
use forebay_load::job_file::JobFile;

use crate::config::{Polling, SimulationConfig};
use crate::load_command::LoadCommand;
use classes::{Class, Shares, fractions};
use conservation::{Conservation, State};
use lag::Lag;
use ledger::Ledger;
pub(crate) use requests::Requests;
use starvation::Starvation;
pub use violation::Violation;
use violation::Wrong;

/// Which I/O queue of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueId {
    /// The number of the I/O group.
    pub(crate) group: usize,
    /// The position of the shard.
    pub(crate) shard: usize,
}

/// A shard at the end of a step.
#[derive(Clone, Copy)]
pub(crate) struct ShardState<'a> {
    pub(crate) driver: &'a Driver<LoadCommand>,
    /// Whether it neither stalls nor works.
    pub(crate) is_free: bool,
}

/// Watches a run.
pub(crate) struct Invariants {
    model: DiskModel,
    classes: Vec<Class>,
    /// The shares of the groups of classes.
    parents: Vec<Shares>,
    /// The least part of the disk that each class is due while all of them have work.
    fractions: Vec<f64>,
    /// The numbers of the shards by their positions.
    numbers: Vec<u32>,
    groups: Vec<GroupWatch>,
    /// By the positions of the shards.
    requests: Vec<Requests>,
    violation: Option<Violation>,
}

/// What is known of an I/O group.
struct GroupWatch {
    io_group: IoGroup,
    ledgers: Vec<Ledger>,
    conservation: Option<Conservation>,
    lag: Option<Lag>,
    starvation: Option<Starvation>,
    /// Disk time dispatched.
    dispatched: u64,
    /// When a request last came back.
    completed_at: Time,
    /// When one was last given up.
    given_up_at: Option<Time>,
}

impl Invariants {
    /// Watches shards of these numbers in these I/O groups.
    pub(crate) fn new(
        config: &SimulationConfig,
        model: &DiskModel,
        groups: Vec<IoGroup>,
        numbers: Vec<u32>,
    ) -> Self {
        let (jobs, policy) = (&config.jobs, config.policy());
        let classes: Vec<Class> = jobs
            .classes
            .iter()
            .map(|class| Class {
                name: class.name.clone(),
                shares: Shares::new(class.shares),
                parent: class.parent,
                is_capped: class.bandwidth_max.is_some(),
            })
            .collect();
        let is_fair =
            config.scheduler.order == ServiceOrder::StartTime && policy != Policy::Unlimited;
        // These lose disk time by design.
        let is_lossy = matches!(policy, Policy::TwoLevelBucket { .. } | Policy::FlowRatio { .. });
        // Among the shards of the earlier policies the first to poll may go.
        let is_ours = matches!(policy, Policy::PaceWindow { .. });
        let tick = if let Polling::Tick(tick) = config.polling { tick } else { 0 };
        let wake_up = saturating_nanos(config.wake_up_latency);
        let patience = config.scheduler.tick_nanos;
        let parents: Vec<Shares> =
            jobs.groups.iter().map(|group| Shares::new(group.shares)).collect();
        // a run on a disk that seeks goes before others as what was saved up does
        let run = if model.seeks() { RUN_CHARGED_NANOS } else { 0 };
        let credit = DiskTime::from_nanos(run);
        let group = |io_group| GroupWatch {
            io_group,
            ledgers: numbers.iter().map(|_| Ledger::new(classes.len())).collect(),
            conservation: (policy != Policy::Unlimited && !is_lossy).then(|| {
                Conservation::new(tick.saturating_add(wake_up), is_ours.then_some(patience))
            }),
            lag: (is_fair && numbers.len() == 1).then(|| Lag::new(classes.len(), credit)),
            starvation: (is_fair && (is_ours || numbers.len() == 1))
                .then(|| Starvation::new((numbers.len(), classes.len()), tick + wake_up, credit)),
            dispatched: 0,
            completed_at: Time::ZERO,
            given_up_at: None,
        };
        Self {
            model: model.clone(),
            groups: groups.into_iter().map(group).collect(),
            fractions: fractions(&classes, &parents),
            classes,
            parents,
            requests: numbers.iter().map(|_| Requests::default()).collect(),
            numbers,
            violation: None,
        }
    }

    /// A request was queued.
    pub(crate) fn enqueued(
        &mut self,
        now: Time,
        queue: QueueId,
        ticket: Ticket,
        class: usize,
        (access, len): (Access, u64),
    ) {
        let cost = self.model.access_cost(&access, len).units();
        let watch = &mut self.groups[queue.group];
        let result = watch.ledgers[queue.shard].enqueued(ticket, class, cost);
        if let Some(starvation) = &mut watch.starvation {
            starvation.enqueued(queue.shard, (class, cost), watch.dispatched);
        }
        self.note(now, Some(queue.shard), result);
    }

    /// The queue said that a request goes to the disk now, at this price.
    pub(crate) fn dispatched(
        &mut self,
        now: Time,
        queue: QueueId,
        ticket: Ticket,
        price: DiskTime,
    ) {
        let watch = &mut self.groups[queue.group];
        let ledger = &mut watch.ledgers[queue.shard];
        let priced = ledger.priced(ticket, price.units(), self.model.seeks());
        let dispatched = priced.and_then(|()| ledger.dispatched(now, ticket));
        let result = dispatched.map(|(class, cost)| {
            watch.dispatched += cost;
            let waiting = watch.ledgers[queue.shard].queued(class);
            if let Some(lag) = &mut watch.lag {
                lag.dispatched((class, cost), waiting);
            }
            if let Some(starvation) = &mut watch.starvation {
                starvation.served(queue.shard, (class, waiting), watch.dispatched);
            }
            if let Some(conservation) = &mut watch.conservation {
                conservation.dispatched();
            }
        });
        self.note(now, Some(queue.shard), result);
    }

    /// The disk has finished the request whose ticket has this index.
    pub(crate) fn finished(&mut self, now: Time, queue: QueueId, index: usize) {
        self.groups[queue.group].ledgers[queue.shard].finished(now, index);
    }

    /// A request was taken back that waits.
    pub(crate) fn cancelled(&mut self, now: Time, queue: QueueId, ticket: Ticket) {
        let watch = &mut self.groups[queue.group];
        let result = watch.ledgers[queue.shard].cancelled(ticket).map(|class| {
            let waiting = watch.ledgers[queue.shard].queued(class);
            if let Some(starvation) = &mut watch.starvation {
                starvation.served(queue.shard, (class, waiting), watch.dispatched);
            }
            watch.lag.iter_mut().for_each(|lag| lag.restart(Some(class)));
        });
        self.note(now, Some(queue.shard), result);
    }

    /// The queue was asked until it had nothing more to go, and has given up this many so far.
    pub(crate) fn polled(&mut self, now: Time, queue: QueueId, overdue: u64) {
        let watch = &mut self.groups[queue.group];
        watch.starvation.iter_mut().for_each(|starvation| starvation.polled(queue.shard));
        let result = watch.ledgers[queue.shard].gave_up(overdue);
        self.note(now, Some(queue.shard), result);
    }

    /// The queue was told that the disk has done a request, and knew of it if it is `Some`, with
    /// how long it was in the disk.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        queue: QueueId,
        ticket: Ticket,
        completion: Option<(Completion, u64)>,
    ) {
        let watch = &mut self.groups[queue.group];
        let done = completion.map(|(done, _)| done);
        watch.completed_at = now;
        let result = watch.ledgers[queue.shard].completed(ticket, done).map(|()| {
            if let (Some(conservation), Some((_, nanos))) = (&mut watch.conservation, completion) {
                conservation.completed(nanos);
            }
        });
        self.note(now, Some(queue.shard), result);
    }

    /// The owner of a finished request holds it until another of its is done, or sends what is
    /// left of it: the time is the owner's from now on, and its class pays for it if the queue
    /// gives the request up.
    pub(crate) fn resumed(&mut self, queue: QueueId, index: usize) {
        self.groups[queue.group].ledgers[queue.shard].resumed(index);
    }

    /// Something has happened to a request of a shard.
    pub(crate) fn request(
        &mut self,
        now: Time,
        shard: usize,
        event: impl FnOnce(&mut Requests) -> Result<(), Wrong>,
    ) {
        let result = event(&mut self.requests[shard]);
        self.note(now, Some(shard), result);
    }

    /// A shard has had its turn, in which all that could be was sent if it `has_sent`.
    pub(crate) fn after_turn(
        &mut self,
        now: Time,
        shard: usize,
        driver: &Driver<LoadCommand>,
        has_sent: bool,
    ) {
        let (len, bugs) = (driver.len(), driver.counters().bugs);
        self.request(now, shard, |requests| requests.after_turn(has_sent, len, bugs));
    }

    /// The clock has moved on, and nothing has happened yet.
    pub(crate) fn before_step(&mut self, now: Time) {
        for group in 0..self.groups.len() {
            let GroupWatch { io_group, conservation, .. } = &mut self.groups[group];
            let Some(conservation) = conservation else { continue };
            let result = conservation.before_step(now, io_group);
            self.note(now, None, result);
        }
    }

    /// All that happens at `now` has happened.
    ///
    /// # Errors
    /// The first violation since the start.
    pub(crate) fn after_step<'a>(
        &mut self,
        now: Time,
        shards: &(impl Iterator<Item = ShardState<'a>> + Clone),
        disk_is_empty: bool,
    ) -> Result<(), Violation> {
        for group in 0..self.groups.len() {
            let result = self.check_ledgers(group, shards.clone());
            self.note(now, None, result);
            self.book_given_up(now, group);
            self.check_waiting((now, group), (shards.clone(), disk_is_empty));
            let watch = &mut self.groups[group];
            if let Some(lag) = &mut watch.lag {
                let ledger = &watch.ledgers[0];
                let result = lag.check(&self.classes, |class| ledger.queued(class));
                self.note(now, Some(0), result);
            }
        }
        self.violation.take().map_or(Ok(()), Err)
    }

    /// A class, or a group of classes, has other shares from now on.
    pub(crate) fn shares_changed(&mut self, jobs: &JobFile, name: &str, shares: u32) {
        let parents = jobs.groups.iter().zip(&mut self.parents);
        parents.filter(|(group, _)| group.name == name).for_each(|(_, of)| of.change(shares));
        let classes = self.classes.iter_mut().filter(|class| class.name == name);
        classes.for_each(|class| class.shares.change(shares));
        self.restart(None);
    }

    /// A class has an upper limit from now on, or none.
    pub(crate) fn limit_changed(&mut self, class: usize, is_capped: bool) {
        self.classes[class].is_capped = is_capped;
        self.restart(Some(class));
    }

    /// A class was removed, and one without limits is in its stead.
    pub(crate) fn class_moved(&mut self, class: usize, parent: Option<usize>) {
        (self.classes[class].parent, self.classes[class].is_capped) = (parent, false);
        self.restart(None);
    }

    /// Restarts all measurements of a class, or of all classes.
    fn restart(&mut self, only: Option<usize>) {
        self.fractions = fractions(&self.classes, &self.parents);
        for watch in &mut self.groups {
            watch.lag.iter_mut().for_each(|lag| lag.restart(only));
            let dispatched = watch.dispatched;
            watch.starvation.iter_mut().for_each(|starvation| starvation.forgive(only, dispatched));
        }
    }

    fn check_ledgers<'a>(
        &mut self,
        group: usize,
        shards: impl Iterator<Item = ShardState<'a>>,
    ) -> Result<(), Wrong> {
        let mut in_disk = 0;
        let watch = &mut self.groups[group];
        for (ledger, shard) in watch.ledgers.iter_mut().zip(shards) {
            in_disk += ledger.after_step(shard.driver.queue(group))?;
        }
        let counted = watch.io_group.in_flight();
        if counted == DiskTime::from_units(in_disk) {
            return Ok(());
        }
        let what = format!(
            "the budget counts {} units of disk time in the disk, where {in_disk} are",
            counted.units()
        );
        Err((None, what))
    }

    /// Checks that nothing waits that could go, and that nobody waits for ever.
    fn check_waiting<'a>(
        &mut self,
        (now, group): (Time, usize),
        (shards, disk_is_empty): (impl Iterator<Item = ShardState<'a>>, bool),
    ) {
        let watch = &mut self.groups[group];
        let goal = watch.io_group.effective_goal().units();
        let is_capped = |class: usize| self.classes[class].is_capped;
        let mut state = State { someone_waits: false, oldest: None, disk_is_empty };
        let mut starved = None;
        for (position, shard) in shards.enumerate() {
            let ledger = &watch.ledgers[position];
            if shard.is_free {
                let waits = |class: usize| ledger.queued(class) > 0 && !is_capped(class);
                state.someone_waits |= ledger.waiting > 0 && (0..self.classes.len()).any(waits);
                state.oldest = state.oldest.into_iter().chain(ledger.oldest()).min();
            }
            let Some(starvation) = &mut watch.starvation else { continue };
            let done = (watch.dispatched, goal);
            let result = starvation.check(position, done, (&self.fractions, is_capped));
            if result.is_err() {
                starved = Some((position, result));
            }
        }
        let conserved = watch
            .conservation
            .as_mut()
            .map_or(Ok(()), |conservation| conservation.after_step(now, &watch.io_group, state));
        self.note(now, None, conserved);
        if let Some((position, result)) = starved {
            self.note(now, Some(position), result);
        }
    }

    fn note(&mut self, at: Time, shard: Option<usize>, result: Result<(), Wrong>) {
        if let (Err((class, what)), None) = (result, &self.violation) {
            let shard = shard.map(|position| self.numbers[position]);
            let class = class.map(|class| self.classes[class].name.clone());
            self.violation = Some(Violation { at, shard, class, what });
        }
    }
}

#[cfg(test)]
mod tests;
