//! What must hold at every step of a run, whatever the load and the disk do.
//!
//! - Every request ends once, with the bytes that the disk did (`requests`).
//! - No ticket is lost or completed twice, and the budget counts exactly what is dispatched,
//!   unfinished and not given up (`ledger`).
//! - The disk does not idle while work waits (`conservation`).
//! - Of two classes that both have work waiting neither gets ahead (`lag`).
//! - Whoever has shares gets its turn (`starvation`).
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

use core::fmt;

use forebay_core::{
    Completion, DiskModel, DiskTime, Op, Policy, QueueDiscipline, Ticket, Time, saturating_nanos,
};
use forebay_load::job_file::JobFile;

use crate::simulation::{Polling, Scheduler, Shard, SimulationConfig};
use classes::{Class, Shares, fractions};
use conservation::{Conservation, State};
use lag::Lag;
use ledger::Ledger;
pub(crate) use requests::Requests;
use starvation::Starvation;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Time,
    /// The number of the shard, if it concerns one.
    pub shard: Option<u32>,
    /// The name of the class, if it concerns one.
    pub class: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.at.as_nanos())?;
        if let Some(shard) = self.shard {
            write!(f, ", shard {shard}")?;
        }
        if let Some(class) = &self.class {
            write!(f, ", class `{class}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What is wrong, and with which class of the job file if it is about one.
pub(crate) type Wrong = (Option<usize>, String);

/// A place for requests: the number of the I/O group, and the position of the shard.
pub(crate) type LaneId = (usize, usize);

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
    pub(crate) fn new(
        config: &SimulationConfig,
        model: &DiskModel,
        policy: Policy,
        numbers: &[u32],
    ) -> Self {
        let jobs = &config.jobs;
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
            config.scheduler.order == QueueDiscipline::StartTime && policy != Policy::Unlimited;
        // These lose disk time by design.
        let is_lossy = matches!(policy, Policy::TwoLevelBucket { .. } | Policy::FlowRatio { .. });
        // Among the shards of the earlier policies whoever comes first may go.
        let is_ours = matches!(policy, Policy::PaceWindow { .. });
        let tick = if let Polling::Tick(tick) = config.polling { tick } else { 0 };
        let wake_up = saturating_nanos(config.wake_up_latency);
        let (credit, patience) = (config.scheduler.idle_credit, config.scheduler.tick_nanos);
        let parents: Vec<Shares> =
            jobs.groups.iter().map(|group| Shares::new(group.shares)).collect();
        let group = |_| GroupWatch {
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
            groups: (0..if config.scheduler.duplex { 2 } else { 1 }).map(group).collect(),
            fractions: fractions(&classes, &parents),
            classes,
            parents,
            numbers: numbers.to_vec(),
            requests: numbers.iter().map(|_| Requests::default()).collect(),
            violation: None,
        }
    }

    /// A request was queued.
    pub(crate) fn enqueued(
        &mut self,
        now: Time,
        (group, seat): LaneId,
        ticket: Ticket,
        (class, op, len): (usize, Op, u64),
    ) {
        let cost = self.model.cost(op, len).units();
        let watch = &mut self.groups[group];
        let result = watch.ledgers[seat].enqueued(ticket, class, cost);
        if let Some(starvation) = &mut watch.starvation {
            starvation.enqueued(seat, (class, cost), watch.dispatched);
        }
        self.note(now, Some(seat), result);
    }

    /// The queue said that a request goes to the disk now.
    pub(crate) fn dispatched(&mut self, now: Time, (group, seat): LaneId, ticket: Ticket) {
        let watch = &mut self.groups[group];
        let result = watch.ledgers[seat].dispatched(now, ticket).map(|(class, cost)| {
            watch.dispatched += cost;
            let waiting = watch.ledgers[seat].queued(class);
            if let Some(lag) = &mut watch.lag {
                lag.dispatched((class, cost), waiting);
            }
            if let Some(starvation) = &mut watch.starvation {
                starvation.served(seat, (class, waiting), watch.dispatched);
            }
            if let Some(conservation) = &mut watch.conservation {
                conservation.dispatched();
            }
        });
        self.note(now, Some(seat), result);
    }

    /// The disk has finished the request whose ticket has this index.
    pub(crate) fn finished(&mut self, now: Time, (group, seat): LaneId, index: usize) {
        self.groups[group].ledgers[seat].finished(now, index);
    }

    /// A request was taken back that waits.
    pub(crate) fn cancelled(&mut self, now: Time, (group, seat): LaneId, ticket: Ticket) {
        let watch = &mut self.groups[group];
        let result = watch.ledgers[seat].cancelled(ticket).map(|class| {
            let waiting = watch.ledgers[seat].queued(class);
            if let Some(starvation) = &mut watch.starvation {
                starvation.served(seat, (class, waiting), watch.dispatched);
            }
            watch.lag.iter_mut().for_each(|lag| lag.begin_anew(Some(class)));
        });
        self.note(now, Some(seat), result);
    }

    /// The queue was asked until it had nothing more to go, and has given up so many so far.
    pub(crate) fn polled(&mut self, now: Time, (group, seat): LaneId, overdue: u64) {
        let watch = &mut self.groups[group];
        watch.starvation.iter_mut().for_each(|starvation| starvation.polled(seat));
        let result = watch.ledgers[seat].gave_up(overdue);
        self.note(now, Some(seat), result);
    }

    /// The queue was told that the disk has done a request, and knew of it if it is `Some`, with
    /// how long it was in the disk.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        (group, seat): LaneId,
        ticket: Ticket,
        completion: Option<(Completion, u64)>,
    ) {
        let watch = &mut self.groups[group];
        let done = completion.map(|(done, _)| done);
        watch.completed_at = now;
        let result = watch.ledgers[seat].completed(ticket, done).map(|()| {
            if let (Some(conservation), Some((_, nanos))) = (&mut watch.conservation, completion) {
                conservation.completed(nanos);
            }
        });
        self.note(now, Some(seat), result);
    }

    /// The clock has moved on, and nothing has happened yet.
    pub(crate) fn before_step(&mut self, now: Time, scheduler: &Scheduler) {
        for group in 0..self.groups.len() {
            let Some(conservation) = &mut self.groups[group].conservation else { continue };
            let result = conservation.before_step(now, &scheduler.groups[group].group);
            self.note(now, None, result);
        }
    }

    /// All that happens at `now` has happened.
    ///
    /// # Errors
    /// The first violation since the start.
    pub(crate) fn after_step(
        &mut self,
        now: Time,
        scheduler: &Scheduler,
        shards: &[Shard],
        disk_is_empty: bool,
    ) -> Result<(), Violation> {
        for group in 0..self.groups.len() {
            let result = self.check_ledgers(group, scheduler, shards);
            self.note(now, None, result);
            self.book_given_up(now, group, scheduler);
            self.check_waiting((now, group), scheduler, (shards, disk_is_empty));
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
        self.begin_anew(None);
    }

    /// A class has an upper limit from now on, or none.
    pub(crate) fn limit_changed(&mut self, class: usize, is_capped: bool) {
        self.classes[class].is_capped = is_capped;
        self.begin_anew(Some(class));
    }

    /// A class was removed, and one without limits is in its stead.
    pub(crate) fn class_moved(&mut self, class: usize, parent: Option<usize>) {
        (self.classes[class].parent, self.classes[class].is_capped) = (parent, false);
        self.begin_anew(None);
    }

    /// All that is measured of a class begins anew, or of all.
    fn begin_anew(&mut self, only: Option<usize>) {
        self.fractions = fractions(&self.classes, &self.parents);
        for watch in &mut self.groups {
            watch.lag.iter_mut().for_each(|lag| lag.begin_anew(only));
            let dispatched = watch.dispatched;
            watch.starvation.iter_mut().for_each(|starvation| starvation.forgive(only, dispatched));
        }
    }

    fn check_ledgers(
        &mut self,
        group: usize,
        scheduler: &Scheduler,
        shards: &[Shard],
    ) -> Result<(), Wrong> {
        let mut in_disk = 0;
        for (ledger, shard) in self.groups[group].ledgers.iter_mut().zip(shards) {
            in_disk += ledger.after_step(shard.driver.queue(group))?;
        }
        let counted = scheduler.groups[group].group.in_flight();
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
    fn check_waiting(
        &mut self,
        (now, group): (Time, usize),
        scheduler: &Scheduler,
        (shards, disk_is_empty): (&[Shard], bool),
    ) {
        let watch = &mut self.groups[group];
        let io_group = &scheduler.groups[group].group;
        let goal = io_group.effective_goal().units();
        let is_capped = |class: usize| self.classes[class].is_capped;
        let mut state = State { someone_waits: false, oldest: None, disk_is_empty };
        let mut starved = None;
        for (seat, shard) in shards.iter().enumerate() {
            let ledger = &watch.ledgers[seat];
            if shard.is_free(now) {
                let waits = |class: usize| ledger.queued(class) > 0 && !is_capped(class);
                state.someone_waits |= ledger.waiting() > 0 && (0..self.classes.len()).any(waits);
                state.oldest = state.oldest.into_iter().chain(ledger.oldest()).min();
            }
            let Some(starvation) = &mut watch.starvation else { continue };
            let done = (watch.dispatched, goal);
            let result = starvation.check(seat, done, (&self.fractions, is_capped));
            if result.is_err() {
                starved = Some((seat, result));
            }
        }
        let conserved = watch
            .conservation
            .as_mut()
            .map_or(Ok(()), |conservation| conservation.after_step(now, io_group, state));
        self.note(now, None, conserved);
        if let Some((seat, result)) = starved {
            self.note(now, Some(seat), result);
        }
    }

    fn note(&mut self, at: Time, seat: Option<usize>, result: Result<(), Wrong>) {
        if let (Err((class, what)), None) = (result, &self.violation) {
            let shard = seat.map(|seat| self.numbers[seat]);
            let class = class.map(|class| self.classes[class].name.clone());
            self.violation = Some(Violation { at, shard, class, what });
        }
    }
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
