//! One try to dispatch: who is next, may it go, and if not, until when to wait.

use super::IoQueue;
use super::in_disk::ask;
use super::stop::Stop;
use crate::budget::{ChargeContext, Demand, GivenUp, Overdue, Refusal, Reservation};
use crate::requests::{State, Ticket};
use crate::{Blocked, ClassId, DiskTime, Op, Time};

/// A queue that is blocked by others looks again after this time at the latest.
const BLOCKED_NANOS_MAX: u64 = 100_000_000;
/// A queue with at most so many requests in the disk asks others to wake it, and
/// so does one whose latest request went long ago: see `IoQueue::service_horizon_nanos`.
const MARK_BELOW: u32 = 1;
/// On a lone shard, backlogged requests go together when these parts of an
/// effective goal lie unused: (3, 4).
const COALESCE_SINGLE_SHARD: (u64, u64) = (3, 4);
/// The same beside other shards, which must not find the budget wasted: (1, 2).
const COALESCE_SHARED: (u64, u64) = (1, 2);

/// A queue that looks at an overdue request for the first time, and later than
/// this, was away itself: the request may have come back long ago, and its
/// owner has as much time to say so.
const AWAY_NANOS: u64 = 10_000_000;

impl IoQueue {
    /// What this queue lets go are permits from now on: their holders, and not
    /// the owner of the queue, do the I/O and say when it has ended. A permit
    /// that is held for long beside no other I/O is no [stop](crate::GroupCounters).
    pub fn grant_permits(&mut self) {
        self.grants_permits = true;
    }

    /// One try to dispatch.
    pub(super) fn attempt(&mut self, now: Time) -> Result<Ticket, Stop> {
        let (class, index) = match self.first_of_run(now)? {
            Some(first) => first,
            None => self.first_within_limits(now)?,
        };
        let result = self.attempt_first(now, class, index);
        if result.is_err() && self.requests.at(index).op == Op::Discard {
            self.shared.discards.leave();
        }
        result
    }

    // on the way of each request, and called once
    #[inline(always)]
    fn attempt_first(&mut self, now: Time, class: u16, index: u32) -> Result<Ticket, Stop> {
        self.price_by_place(now, index);
        if !self.is_of_run(index) {
            self.wait_for_run(now, class)?;
            self.check_lead(class, self.requests.at(index).cost, now)?;
        }
        self.enter_run(now, class, index)?;
        let mut ask = ask(self.requests.at(index));
        self.pace_run(index, &mut ask);
        self.check_reserve(class, &mut ask, now);
        let reservation = self.reserve(now, class, &ask);
        let granted = match reservation {
            Reservation::Granted { nearly_idle, .. } => Some(nearly_idle),
            Reservation::Refused(_) if self.overdraws(now, class, &ask) => Some(false),
            _ => None,
        };
        if let Some(nearly_idle) = granted {
            self.pop(now, class, index);
            return Ok(self.dispatch(now, index, nearly_idle));
        }
        match reservation {
            Reservation::Refused(Refusal::Pace(open_at)) => {
                Err(self.stop_by_pace(now, class, index, open_at))
            }
            Reservation::Refused(Refusal::Window) if self.may_bypass_window(now) => {
                self.attempt_bypass(now, class, index, &ask)
            }
            Reservation::Refused(Refusal::Window) => {
                self.shared.peers.publish_wanted(self.shard, ask.cost);
                let resume_at = self.latest_resume(now).min(self.looks_at(now));
                Err(Stop { reason: Blocked::Window, resume_at: Some(resume_at) })
            }
            Reservation::LostRace | Reservation::Granted { .. } => {
                self.collect_wakes(now);
                Err(Stop { reason: Blocked::Pace, resume_at: Some(now) })
            }
        }
    }

