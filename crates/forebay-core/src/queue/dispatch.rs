//! The way of a request to the disk, step by step. `docs/scheduler.md` has the steps as pseudo-code.
//!
//! 1. *Turn*: is this shard late? Overdue requests are given up.
//! 2. *Order*: the class that is next by start-time fair queueing, and its first request. Classes whose
//!    limit is used up are out of the order. A stream that has the head of the disk continues.
//! 3. *Price*: the cost of the request in disk time.
//! 4. *Peers*: shards that are behind go first, unless the disk would idle.
//! 5. *Budget*: the pace must be open, and the window must have room. A late shard may overdraw both by
//!    the disk time owed to it. Nested requests exceed the window at the pace.
//! 6. *Disk*: the request is charged to its class and dispatched. If none is, the queue states why,
//!    until when, and which shards to wake for the room that it leaves.
//!
//! Decision: `docs/decisions/0021-nested-requests.md`.

use super::IoQueue;
use super::peer_wait::Lagging;
use super::types::{Stop, demand};
use crate::budget::{ChargeContext, Demand, Refusal, Reservation};
use crate::discards::RETRY_NANOS as DISCARD_RETRY_NANOS;
use crate::peers::Lead;
use crate::published::PeerFilter;
use crate::requests::Ticket;
use crate::seek::Run;
use crate::shard_set::ShardId;
use crate::shared::Shared;
use crate::sync::{Ordering, get, set};
use crate::{Blocked, ClassId, DiskTime, Op, Time};

/// A shard may lead the others by this multiple of the unused disk time.
const LEAD_PER_UNUSED: u64 = 2;
/// A shard that is owed more than this many effective goals has been passed over. It goes first even if
/// the disk idles.
const SKIPPED_LEAD_GOALS: u64 = 2;
/// A shard asks for little if it takes less of an open budget than an effective goal divided by this.
const SMALL_ASK_PART: u64 = 8;
/// The time after which a request tries again to exceed the window, in nanoseconds (1 ms), if the rate
/// of the policy opens with completions and not with time.
const BYPASS_RETRY_NANOS: u64 = 1_000_000;

impl IoQueue {
    /// Returns the next request to start now, or `None` if none may be dispatched.
    ///
    /// The result can change after each other verb, with time (see
    /// [`poll_timeout`](Self::poll_timeout)), and when another shard frees room.
    /// [`poll_wake`](Self::poll_wake) of that shard then names this one.
    pub fn poll_dispatch(&mut self, now: Time) -> Option<Ticket> {
        if self.attendance.last_stop().is_some() {
            self.note_timer(now);
        }
        self.follow_changes(now);
        self.begin_turn(now);
        self.give_up_overdue(now);
        self.fair.unthrottle(now);
        match self.attempt(now) {
            Ok(ticket) => Some(ticket),
            Err(stop) => self.stop(now, stop),
        }
    }

    /// Ends the turn, unless room was freed in the meantime and a request is dispatched.
    #[inline(never)]
    fn stop(&mut self, now: Time, mut stop: Stop) -> Option<Ticket> {
        if self.waits_for_room(now, &stop)
            && self.self_wake_deadline() <= now
            && !self.nested_waits(now)
        {
            // too few completions of its own are due, so others must wake it
            self.shared.peers.wait_for_room(self.shard);
            if self.shared.budget.room_after_mark() {
                match self.attempt(now) {
                    Ok(ticket) => return Some(ticket),
                    Err(last) => stop = last,
                }
            }
        }
        self.end_turn(now, stop);
        None
    }

    // ---- 2. Order

