//! Shards that are behind go first: whether this one waits for them, and how long.

use super::IoQueue;
use super::stop::{Stop, Wait};
use crate::budget::Demand;
use crate::peers::{Lead, PeerFilter};
use crate::shard_id::ShardId;
use crate::shared::Shared;
use crate::{Blocked, DiskTime, Time};

/// A shard may lead the others by this many times the disk time that lies
/// unused.
pub(super) const LEAD_PER_UNUSED: u64 = 2;
/// It may lead by anything once these parts of an effective goal lie unused: (3, 4).
const IDLE_BUDGET: (u64, u64) = (3, 4);
/// Who is owed more than so many goals has been passed over: two goals are what
/// shards may lead by where the budget is scarce.
const PASSED_OVER_GOALS: u64 = 2;
/// Less than this part of an effective goal is little.
const SMALL_ASK_PART: u64 = 8;

impl IoQueue {
    /// Shards that are behind go first, unless the disk would idle for it.
    // on the way of each request; a lone shard leads nobody
    #[inline(always)]
    pub(super) fn check_lead(&mut self, class: u16, cost: DiskTime, now: Time) -> Result<(), Stop> {
        if self.shared.peers.alone() {
            return Ok(());
        }
        self.check_lead_of_peers(class, cost, now)
    }

    /// What fresh requests find beyond a full window is not for a shard that passes others over.
    #[inline]
    pub(super) fn check_reserve(&mut self, class: u16, ask: &mut Demand, now: Time) {
        let budget = &self.shared.budget;
        if ask.fresh
            && budget.reserves_for_fresh()
            && !self.shared.peers.alone()
            && !budget.has_room()
        {
            ask.fresh = !self.passes_over(&self.lead(class, now));
        }
    }

