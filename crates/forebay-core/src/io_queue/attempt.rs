//! One try to dispatch: who is next, may it go, and if not, until when to wait.

use super::{IoQueue, ask};
use crate::budget::{Ask, Overdue, Refusal, Reservation};
use crate::peers::{Lead, Met, ShardId};
use crate::requests::{State, Ticket};
use crate::{Blocked, DiskTime, Time};

/// A queue that is blocked by others looks again after this time at the latest.
const BLOCKED_NANOS_MAX: u64 = 100_000_000;
/// A queue with at most so many requests in the disk asks others to wake it, and
/// so does one whose latest request went long ago: see `IoQueue::silent_nanos`.
const MARK_BELOW: u32 = 1;
/// A shard may lead the others by this many times the disk time that lies
/// unused,
pub(super) const LEAD_PER_UNUSED: u64 = 2;
/// and by anything once these parts of an effective goal lie unused: (3, 4).
const WASTED: (u64, u64) = (3, 4);
/// Who is owed more than so many goals has been passed over: two goals are what
/// shards may lead by where the budget is scarce.
const PASSED_OVER_GOALS: u64 = 2;
/// Less than this part of an effective goal is little.
const LITTLE_PART: u64 = 8;
/// Backlogged requests go together when these parts of an effective goal lie
/// unused: on a lone shard,
const ALONE: (u64, u64) = (3, 4);
/// and beside others, who must not find it wasted.
const BESIDE_OTHERS: (u64, u64) = (1, 2);

/// A queue that looks at an overdue request for the first time, and later than
/// this, was away itself: the request may have come back long ago, and its
/// owner has as much time to say so.
const AWAY_NANOS: u64 = 10_000_000;

/// Why nothing goes, and when to look again without being told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    pub(super) reason: Blocked,
    pub(super) resume_at: Option<Time>,
}

/// A shard's wait for another on an open budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    since: Time,
    until: Time,
    /// What was taken of the budget when it began.
    taken: u64,
    /// Who is waited for, and the disk time that it had dispatched in all then.
    other: ShardId,
    dispatched: u64,
}

impl Wait {
    /// Whether it is a wait for `other`, which has `dispatched` so much now: less
    /// meanwhile than a request of this `cost`.
    fn has_used_less(&self, other: ShardId, dispatched: u64, enough: DiskTime) -> bool {
        let meanwhile = dispatched.wrapping_sub(self.dispatched);
        self.other == other && meanwhile > 0 && meanwhile < enough.units()
    }
}