    /// Tries once to dispatch a request.
    #[inline(always)]
    fn attempt(&mut self, now: Time) -> Result<Ticket, Stop> {
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

    /// The class that is next within its limits, and its first request. A discard has taken one of the
    /// places for discards in the disk.
    fn first_within_limits(&mut self, now: Time) -> Result<(u16, u32), Stop> {
        loop {
            let Some((class, index)) = self.fair.first(now) else {
                let resume_at = self.fair.throttled_until();
                let reason = if resume_at.is_some() { Blocked::ClassLimit } else { Blocked::Empty };
                return Err(Stop::new(reason, resume_at));
            };
            match self.fair.limited(class, now) {
                Some((node, until)) => {
                    let counters = self.report.classes.get_mut(ClassId::index_of(class));
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

    /// Takes a place for the first discard of `class`, because few discards may be in the disk at once.
    /// If all are taken, returns until when to leave the class out of the order, unless a discard ends
    /// earlier. Reads and writes of other classes do not wait for it.
    #[cold]
    fn enter_discards(&mut self, now: Time, class: u16) -> Result<(), Time> {
        let discards = &self.shared.discards;
        if self.fair.nested_waits_in(class) {
            // the owner of a nested request may hold the discards in the disk
            discards.enter_anyway();
            return Ok(());
        }
        if discards.enter(self.shard, now) {
            return Ok(());
        }
        Err(now.plus_nanos(DISCARD_RETRY_NANOS.saturating_add(self.shared.stagger_nanos())))
    }

    /// The next request of this queue's run, if it has one.
    #[inline(always)]
    fn first_of_run(&mut self, now: Time) -> Result<Option<(u16, u32)>, Stop> {
        match self.pricer.run() {
            None => Ok(None),
            Some(run) => self.next_of_run(now, run),
        }
    }

    #[cold]
    fn next_of_run(&mut self, now: Time, run: Run) -> Result<Option<(u16, u32)>, Stop> {
        if !self.shared.peers.alone() {
            self.refresh_stale_peers(now);
        }
        let held = self.pricer.head_held(now).filter(|held| held.shard == self.shard);
        let next = self.fair.first_of(run.class, now).filter(|&index| {
            self.pricer.is_of_run(index) && !self.requests.at(index).already_charged
        });
        match (held, next) {
            // until the run begins, every class has its turn
            (Some(_), Some(_)) if run.begins_by.is_some() => Ok(None),
            (Some(_), Some(index)) => Ok(Some((run.class, index))),
            (Some(held), None)
                if self.pricer.has_run_in_disk(run, |index| self.requests.is_in_disk(index)) =>
            {
                Err(Stop::ahead_until(held.until))
            }
            _ => {
                self.end_run(now);
                Ok(None)
            }
        }
    }

    fn end_run(&mut self, now: Time) {
        self.pricer.end_run();
        self.shared.head.run.take_waiting(&self.shared.peers, now, &mut self.wakeups.list);
    }

    /// Steps 3 to 6 for one request.
    #[inline(always)]
    fn attempt_first(&mut self, now: Time, class: u16, index: u32) -> Result<Ticket, Stop> {
        self.price(now, index);
        let request = *self.requests.at(index);
        if !self.pricer.is_of_run(index) {
            self.wait_for_run(now, class)?;
            self.check_lead(class, request.cost, now)?;
        }
        if self.pricer.seeks() {
            self.enter_run(now, class, index)?;
        }
        let mut demand = demand(&request);
        if self.pricer.is_of_run(index) {
            // the pace counts what the disk does; the class may be charged a seek in addition
            demand.paced = self.pricer.time_of_head(index, request.op, request.len);
        }
        self.check_reserve(class, &mut demand, now);
        let nearly_idle = match self.reserve(now, class, &demand) {
            Reservation::Granted { nearly_idle } => nearly_idle,
            Reservation::Refused(refusal) => {
                self.go_refused(now, (class, index), &demand, refusal)?;
                false
            }
            Reservation::LostRace => {
                self.collect_wakes(now);
                return Err(Stop::new(Blocked::Pace, Some(now)));
            }
        };
        let ticket = self.dispatch(now, class, index, nearly_idle);
        self.go_on(now);
        Ok(ticket)
    }

    /// Dispatches a request that the budget refuses if it may overdraw or exceed the window. Otherwise
    /// returns why not, and until when.
    #[inline(never)]
    fn go_refused(
        &mut self,
        now: Time,
        (class, index): (u16, u32),
        demand: &Demand,
        refusal: Refusal,
    ) -> Result<(), Stop> {
        if self.overdraws(now, class, demand) {
            return Ok(());
        }
        match refusal {
            Refusal::Pace(open_at) => Err(self.stop_by_pace(now, class, index, open_at)),
            Refusal::Window if self.may_bypass_window(now) => {
                self.bypass_window(now, class, index, demand)
            }
            Refusal::Window => {
                set(&self.shared.peers[self.shard].wanted, demand.cost.units());
                let resume_at = self.latest_resume(now).min(self.next_refresh(now));
                Err(Stop::new(Blocked::Window, Some(resume_at)))
            }
        }
    }

    // ---- 3. Price

    /// Prices a request again before it is dispatched, if its position matters on this disk.
    #[inline(always)]
    pub(super) fn price(&mut self, now: Time, index: u32) {
        if !self.pricer.seeks() || self.requests.at(index).already_charged {
            return;
        }
        let request = self.requests.at(index);
        let class = &self.report.classes[ClassId::index_of(request.class)];
        let class_requests = u64::from(class.queued) + u64::from(class.in_disk);
        let window = self.shared.budget.two_goals();
        let is_in_disk = |index| self.requests.is_in_disk(index);
        let cost = self.pricer.price(now, (index, request), (class_requests, window), is_in_disk);
        self.requests.at_mut(index).cost = cost;
    }

    /// Stops while a stream of another shard has the head. While that stream still waits for the head,
    /// only requests that precede it in the order are dispatched.
    #[inline(always)]
    fn wait_for_run(&mut self, now: Time, class: u16) -> Result<(), Stop> {
        match self.pricer.head_held(now) {
            None => Ok(()),
            Some(_) => self.wait_for_run_of_others(now, class),
        }
    }

    #[cold]
    fn wait_for_run_of_others(&mut self, now: Time, class: u16) -> Result<(), Stop> {
        self.shared.head.run.wait(self.shard);
        // the run may have ended in between
        match self.pricer.head_held(now) {
            Some(held)
                if held.shard != self.shard
                    && (held.has_begun || self.lead(class, now).units > 0) =>
            {
                Err(Stop::ahead_until(held.until))
            }
            _ => Ok(()),
        }
    }

    /// Gives the head to a stream that is next, if more of its requests wait. The stream then waits
    /// until the head is there.
    #[cold]
    fn enter_run(&mut self, now: Time, class: u16, index: u32) -> Result<(), Stop> {
        let budget = &self.shared.budget;
        let begins = !self.requests.at(index).already_charged
            && budget.counts_disk_time()
            && !self.fair.has_turns()
            && self.pricer.is_worth_a_run(now, index, self.requests.after(index));
        if begins {
            // shards that are behind go first, unless the disk idles and the budget is unused
            let lead = self.lead(class, now);
            let is_busy = budget.in_flight() > DiskTime::ZERO;
            let is_wasted = budget.unused(now, DiskTime::ZERO) >= self.idle_budget_threshold();
            if lead.units > 0 && (is_busy || !is_wasted) {
                let retry_at = now.plus_nanos(self.shared.tick_nanos);
                return Err(self.stop_for(&lead, retry_at, now));
            }
            let window = self.shared.budget.two_goals();
            self.pricer.begin_run(now, class, index, window);
        }
        let in_flight = self.shared.budget.in_flight();
        match self.pricer.waits_for_head(now, index, in_flight) {
            Some(begins_by) => Err(Stop::ahead_until(begins_by)),
            None => Ok(()),
        }
    }

    /// A request has completed on a disk that seeks. A run of another shard may wait for that.
    #[cold]
    pub(super) fn wake_run(&mut self, now: Time) {
        if let Some(held) = self.pricer.head_held(now)
            && held.shard != self.shard
            && self.pricer.disk_has_one(self.shared.budget.in_flight())
        {
            self.shared.peers[held.shard].promise(now);
            self.wakeups.list.push(held.shard);
        }
    }

    // ---- 4. Peers

    /// Lets shards that are behind go first, unless the disk would idle.
    #[inline(always)]
    pub(super) fn check_lead(&mut self, class: u16, cost: DiskTime, now: Time) -> Result<(), Stop> {
        if self.shared.peers.alone() {
            return Ok(());
        }
        self.check_lead_of_peers(class, cost, now)
    }

    fn check_lead_of_peers(&mut self, class: u16, cost: DiskTime, now: Time) -> Result<(), Stop> {
        self.refresh_stale_peers(now);
        let unused = self.shared.budget.unused(now, self.peer_wait.uncounted());
        let idle_budget = self.idle_budget_threshold();
        let anyone_waits = || self.shared.peers.anyone_waits(now, self.shared.tick_nanos);
        if unused == DiskTime::ZERO || unused >= idle_budget && !anyone_waits() {
            self.peer_wait.end();
            return Ok(());
        }
        loop {
            let lead = self.lead(class, now);
            let needed = DiskTime::from_units(lead.units / LEAD_PER_UNUSED).min(idle_budget);
            let is_skipped = self.skips_lead(&lead);
            if unused >= needed && !is_skipped || self.goes_ahead(class, &lead) {
                self.peer_wait.end();
                return Ok(());
            }
            let small = DiskTime::from_units(self.effective_goal().units() / SMALL_ASK_PART);
            let enough = if is_skipped { DiskTime::ZERO } else { cost.min(small) };
            let waits_until = self.waits_until(lead.lagging_shard, enough, now);
            if waits_until <= now {
                if self.has_polled_since_wait(lead.lagging_shard) {
                    // it has found no room, because late shards hold it
                    return Ok(());
                }
                self.shared.peers[lead.lagging_shard].stop_waiting();
                // the window no longer counts what it holds
                self.peer_wait.refresh_at_once();
                self.refresh_stale_peers(now);
                continue;
            }
            let at = self.shared.budget.unused_at(now, needed);
            if at > now && !is_skipped {
                // until then, all shards that are behind have their turn
                let turn = DiskTime::from_units(lead.units_of_all).min(idle_budget).max(needed);
                let resume_at = self.shared.budget.unused_at(now, turn).max(at).min(waits_until);
                return Err(Stop::ahead_until(resume_at));
            }
            if self.nested_waits(now) && !is_skipped {
                // the window binds no shard now, so those behind need only their turn
                return Ok(());
            }
            let retry_at = waits_until.plus_nanos(self.shared.stagger_nanos());
            return Err(self.stop_for(&lead, retry_at, now));
        }
    }

    /// Stops for the shard that is behind, and wakes it. The pace is open and the window has room,
    /// which that shard may not know.
    fn stop_for(&mut self, lead: &Lead, retry_at: Time, now: Time) -> Stop {
        let Shared { budget, peers, .. } = &*self.shared;
        let (other, spent) = (lead.lagging_shard, budget.spent());
        let token = spent.unwrap_or_else(|| {
            // changes with each dispatch and each completion; only those of third shards may cancel out
            let totals = &self.report.totals;
            let here = totals.dispatched.wrapping_add(totals.completed);
            let there = get(&peers[other].dispatched);
            budget.in_flight().units().wrapping_add(here).wrapping_add(there)
        });
        if self.peer_wait.wakes(other, token) && (spent.is_none() || peers.expect(other, now)) {
            self.wakeups.list.push(other);
        }
        Stop::ahead_until(self.latest_resume(now).min(retry_at))
    }

    /// Whether a prompt shard is so far behind that it goes first even if the disk idles. Otherwise a
    /// shard that completes a request of several goals would find the whole budget unused. It would
    /// take all of it again before the others are awake.
    fn skips_lead(&self, lead: &Lead) -> bool {
        let goals = self.effective_goal().units().saturating_mul(SKIPPED_LEAD_GOALS);
        lead.units > goals
            && !self.shared.peers[lead.lagging_shard].is_late()
            && (self.shared.budget.spent().is_some() || self.fair.has_turns())
    }

    /// Whether a late shard does not wait for the shard behind. Waiting for a lead of at most one goal
    /// gains nothing: the others have the time until its next turn. A late shard that is owed a goal
    /// does not wait for another late one either, because it keeps at most 3.5 goals of credit.
    /// Otherwise late shards with turns one after another would each let the next one go first.
    fn goes_ahead(&self, class: u16, lead: &Lead) -> bool {
        let goal = self.effective_goal().units();
        self.attendance.is_late()
            && (lead.units <= goal
                || self.shared.peers[lead.lagging_shard].is_late() && self.fair.owed(class) >= goal)
    }

    /// Until when this shard waits for `other`, which is behind, while the budget is open.
    fn waits_until(&mut self, other: ShardId, enough: DiskTime, now: Time) -> Time {
        let Shared { budget, peers, tick_nanos, .. } = &*self.shared;
        let Some(spent) = budget.spent() else { return Time::MAX };
        let waited_for_rate =
            matches!(self.attendance.blocked(), Some(Blocked::Pace | Blocked::PaceDiskIdle));
        let open_since = if waited_for_rate { budget.unused_since(now) } else { now };
        let lagging = Lagging {
            shard: other,
            dispatched: get(&peers[other].dispatched),
            polled_at: peers[other].polled_at(),
            is_late: peers[other].is_late(),
            polls_by: peers[other].promised(),
        };
        self.peer_wait.until(now, lagging, (enough, spent), (open_since, *tick_nanos))
    }

    /// Whether `other` has polled while this shard waited for it.
    fn has_polled_since_wait(&self, other: ShardId) -> bool {
        let peers = &self.shared.peers;
        self.peer_wait.since().is_some_and(|since| peers[other].polled_at() > since)
    }

    // ---- 5. Budget

    /// Denies the reserve for fresh requests to a shard that passes others over.
    #[inline(always)]
    pub(super) fn check_reserve(&mut self, class: u16, demand: &mut Demand, now: Time) {
        if demand.fresh && !self.shared.peers.alone() {
            demand.fresh = self.may_use_reserve(class, now);
        }
    }

    fn may_use_reserve(&self, class: u16, now: Time) -> bool {
        let budget = &self.shared.budget;
        !budget.reserves_for_fresh()
            || budget.has_room()
            || !self.skips_lead(&self.lead(class, now))
    }

    /// Takes the budget for `demand`. A full window does not count what other shards hold without
    /// polling. The disk has done most of that long ago, but the completions have not been taken yet.
    #[inline(always)]
    pub(super) fn reserve(&mut self, now: Time, class: u16, demand: &Demand) -> Reservation {
        let context = self.charge_context();
        match self.shared.budget.try_reserve(now, demand, context, DiskTime::ZERO) {
            Reservation::Refused(Refusal::Window) => self.reserve_beyond_window(now, class, demand),
            reservation => reservation,
        }
    }

    #[inline]
    fn charge_context(&self) -> ChargeContext<'_> {
        ChargeContext { flow: self.report.flow(), passed: self.attendance.missed_pace_credit() }
    }

    #[cold]
    fn reserve_beyond_window(&mut self, now: Time, class: u16, demand: &Demand) -> Reservation {
        let bridge = self.bridge(class, now);
        let uncounted = match bridge {
            DiskTime::ZERO if self.attendance.is_late() => DiskTime::ZERO,
            DiskTime::ZERO => self.peer_wait.uncounted(),
            bridge => bridge,
        };
        if uncounted == DiskTime::ZERO {
            return Reservation::Refused(Refusal::Window);
        }
        let context = self.charge_context();
        let reservation = self.shared.budget.try_reserve(now, demand, context, uncounted);
        let bridges = bridge > DiskTime::ZERO && matches!(reservation, Reservation::Granted { .. });
        self.report.totals.absence_bypasses += u64::from(bridges);
        reservation
    }

    /// Whether a late shard dispatches a request although the budget is closed. Others have used the
    /// disk time owed to it. `Budget::overdraft_max` limits the excess in a turn.
    fn overdraws(&mut self, now: Time, class: u16, demand: &Demand) -> bool {
        let Shared { budget, peers, .. } = &*self.shared;
        let most = || budget.overdraft_max(peers.late_shards());
        if !self.attendance.may_overdraw(most) || peers.alone() {
            return false;
        }
        // The window does not bind a shard with nothing in the disk, or it might never have a turn. Nor
        // does it bind while nested requests wait. If some have exceeded it since the last turn, one
        // request goes in each turn, because they may keep a slow disk full.
        let nested_bypasses = self.shared.nested_bypasses.load(Ordering::Relaxed);
        let window_binds = self.report.totals.in_disk > 0
            && !self.attendance.was_bypassed(nested_bypasses)
            && !self.nested_waits(now);
        let prompt = PeerFilter::PromptWithin { now, nanos: self.shared.tick_nanos };
        let overdraws = self.fair.owed(class) > 0
            && self.fair.lead(class, self.report.totals.dispatched, prompt).units == 0
            && self.shared.budget.try_overdraw(now, demand, window_binds);
        if overdraws {
            self.attendance.overdraw(demand.cost);
        }
        overdraws
    }

    /// Steps 4 and 5 while the window is full but binds no shard. Nested requests, and those that
    /// precede them in the order, are dispatched at the pace.
    #[cold]
    fn bypass_window(
        &mut self,
        now: Time,
        class: u16,
        index: u32,
        demand: &Demand,
    ) -> Result<(), Stop> {
        if !self.pricer.is_of_run(index) {
            self.check_lead_of_pace(class, now)?;
        }
        match self.shared.budget.reserve_bypass(now, demand) {
            Ok(()) => {
                if self.nested_waits(now) {
                    self.shared.nested_bypasses.fetch_add(1, Ordering::Relaxed);
                }
                let totals = &mut self.report.totals;
                totals.window_bypasses += 1;
                totals.window_bypass_consumption =
                    totals.window_bypass_consumption.plus(demand.cost);
                Ok(())
            }
            Err(Some(open_at)) => Err(self.stop_by_pace(now, class, index, open_at)),
            Err(None) => {
                let resume_at = now.plus_nanos(BYPASS_RETRY_NANOS);
                Err(Stop::new(Blocked::Window, Some(resume_at)))
            }
        }
    }

    /// Lets shards that are behind go first, until the pace has left enough unused for their turn.
    fn check_lead_of_pace(&mut self, class: u16, now: Time) -> Result<(), Stop> {
        if self.shared.peers.alone() {
            return Ok(());
        }
        let lead = self.lead(class, now);
        if self.skips_lead(&lead) {
            // on a disk slower than its model, the pace is always open
            let waits_until = self.waits_until(lead.lagging_shard, DiskTime::ZERO, now);
            if waits_until > now {
                return Err(self.stop_for(&lead, waits_until, now));
            }
            self.shared.peers[lead.lagging_shard].stop_waiting();
        }
        let budget = &self.shared.budget;
        let needed = DiskTime::from_units(lead.units / LEAD_PER_UNUSED);
        let needed = needed.min(self.idle_budget_threshold());
        let unused = budget.unused_of_rate(now);
        if unused == DiskTime::ZERO || unused >= needed {
            return Ok(());
        }
        Err(Stop::ahead_until(budget.unused_at(now, needed)))
    }

    // ---- 6. Disk

    /// Removes a request from the order, charges it to its class, and dispatches it.
    #[inline(always)]
    fn dispatch(&mut self, now: Time, class: u16, index: u32, nearly_idle: bool) -> Ticket {
        if self.pricer.is_of_run(index) {
            self.pop_of_run(now, class, index);
        } else {
            self.fair.pop(&mut self.requests, class, index, now);
        }
        self.peer_wait.is_not_full();
        let request = self.enter_disk(now, index, nearly_idle);
        let charged = if request.already_charged { DiskTime::ZERO } else { request.cost };
        let waited = now.nanos_since(request.enqueued_at);
        self.report.class_of(&request).dispatched(now, waited, request.len, charged);
        request.ticket(index)
    }

    #[cold]
    fn pop_of_run(&mut self, now: Time, class: u16, index: u32) {
        self.fair.pop_out_of_turn(&mut self.requests, class, index, now);
        if self.pricer.count_in_run(index, self.requests.at(index)) {
            self.end_run(now);
        }
    }
}