    /// Takes what `ask` needs out of the budget. A window that is full of what
    /// other shards do not attend to is open to a shard that does: most of that
    /// has long been done, and waits to be noticed.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn reserve(&mut self, now: Time, class: u16, ask: &Demand) -> Reservation {
        let taking = self.taking();
        let reservation = self.shared.budget.try_reserve(now, ask, taking, DiskTime::ZERO);
        if reservation != Reservation::Refused(Refusal::Window) {
            return reservation;
        }
        self.reserve_beside_unattended(now, class, ask)
    }

    #[inline]
    fn taking(&self) -> ChargeContext<'_> {
        ChargeContext { flow: &self.flow, passed: self.lateness.missed_pace_credit }
    }

    #[cold]
    fn reserve_beside_unattended(&mut self, now: Time, class: u16, ask: &Demand) -> Reservation {
        let bridge = self.bridge(class, now);
        if bridge > DiskTime::ZERO {
            let reservation = self.shared.budget.try_reserve(now, ask, self.taking(), bridge);
            let is_granted = matches!(reservation, Reservation::Granted { .. });
            self.totals.bridged += u64::from(is_granted);
            return reservation;
        }
        let uncounted = self.uncounted(now);
        if uncounted == DiskTime::ZERO || self.lateness.is_late() {
            return Reservation::Refused(Refusal::Window);
        }
        self.shared.budget.try_reserve(now, ask, self.taking(), uncounted)
    }

    /// Whose turn it is, and its first request. A discard has its place among
    /// those that may be in the disk.
    fn first_within_limits(&mut self, now: Time) -> Result<(u16, u32), Stop> {
        loop {
            let Some((class, index)) = self.fair.first(now) else {
                let resume_at = self.fair.throttled_until();
                let reason = if resume_at.is_some() { Blocked::ClassLimit } else { Blocked::Empty };
                return Err(Stop { reason, resume_at });
            };
            match self.fair.limited(class, now) {
                Some((node, until)) => {
                    let counters = self.classes.get_mut(ClassId::index_of(class));
                    counters.into_iter().for_each(|class| class.limited(until.nanos_since(now)));
                    self.fair.throttle(node, until);
                }
                None if self.requests.at(index).op == Op::Discard => {
                    match self.enter_discards(now, class) {
                        Ok(()) => return Ok((class, index)),
                        Err(until) => self.fair.throttle(class, until),
                    }
                }
                None => return Ok((class, index)),
            }
        }
    }

    /// The rate is used up until `open_at`.
    pub(super) fn stop_by_pace(&self, now: Time, class: u16, index: u32, open_at: Time) -> Stop {
        let unused = self.wakeup_threshold(class, index, now);
        let resume_at = self.shared.budget.unused_at(now, unused).max(open_at);
        let empty = self.shared.budget.is_nearly_empty(now);
        let reason = if empty { Blocked::PaceDiskIdle } else { Blocked::Pace };
        Stop { reason, resume_at: Some(resume_at) }
    }

    /// How much of the budget must lie unused before it is worth while to wake
    /// up: those that are behind must have had their turn, and requests that
    /// have waited for longer than a goal may as well wait to go together.
    /// Whatever arrives meanwhile finds that budget and goes at once.
    fn wakeup_threshold(&self, class: u16, index: u32, now: Time) -> DiskTime {
        let turn = self.lead(class, now).units_of_all;
        let goal = self.shared.budget.effective_goal();
        let waited = now.nanos_since(self.requests.at(index).enqueued_at);
        let together = if waited < goal.as_nanos_ceil() {
            0
        } else if self.shared.peers.alone() {
            goal.units() / COALESCE_SINGLE_SHARD.1 * COALESCE_SINGLE_SHARD.0
        } else {
            goal.units() / COALESCE_SHARED.1 * COALESCE_SHARED.0
        };
        DiskTime::from_units(turn.max(together).min(self.idle_budget_threshold()))
    }

    /// From when on this queue cannot rely on completions of its own to look
    /// again.
    pub(super) fn self_wake_deadline(&self) -> Time {
        match self.in_disk.tail() {
            Some(latest) if self.totals.in_disk > MARK_BELOW => {
                self.requests.at(latest).dispatched_at.plus_nanos(self.service_horizon_nanos())
            }
            _ => Time::ZERO,
        }
    }

    /// When a queue that others block looks again if nobody wakes it.
    pub(super) fn latest_resume(&self, now: Time) -> Time {
        let latest = now.plus_nanos(BLOCKED_NANOS_MAX);
        let self_wake_deadline = self.self_wake_deadline();
        if self_wake_deadline > now { self_wake_deadline.min(latest) } else { latest }
    }

    /// Whether the disk may have kept a request for too long.
    pub(super) fn may_give_up(&self, now: Time) -> bool {
        let oldest = self.in_disk.head().map(|oldest| self.requests.at(oldest).dispatched_at);
        oldest.is_some_and(|since| Overdue::is_possible(now.nanos_since(since)))
    }

    /// Lets the window forget requests that the disk has kept for too long.
    pub(super) fn give_up_overdue(&mut self, now: Time) {
        let looked_at = core::mem::replace(&mut self.looked_at, now);
        while let Some(oldest) = self.in_disk.head() {
            let request = *self.requests.at(oldest);
            let in_disk = now.nanos_since(request.dispatched_at);
            if !Overdue::is_possible(in_disk) || now < self.away_until {
                return;
            }
            let overdue_at =
                request.dispatched_at.plus_nanos(self.shared.budget.patience_nanos(now));
            if now < overdue_at {
                return;
            }
            let late = looked_at < overdue_at && now.nanos_since(overdue_at) > AWAY_NANOS;
            if late && !self.shared.budget.overdue.hangs(now) {
                self.away_until = now.plus_nanos(AWAY_NANOS);
                self.give_up_after = self.away_until;
                return;
            }
            let overdue = GivenUp {
                dispatched_at: request.dispatched_at,
                cost: request.cost,
                is_permit: self.grants_permits,
            };
            match self.shared.budget.give_up(now, overdue) {
                Ok(kept) => self.give_up(now, oldest, kept),
                Err(retry) => {
                    self.give_up_after = retry;
                    return;
                }
            }
        }
    }

    fn give_up(&mut self, now: Time, index: u32, kept: DiskTime) {
        self.requests.at_mut(index).state = State::Overdue;
        self.leave_window(index);
        self.pass_on_discards(now, index);
        self.requests.push_back(&mut self.given_up, index);
        let request = *self.requests.at(index);
        self.leave_flush(index, request.op);
        // where the window binds nobody it was kept from nobody
        if kept > DiskTime::ZERO && !self.may_bypass_window(now) {
            self.fair.charge(request.class, kept, request.len, now);
        }
        self.collect_wakes(now);
        self.totals.overdue += 1;
        self.class_counters(&request).overdue += 1;
    }
}