impl IoQueue {
    /// One try to dispatch.
    pub(super) fn attempt(&mut self, now: Time) -> Result<Ticket, Stop> {
        let (class, index) = self.first_within_limits(now)?;
        let ask = ask(self.requests.at(index));
        if !self.shared.peers.alone() {
            self.check_lead(class, ask.cost, now)?;
        }
        let reservation = self.reserve(now, &ask);
        let granted = match reservation {
            Reservation::Granted { nearly_idle } => Some(nearly_idle),
            Reservation::Refused(_) if self.overdraws(now, class, &ask) => Some(false),
            _ => None,
        };
        if let Some(nearly_idle) = granted {
            self.fair.pop(&mut self.requests, class, index, now);
            return Ok(self.dispatch(now, index, nearly_idle));
        }
        match reservation {
            Reservation::Refused(Refusal::Pace(open_at)) => {
                Err(self.stop_by_pace(now, class, index, open_at))
            }
            Reservation::Refused(Refusal::Window) if self.goes_past_window(now) => {
                self.attempt_past_window(now, class, index, &ask)
            }
            Reservation::Refused(Refusal::Window) => {
                let resume_at = self.latest_resume(now).min(self.unattended.grows_at.max(now));
                Err(Stop { reason: Blocked::Window, resume_at: Some(resume_at) })
            }
            Reservation::Undone | Reservation::Granted { .. } => {
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
    pub(super) fn reserve(&mut self, now: Time, ask: &Ask) -> Reservation {
        let reservation = self.shared.budget.try_reserve(now, ask, &self.flow, DiskTime::ZERO);
        if reservation != Reservation::Refused(Refusal::Window) {
            return reservation;
        }
        self.reserve_beside_unattended(now, ask)
    }

    #[cold]
    fn reserve_beside_unattended(&mut self, now: Time, ask: &Ask) -> Reservation {
        let uncounted = self.uncounted(now);
        if uncounted == DiskTime::ZERO || self.lateness.is_late() {
            return Reservation::Refused(Refusal::Window);
        }
        self.shared.budget.try_reserve(now, ask, &self.flow, uncounted)
    }

    fn first_within_limits(&mut self, now: Time) -> Result<(u16, u32), Stop> {
        loop {
            let Some((class, index)) = self.fair.first(now) else {
                let resume_at = self.fair.throttled_until();
                let reason = if resume_at.is_some() { Blocked::ClassLimit } else { Blocked::Empty };
                return Err(Stop { reason, resume_at });
            };
            match self.fair.limited(class, now) {
                Some((node, until)) => self.fair.throttle(node, until),
                None => return Ok((class, index)),
            }
        }
    }

    /// The rate is used up until `open_at`.
    pub(super) fn stop_by_pace(&self, now: Time, class: u16, index: u32, open_at: Time) -> Stop {
        let unused = self.worth_waking_for(class, index, now);
        let resume_at = self.shared.budget.unused_at(now, unused).max(open_at);
        let empty = self.shared.budget.is_nearly_empty(now);
        let reason = if empty { Blocked::PaceDiskIdle } else { Blocked::Pace };
        Stop { reason, resume_at: Some(resume_at) }
    }

    /// Shards that are behind go first, unless the disk would idle for it.
    pub(super) fn check_lead(&mut self, class: u16, cost: DiskTime, now: Time) -> Result<(), Stop> {
        self.notice_unattended(now);
        let unused = self.shared.budget.unused(now, self.uncounted(now));
        let wasted = self.wasted();
        let anyone_waits = || self.shared.peers.anyone_waits(now, self.shared.tick_nanos);
        if unused == DiskTime::ZERO || unused.units() >= wasted && !anyone_waits() {
            self.waits_since = None;
            return Ok(());
        }
        loop {
            let lead = self.lead(class, now);
            let needed = DiskTime::from_units((lead.units / LEAD_PER_UNUSED).min(wasted));
            let passed_over = self.passes_over(&lead);
            if unused >= needed && !passed_over || self.goes_ahead(&lead) {
                self.waits_since = None;
                return Ok(());
            }
            let enough = if passed_over { DiskTime::ZERO } else { cost.min(self.little()) };
            let waits_until = self.waits_until(lead.over, enough, now);
            if waits_until <= now {
                self.shared.peers.stop_waiting_for(lead.over);
                // what it holds does not count any more
                self.notice_unattended_at_once(now);
                continue;
            }
            let at = self.shared.budget.unused_at(now, needed);
            if at > now && !passed_over {
                // those behind have their turn meanwhile, all of them
                let turn = DiskTime::from_units(lead.units_of_all.min(wasted)).max(needed);
                let resume_at = self.shared.budget.unused_at(now, turn).max(at).min(waits_until);
                let resume_at = Some(resume_at);
                return Err(Stop { reason: Blocked::FairnessLead, resume_at });
            }
            if self.holder_waits(now) && !passed_over {
                // those behind do not need room, only their turn
                return Ok(());
            }
            let looks_at = waits_until.plus_nanos(self.many_shards_nanos());
            return Err(self.stop_for(&lead, looks_at, now));
        }
    }

    /// The rate is open and the window is not full: whoever is behind may not
    /// know of the room.
    pub(super) fn stop_for(&mut self, lead: &Lead, looks_at: Time, now: Time) -> Stop {
        let taken = self.shared.budget.taken();
        // once for what has been taken, or two that wait for each other would
        // wake each other until the time is over
        let woken = taken.map(|taken| (taken, lead.over));
        let again = woken.is_some() && self.woken_for == woken;
        if !again && (taken.is_none() || self.shared.peers.expect(lead.over, now)) {
            self.wakes.push(lead.over);
        }
        self.woken_for = woken;
        let resume_at = Some(self.latest_resume(now).min(looks_at));
        Stop { reason: Blocked::FairnessLead, resume_at }
    }

    /// Whether a shard that turns in time is so far behind that it goes first
    /// even where the disk has nothing to do: one that completes a request of
    /// several goals, and finds all of the budget unused, would else take it
    /// again each time before the others are awake.
    pub(super) fn passes_over(&self, lead: &Lead) -> bool {
        let goals = self.shared.budget.effective_goal().units().saturating_mul(PASSED_OVER_GOALS);
        lead.units > goals
            && !self.shared.peers.is_late(lead.over)
            && self.shared.budget.taken().is_some()
    }

    /// Who turns late has nothing of waiting, and those behind have all the time
    /// until its next turn.
    fn goes_ahead(&self, lead: &Lead) -> bool {
        self.lateness.is_late() && lead.units <= self.shared.budget.effective_goal().units()
    }

    /// Until when this shard waits for `other`, which is behind: a tick after the
    /// last time that anybody took anything of the budget, which is open, and
    /// after `other` is to look. One that looks only later is woken now, and one
    /// that turned late is not to be relied on. Nor is one waited for again that
    /// was not given `enough` meanwhile: it asks for little, and would take that
    /// little again each time.
    pub(super) fn waits_until(&mut self, other: ShardId, enough: DiskTime, now: Time) -> Time {
        let Some(taken) = self.shared.budget.taken() else { return Time::MAX };
        let peers = &self.shared.peers;
        let dispatched = peers.dispatched(other);
        let since = match self.waits_since {
            Some(wait) if wait.taken == taken => wait.since,
            Some(wait) if wait.has_used_less(other, dispatched, enough) => return wait.until,
            _ if self.waited_for_rate() => self.shared.budget.unused_since(now),
            _ => now,
        };
        let looks_at = if peers.is_late(other) { since } else { peers.alarm(other).min(now) };
        let until = since.max(looks_at).plus_nanos(self.shared.tick_nanos);
        self.waits_since = Some(Wait { since, until, taken, other, dispatched });
        until
    }

    fn waited_for_rate(&self) -> bool {
        matches!(self.blocked(), Some(Blocked::Pace | Blocked::PaceDiskIdle))
    }

    /// How much of the budget must lie unused before it is worth while to wake
    /// up: those that are behind must have had their turn, and requests that
    /// have waited for longer than a goal may as well wait to go together.
    /// Whatever arrives meanwhile finds that budget and goes at once.
    fn worth_waking_for(&self, class: u16, index: u32, now: Time) -> DiskTime {
        let turn = self.lead(class, now).units_of_all;
        let goal = self.shared.budget.effective_goal();
        let waited = now.nanos_since(self.requests.at(index).enqueued_at);
        let together = if waited < goal.as_nanos_ceil() {
            0
        } else if self.shared.peers.alone() {
            goal.units() / ALONE.1 * ALONE.0
        } else {
            goal.units() / BESIDE_OTHERS.1 * BESIDE_OTHERS.0
        };
        DiskTime::from_units(turn.max(together).min(self.wasted()))
    }

    pub(super) fn lead(&self, class: u16, now: Time) -> Lead {
        if self.shared.peers.alone() {
            return Lead::none(self.shard);
        }
        let met = Met::Live { now, patience: self.shared.patience() };
        self.fair.lead(class, self.totals.dispatched, met)
    }

    /// With so much of the budget unused the disk is about to idle, and
    /// nobody waits for anybody.
    pub(super) fn wasted(&self) -> u64 {
        self.shared.budget.effective_goal().units() / WASTED.1 * WASTED.0
    }

    /// Who takes less of an open budget asks for little.
    fn little(&self) -> DiskTime {
        DiskTime::from_units(self.shared.budget.effective_goal().units() / LITTLE_PART)
    }

    /// From when on this queue cannot rely on completions of its own to look
    /// again.
    pub(super) fn silent_from(&self) -> Time {
        match self.in_disk.tail() {
            Some(latest) if self.totals.in_disk > MARK_BELOW => {
                self.requests.at(latest).dispatched_at.plus_nanos(self.silent_nanos())
            }
            _ => Time::ZERO,
        }
    }

    /// When a queue that others block looks again if nobody wakes it.
    fn latest_resume(&self, now: Time) -> Time {
        let latest = now.plus_nanos(BLOCKED_NANOS_MAX);
        let silent_from = self.silent_from();
        if silent_from > now { silent_from.min(latest) } else { latest }
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
            match self.shared.budget.give_up(now, in_disk, request.cost) {
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
        self.requests.push_back(&mut self.given_up, index);
        let request = *self.requests.at(index);
        // where the window binds nobody it was kept from nobody
        if kept > DiskTime::ZERO && !self.goes_past_window(now) {
            self.fair.charge(request.class, kept, request.len, now);
        }
        self.collect_wakes(now);
        self.totals.overdue += 1;
        self.class_counters(&request).overdue += 1;
    }
}
