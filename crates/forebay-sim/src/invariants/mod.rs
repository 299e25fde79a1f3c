//! What must hold at every step of a run, whatever the load and the disk do.
//!
//! - No ticket is lost or completed twice, and the budget counts exactly what is dispatched,
//!   unfinished and not given up (`ledger`).
//! - The disk does not idle while work waits (`conservation`).
//! - Of two classes that both have work waiting neither gets ahead (`lag`).
//! - Whoever has shares gets its turn (`starvation`).
//!
//! The checks know what the shards were told and what came of it, and nothing of how the scheduler
//! goes about it.

mod conservation;
mod lag;
mod ledger;
mod starvation;

use core::fmt;

use forebay_core::{
    Blocked, Completion, DiskModel, DiskTime, Op, Order, Policy, Ticket, Time, saturating_nanos,
};
use forebay_load::job_file::JobFile;

use crate::simulation::{Polling, Scheduler, Shard, SimulationConfig};
use conservation::Conservation;
use lag::Lag;
use ledger::Ledger;
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
type Wrong = (Option<usize>, String);

/// A place for requests: the number of the I/O group, and the position of the shard.
pub(crate) type LaneId = (usize, usize);

/// Watches a run.
pub(crate) struct Invariants {
    model: DiskModel,
    classes: Vec<Class>,
    /// The shares of the groups of classes.
    parents: Vec<Shares>,
    /// The numbers of the shards by their positions.
    numbers: Vec<u32>,
    groups: Vec<GroupWatch>,
    violation: Option<Violation>,
}

/// A class of the job file.
#[derive(Clone, Debug)]
struct Class {
    name: String,
    shares: Shares,
    parent: Option<usize>,
    is_capped: bool,
}

/// The shares of a class or a group, and the bounds of what they have been: what somebody got at
/// the price of earlier shares is paid for at that price.
#[derive(Clone, Copy, Debug)]
struct Shares {
    now: u32,
    least: u32,
    most: u32,
}

impl Shares {
    fn new(now: u32) -> Self {
        Self { now, least: now, most: now }
    }

    fn change(&mut self, now: u32) {
        *self = Self { now, least: self.least.min(now), most: self.most.max(now) };
    }
}

/// What is known of an I/O group.
struct GroupWatch {
    ledgers: Vec<Ledger>,
    conservation: Option<Conservation>,
    lag: Option<Lag>,
    starvation: Option<Starvation>,
    /// Disk time dispatched.
    dispatched: u64,
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
        let is_fair = config.scheduler.order == Order::StartTime && policy != Policy::Open;
        // These lose disk time by design.
        let is_lossy = matches!(policy, Policy::TwoLevelBucket { .. } | Policy::FlowRatio { .. });
        // Among the shards of the earlier policies whoever comes first may go.
        let is_ours = matches!(policy, Policy::PaceWindow { .. });
        let tick = if let Polling::Tick(tick) = config.polling { tick } else { 0 };
        let wake_up = saturating_nanos(config.wake_up_latency);
        let credit = config.scheduler.idle_credit;
        let group = |_| GroupWatch {
            ledgers: numbers.iter().map(|_| Ledger::new(classes.len())).collect(),
            conservation: (policy != Policy::Open && !is_lossy)
                .then(|| Conservation::new(tick.saturating_add(wake_up))),
            lag: (is_fair && numbers.len() == 1).then(|| Lag::new(&classes, credit)),
            starvation: (is_fair && (is_ours || numbers.len() == 1))
                .then(|| Starvation::new((numbers.len(), classes.len()), tick + wake_up, credit)),
            dispatched: 0,
        };
        Self {
            model: model.clone(),
            groups: (0..if config.scheduler.duplex { 2 } else { 1 }).map(group).collect(),
            classes,
            parents: jobs.groups.iter().map(|group| Shares::new(group.shares)).collect(),
            numbers: numbers.to_vec(),
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
                starvation.dispatched(seat, (class, waiting), watch.dispatched);
            }
            if let Some(conservation) = &mut watch.conservation {
                conservation.dispatched();
            }
        });
        self.note(now, Some(seat), result);
    }

    /// The queue was told that the disk has done a request, and knew of it if it is `Some`.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        (group, seat): LaneId,
        ticket: Ticket,
        completion: Option<Completion>,
    ) {
        let watch = &mut self.groups[group];
        let result = watch.ledgers[seat].completed(ticket, completion).map(|()| {
            if let (Some(conservation), Some(done)) = (&mut watch.conservation, completion) {
                conservation.completed(done.disk_nanos);
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
    ) -> Result<(), Violation> {
        for group in 0..self.groups.len() {
            let result = self.check_ledgers(group, scheduler, shards);
            self.note(now, None, result);
            self.check_waiting((now, group), scheduler, shards);
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
        for watch in &mut self.groups {
            watch.lag.iter_mut().for_each(|lag| lag.shares_changed());
            let dispatched = watch.dispatched;
            watch.starvation.iter_mut().for_each(|starvation| starvation.forgive(dispatched));
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
            in_disk += ledger.after_step(&shard.lanes[group].queue)?;
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
        shards: &[Shard],
    ) {
        let watch = &mut self.groups[group];
        let io_group = &scheduler.groups[group].group;
        let fractions = fractions(&self.classes, &self.parents);
        let goal = io_group.effective_goal().units();
        let mut someone_waits = false;
        let mut starved = None;
        for (seat, shard) in shards.iter().enumerate() {
            let queue = &shard.lanes[group].queue;
            let could_go = shard.is_free(now) && queue.blocked() != Some(Blocked::ClassLimit);
            someone_waits |= could_go && watch.ledgers[seat].waiting() > 0;
            let Some(starvation) = &mut watch.starvation else { continue };
            let is_capped = |class: usize| self.classes[class].is_capped;
            let done = (watch.dispatched, goal);
            let result = starvation.check(seat, could_go, done, (&fractions, is_capped));
            if result.is_err() {
                starved = Some((seat, result));
            }
        }
        let oldest = watch.ledgers.iter().filter_map(Ledger::oldest).min();
        let conserved = watch.conservation.as_mut().map_or(Ok(()), |conservation| {
            conservation.after_step(now, io_group, (someone_waits, oldest))
        });
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

/// The least part of the disk that each class is due while all of them have work.
fn fractions(classes: &[Class], parents: &[Shares]) -> Vec<f64> {
    let loose = classes.iter().filter(|class| class.parent.is_none()).map(|class| class.shares);
    let top: f64 = loose.chain(parents.iter().copied()).map(|shares| f64::from(shares.most)).sum();
    let fraction = |class: &Class| {
        let siblings = classes.iter().filter(|other| other.parent == class.parent);
        let own = f64::from(class.shares.least);
        match class.parent.and_then(|parent| parents.get(parent)) {
            None => own / top,
            Some(parent) => {
                let inside: f64 = siblings.map(|sibling| f64::from(sibling.shares.most)).sum();
                f64::from(parent.least) / top * own / inside
            }
        }
    };
    classes.iter().map(fraction).collect()
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