    /// [`check_lead`](Self::check_lead) beside other shards.
    fn check_lead_of_peers(&mut self, class: u16, cost: DiskTime, now: Time) -> Result<(), Stop> {
        self.refresh_stale_peers(now);
        let unused = self.shared.budget.unused(now, self.uncounted(now));
        let wasted = self.idle_budget_threshold();
        let anyone_waits = || self.shared.peers.anyone_waits(now, self.shared.tick_nanos);
        if unused == DiskTime::ZERO || unused.units() >= wasted && !anyone_waits() {
            self.waits_since = None;
            return Ok(());
        }
        loop {
            let lead = self.lead(class, now);
            let needed = DiskTime::from_units((lead.units / LEAD_PER_UNUSED).min(wasted));
            let passed_over = self.passes_over(&lead);
            if unused >= needed && !passed_over || self.goes_ahead(class, &lead) {
                self.waits_since = None;
                return Ok(());
            }
            let enough =
                if passed_over { DiskTime::ZERO } else { cost.min(self.small_ask_threshold()) };
            let waits_until = self.waits_until(lead.lagging_shard, enough, now);
            if waits_until <= now {
                if self.has_polled_meanwhile(lead.lagging_shard) {
                    // it found no room, for that lies among what late shards hold
                    return Ok(());
                }
                self.shared.peers.stop_waiting_for(lead.lagging_shard);
                // what it holds does not count any more
                self.refresh_stale_peers_at_once(now);
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
            if self.nested_waits(now) && !passed_over {
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
        let spent = self.shared.budget.spent();
        // once for what has been spent, or two that wait for each other would
        // wake each other until the time is over
        let woken = Some((
            spent.unwrap_or_else(|| self.uncounted_spent(lead.lagging_shard)),
            lead.lagging_shard,
        ));
        let again = self.woken_for == woken;
        if !again && (spent.is_none() || self.shared.peers.expect(lead.lagging_shard, now)) {
            self.wakes.push(lead.lagging_shard);
        }
        self.woken_for = woken;
        let resume_at = Some(self.latest_resume(now).min(looks_at));
        Stop { reason: Blocked::FairnessLead, resume_at }
    }

    /// Stands for what has been spent where the policy does not count that: it
    /// changes when something goes to the disk or comes back, here, at `other`,
    /// or elsewhere unless both happen there.
    fn uncounted_spent(&self, other: ShardId) -> u64 {
        let Shared { budget, peers, .. } = &*self.shared;
        let here = self.totals.dispatched.wrapping_add(self.totals.completed);
        budget.in_flight().units().wrapping_add(here).wrapping_add(peers.dispatched(other))
    }

    /// Whether a shard that turns in time is so far behind that it goes first
    /// even where the disk has nothing to do: one that completes a request of
    /// several goals, and finds all of the budget unused, would else take it
    /// again each time before the others are awake.
    pub(super) fn passes_over(&self, lead: &Lead) -> bool {
        let goals = self.shared.budget.effective_goal().units().saturating_mul(PASSED_OVER_GOALS);
        lead.units > goals
            && !self.shared.peers.is_late(lead.lagging_shard)
            && (self.shared.budget.spent().is_some() || self.fair.has_turns())
    }

    /// A late shard gains nothing by waiting: those behind have all the time until its next turn.
    /// A late shard keeps at most two goals of what it is owed. So one that is owed a goal does not
    /// wait for another late shard, however far behind that is. If it did, late shards with turns
    /// one after another would each let the next one go first.
    fn goes_ahead(&self, class: u16, lead: &Lead) -> bool {
        let goal = self.shared.budget.effective_goal().units();
        self.lateness.is_late()
            && (lead.units <= goal
                || self.shared.peers.is_late(lead.lagging_shard) && self.fair.owed(class) >= goal)
    }

    /// Until when this shard waits for `other`, which is behind, while the budget
    /// is open: for a tick. The tick begins when the budget was found open with
    /// nothing taken of it since, or when `other` has promised to look if that is
    /// later. A promise beyond `now` counts as `now`, since `other` is woken then;
    /// that of a shard that turned late does not count.
    ///
    /// If `other` was waited for before and has taken less than `enough` since,
    /// the end stays as it was: a shard that asks for little would otherwise be
    /// waited for again after each little that it takes.
    pub(super) fn waits_until(&mut self, other: ShardId, enough: DiskTime, now: Time) -> Time {
        let Some(spent) = self.shared.budget.spent() else { return Time::MAX };
        let peers = &self.shared.peers;
        let dispatched = peers.dispatched(other);
        let since = match self.waits_since {
            Some(wait) if wait.spent == spent => wait.since,
            Some(wait) if wait.has_used_less(other, dispatched, enough) => return wait.until,
            _ if self.waited_for_rate() => self.shared.budget.unused_since(now),
            _ => now,
        };
        let looks_at = if peers.is_late(other) { since } else { peers.alarm(other).min(now) };
        let until = since.max(looks_at).plus_nanos(self.shared.tick_nanos);
        self.waits_since = Some(Wait { since, until, spent, other, dispatched });
        until
    }

    /// Whether `other` has polled while this shard waited for it.
    fn has_polled_meanwhile(&self, other: ShardId) -> bool {
        let peers = &self.shared.peers;
        self.waits_since.is_some_and(|wait| peers.has_polled_after(other, wait.since))
    }

    fn waited_for_rate(&self) -> bool {
        matches!(self.blocked(), Some(Blocked::Pace | Blocked::PaceDiskIdle))
    }

    pub(super) fn lead(&self, class: u16, now: Time) -> Lead {
        if self.shared.peers.alone() {
            return Lead::none(self.shard);
        }
        let met = PeerFilter::Live { now, patience: self.shared.patience() };
        self.fair.lead(class, self.totals.dispatched, met)
    }

    /// With so much of the budget unused the disk is about to idle, and
    /// nobody waits for anybody.
    pub(super) fn idle_budget_threshold(&self) -> u64 {
        self.shared.budget.effective_goal().units() / IDLE_BUDGET.1 * IDLE_BUDGET.0
    }

    /// Who takes less of an open budget asks for little.
    fn small_ask_threshold(&self) -> DiskTime {
        DiskTime::from_units(self.shared.budget.effective_goal().units() / SMALL_ASK_PART)
    }
}
