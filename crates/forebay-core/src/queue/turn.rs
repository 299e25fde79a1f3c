//! How a turn begins and ends: late shards, overdue requests, what other shards learn, and the time of
//! the next poll.
//!
//! Decision: `docs/decisions/0017-bridged-absences.md`.

use super::attendance::{BRIDGED_NANOS, TurnFacts};
use super::report::DiskNanos;
use super::types::{COST_UNCHECKED_LEN, REQUEST_COST_MAX, Stop, demand};
use super::{EnqueueError, IoQueue};
use crate::budget::{GivenUp, Overdue, RoomShare, Threshold};
use crate::peers::Lead;
use crate::published::{PeerCheck, PeerFilter, PollRecord};
use crate::requests::{Request, State, Ticket};
use crate::shared::Shared;
use crate::sync::{Ordering, set};
use crate::{Access, Blocked, ClassId, DiskTime, Op, Time};

/// The longest time after which a queue that others block polls again, in nanoseconds (100 ms). It is
/// the last resort after a lost wake-up.
const BLOCKED_NANOS_MAX: u64 = 100_000_000;

/// On a lone shard, backlogged requests are dispatched together once this fraction of an effective goal
/// is unused.
const COALESCE_SINGLE_SHARD: (u64, u64) = (3, 4);
/// The same fraction of an effective goal where there are other shards. It is smaller, so that less
/// budget is unused when they poll.
const COALESCE_SHARED: (u64, u64) = (1, 2);

/// Once this fraction of an effective goal is unused, a shard may lead others by any amount, because
/// the disk is about to idle.
const IDLE_BUDGET: (u64, u64) = (3, 4);

impl IoQueue {
    /// Adds a request of `class` to the table, in no list yet. If the table is full, the request that
    /// was given up first is forgotten if that was long ago. Its ticket is then void.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        now: Time,
        class: ClassId,
        access: Access,
        len: u64,
        nested: bool,
    ) -> Result<Ticket, EnqueueError> {
        let Access { op, .. } = access;
        let (node, cost) = (class.node(), self.pricer.access_cost(&access, len));
        if len > COST_UNCHECKED_LEN && cost > REQUEST_COST_MAX {
            return Err(EnqueueError::TooCostly { op, len });
        }
        if !self.requests.has_room() {
            self.forget_given_up(now);
        }
        let inserted = self.requests.insert(now, node, op, len, cost, nested);
        let ticket = inserted.ok_or(EnqueueError::Full)?;
        self.pricer.note_place(ticket.slot(), access, len);
        Ok(ticket)
    }

    #[cold]
    fn forget_given_up(&mut self, now: Time) {
        let Some(oldest) = self.in_disk.forget(&mut self.requests, now) else { return };
        let request = *self.requests.at(oldest);
        self.requests.remove(oldest);
        self.report.left_disk();
        self.report.class_of(&request).leave_disk(request.len);
    }

    /// Moves a request to the disk, for which the budget was reserved. Returns a copy of it.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn enter_disk(&mut self, now: Time, index: u32, nearly_idle: bool) -> Request {
        let request = self.requests.at_mut(index);
        debug_assert!(
            matches!(request.state, State::Queued | State::Parked),
            "only what waits goes to the disk"
        );
        request.state = State::InDisk;
        request.dispatched_at = now;
        request.nearly_idle = nearly_idle;
        if !self.shared.peers.alone() {
            let latency_nanos = self.shared.budget.base_latency().as_nanos_ceil();
            let in_flight = self.shared.budget.in_flight();
            let done_at = self.shared.peers.disk_clock.dispatch(now, request.cost, in_flight);
            request.due_at = done_at.plus_nanos(latency_nanos);
        }
        let request = *request;
        let Request { cost, class, op, len, already_charged, .. } = request;
        self.in_disk.enter(&mut self.requests, index, cost);
        self.pricer.enter_disk(now, index, op);
        self.report.entered_disk((!already_charged).then_some(cost));
        if !already_charged {
            let bytes = if op == Op::Discard { 0 } else { len };
            self.fair.charge_limits(class, now, bytes);
            let budget = &self.shared.budget;
            if let Some(mix) = self.report.count_in_mix(now, op, cost, || budget.window()) {
                budget.note_mix(now, mix);
            }
        }
        if op == Op::Discard {
            self.shared.discards.stop_waiting(self.shard);
        }
        request
    }

    /// Removes a request from the window. If it was a discard, another may go: the shard that has
    /// waited for longest is woken.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn leave_window(&mut self, now: Time, index: u32, request: &Request) {
        self.give_back(index, request);
        if request.op == Op::Discard {
            self.wake_next_discard(now);
        }
    }

    /// Returns the room that a request takes.
    #[inline(always)]
    pub(super) fn give_back(&mut self, index: u32, request: &Request) {
        if request.op == Op::Discard {
            self.shared.discards.leave();
        }
        self.in_disk.leave(&mut self.requests, index, request.cost);
        self.shared.budget.leave(&demand(request));
    }

    /// Reports to the group what a completed request shows about the disk.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn report_completion(
        &mut self,
        now: Time,
        request: &Request,
        done: bool,
        took: DiskNanos,
    ) {
        let budget = &self.shared.budget;
        let threshold = budget.threshold_of_load(request.dispatched_at).filter(|_| done);
        let counted = threshold.and_then(|threshold| {
            let nanos = self.targeted_nanos(now, request, threshold, took)?;
            Some((threshold, nanos))
        });
        if let Some(sample) = self.report.sample(now, request, counted) {
            self.shared.budget.report(now, sample);
        }
        if self.shared.budget.searches_knee()
            && let Some(sample) = self.report.sample_window(now, request, done)
        {
            self.shared.budget.report_to_knee(now, sample);
        }
    }

    /// The time of a request to compare with the latency target, in nanoseconds. A target for the disk
    /// compares the time in the disk, any other the time since enqueueing. `None` if the request does
    /// not count.
    fn targeted_nanos(
        &mut self,
        now: Time,
        request: &Request,
        threshold: Threshold,
        took: DiskNanos,
    ) -> Option<u64> {
        if !threshold.in_disk {
            let class = self.report.class_of(request);
            return (!class.waits_for_itself()).then(|| now.nanos_since(request.enqueued_at));
        }
        let was_away = self.attendance.was_preempted(now, took.gap);
        let counts = took.is_known || threshold.is_conclusive(took.least, took.most, was_away);
        counts.then_some(took.most)
    }

    pub(super) fn turn_facts(&self, now: Time) -> TurnFacts {
        let Shared { budget, peers, .. } = &*self.shared;
        let (patience_nanos, has_peers) = (self.shared.patience(), !peers.alone());
        TurnFacts {
            now,
            effective_goal: budget.effective_goal(),
            in_flight: budget.in_flight(),
            held: self.in_disk.held(),
            patience_nanos,
            service_horizon_nanos: budget.service_horizon_nanos(),
            tick_nanos: self.shared.tick_nanos,
            has_peers,
            is_live: !has_peers || peers[self.shard].is_live(now, patience_nanos),
            is_late_again: has_peers
                && peers.is_late_again(self.shard, now, self.shared.tick_nanos),
        }
    }

    /// Determines whether the turn that begins is late. A late shard keeps the disk time owed to it for
    /// its absence, up to its credit.
    #[inline]
    pub(super) fn begin_turn(&mut self, now: Time) {
        if self.attendance.last_stop().is_some() {
            self.begin_stopped_turn(now);
        }
    }

    #[inline(never)]
    fn begin_stopped_turn(&mut self, now: Time) {
        let facts = self.turn_facts(now);
        // holders of permits may compute meanwhile: no thread is absent from this queue
        if !self.in_disk.is_of_permits && self.attendance.note_absence(&facts) {
            set(&self.shared.peers[self.shard].away_at, now.as_nanos());
        }
        if self.attendance.begin_turn(&facts) {
            let patience_nanos = self.shared.budget.patience_nanos(now);
            self.report.late_turn(self.attendance.late_nanos(&facts, patience_nanos));
        }
        if self.attendance.is_late() {
            self.fair.catch_up();
        }
    }

    /// Applies changes of classes, and then wakes all shards that wait for room. A queue that leaves
    /// counts as a change, so shards that waited for its room are woken too.
    #[inline]
    pub(super) fn follow_changes(&mut self, now: Time) {
        if self.fair.follow_changes() {
            self.shared.peers.take_waiting_for_room(now, &mut self.wakeups.list);
        }
    }

    /// Gives up requests that the disk has kept for too long: the window no longer counts them.
    #[inline]
    pub(super) fn give_up_overdue(&mut self, now: Time) {
        let polled_at = self.attendance.poll(now);
        if self.in_disk.may_be_overdue(&self.requests, now) {
            self.give_up_those_overdue(now, polled_at);
        }
    }

    #[cold]
    fn give_up_those_overdue(&mut self, now: Time, polled_at: Time) {
        while let Some(oldest) = self.in_disk.oldest() {
            let Request { dispatched_at, cost, .. } = *self.requests.at(oldest);
            if !Overdue::is_possible(now.nanos_since(dispatched_at))
                || self.attendance.is_in_grace(now)
            {
                return;
            }
            let budget = &self.shared.budget;
            let overdue_at = dispatched_at.plus_nanos(budget.patience_nanos(now));
            if now < overdue_at {
                return;
            }
            if !budget.overdue.hangs(now)
                && let Some(until) = self.attendance.grace(now, polled_at, overdue_at)
            {
                self.in_disk.give_up_after = until;
                return;
            }
            let is_permit = self.in_disk.is_of_permits;
            match budget.give_up(now, GivenUp { dispatched_at, cost, is_permit }) {
                Ok(kept) => self.give_up(now, oldest, kept),
                Err(retry) => {
                    self.in_disk.give_up_after = retry;
                    return;
                }
            }
        }
    }

    fn give_up(&mut self, now: Time, index: u32, kept: DiskTime) {
        let request = *self.requests.at(index);
        self.leave_window(now, index, &request);
        self.in_disk.give_up(&mut self.requests, index);
        self.pricer.end_flush(index, request.op);
        // while the window binds no shard, the request has kept no room from others
        if kept > DiskTime::ZERO && !self.may_bypass_window(now) {
            self.fair.charge(request.class, kept, request.len, now);
        }
        self.collect_wakes(now);
        self.report.totals.overdue += 1;
        self.report.class_of(&request).overdue += 1;
    }

    /// Counts the time since the last stop for its reason.
    #[inline]
    fn count_stopped(&mut self, now: Time) {
        if let Some((last, since)) = self.attendance.take_stop() {
            self.report.blocked(last.reason, now.nanos_since(since));
        }
    }

    /// A request was dispatched. Promises the other shards to poll again at once.
    #[inline]
    pub(super) fn go_on(&mut self, now: Time) {
        self.count_stopped(now);
        if !self.shared.peers.alone() {
            self.shared.peers[self.shard].promise(now);
        }
    }

    /// Ends a turn when nothing more can be dispatched, and publishes what the queue leaves.
    #[inline(never)]
    pub(super) fn end_turn(&mut self, now: Time, stop: Stop) {
        self.report_nested(now);
        self.count_stopped(now);
        if !self.shared.peers.alone() {
            self.shared.peers[self.shard].promise(self.promised(now, stop));
            self.fair.publish_owed();
        }
        if matches!(stop.reason, Blocked::Window | Blocked::Pace | Blocked::PaceDiskIdle) {
            self.shared.budget.refused(now);
        }
        self.leave_turn(now, stop);
    }

    /// Lets shards that wait for room have what this turn leaves, and records its end.
    pub(super) fn leave_turn(&mut self, now: Time, stop: Stop) {
        if !self.shared.peers.alone() {
            self.wake_window_waiters(now, stop.reason);
            self.publish_held(now);
        }
        let bypasses = self.shared.nested_bypasses.load(Ordering::Relaxed);
        self.attendance.end_turn(now, stop, !self.in_disk.is_empty(), bypasses);
        self.report.update_flow(now, self.effective_goal());
    }

    /// The time by which this shard promises to poll again.
    fn promised(&self, now: Time, stop: Stop) -> Time {
        match stop {
            Stop { reason: Blocked::Empty | Blocked::ClassLimit, .. } => Time::MAX,
            // it sleeps until another shard wakes it, which sets a new promise
            Stop { resume_at: Some(at), .. } if self.self_wake_deadline() <= now => at,
            Stop { resume_at, .. } => {
                let drained = now.plus_nanos(self.shared.budget.window().as_nanos_ceil());
                resume_at.map_or(drained, |at| at.min(drained))
            }
        }
    }

    /// Publishes what this queue leaves in the disk.
    fn publish_held(&self, now: Time) {
        let (peers, is_late) = (&self.shared.peers, self.attendance.is_late());
        // a permit may be held during computation, which says nothing about the disk
        if !is_late
            && self.attendance.has_reaped()
            && !self.in_disk.is_of_permits
            && let Some(lag_nanos) = self.in_disk.lag_nanos()
        {
            peers.disk_clock.publish_lag(lag_nanos);
        }
        let record = PollRecord {
            dispatched: self.report.totals.consumption,
            held: self.in_disk.held(),
            due_at: self.in_disk.last_due_at(&self.requests),
            is_late,
        };
        peers[self.shard].publish_poll(now, record);
    }

    /// Wakes shards that wait for room, if this queue leaves any. It does not matter which shard has
    /// freed it.
    fn wake_window_waiters(&mut self, now: Time, reason: Blocked) {
        let freed = self.wakeups.take_freed(self.report.totals.in_disk);
        let Shared { peers, budget, .. } = &*self.shared;
        if reason == Blocked::Window || !peers.anyone_waits_for_room() || !budget.has_room() {
            return;
        }
        let share = budget.room_share().at_least(freed);
        // the shard that is behind was woken before
        let behind = usize::from(reason == Blocked::FairnessLead);
        let shards = share.shards.saturating_sub(behind);
        self.collect_some_wakes(now, RoomShare { shards, ..share });
    }

    #[cold]
    fn wake_next_discard(&mut self, now: Time) {
        self.fair.recheck_throttled();
        if let Some(next) = self.shared.discards.next(self.shard, now) {
            self.wakeups.list.push(next);
        }
    }

    /// A request has left the window. If others of this queue wait, its next turn may use the room.
    /// Other shards are then woken only after that turn.
    #[inline]
    pub(super) fn free_room(&mut self, now: Time) {
        if !self.shared.peers.alone() {
            self.free_room_of_group(now);
        }
    }

    fn free_room_of_group(&mut self, now: Time) {
        let waits = self.requests.len() > self.report.totals.in_disk;
        if waits && self.shared.budget.counts_disk_time() {
            self.wakeups.room_freed(now);
        } else {
            self.collect_wakes(now);
        }
    }

    /// Wakes shards that wait for room, as many as there is room for.
    pub(super) fn collect_wakes(&mut self, now: Time) {
        if !self.shared.peers.alone() {
            self.collect_some_wakes(now, self.shared.budget.room_share());
        }
    }

    #[inline]
    pub(super) fn collect_some_wakes(&mut self, now: Time, share: RoomShare) {
        let Shared { peers, tree, .. } = &*self.shared;
        if peers.anyone_waits_for_room() {
            peers.pop_most_lagging(tree, now, share, &mut self.wakeups.list);
        }
    }

    /// Called when nothing can be dispatched. Publishes whether a nested request waits here, and if so
    /// wakes shards that wait for room.
    pub(super) fn report_nested(&mut self, now: Time) {
        let (waits, throttled) = (self.fair.nested_waits(), self.fair.nested_is_throttled());
        let changed = self.wakeups.is_news(waits, throttled);
        if changed {
            self.shared.nested.set(self.shard, waits);
            self.shared.nested_throttled.set(self.shard, throttled);
        }
        // two shards with nested requests of limited classes must not wake each other for ever
        if waits || (changed && throttled) {
            self.collect_wakes(now);
        }
    }

    /// Whether a nested request waits that no limit holds back, on this shard or on another live one.
    pub(super) fn nested_waits(&self, now: Time) -> bool {
        self.fair.nested_waits() || self.shared.is_on_live_shard(&self.shared.nested, now)
    }

    /// Whether waiting requests may exceed a full window, at the pace.
    pub(super) fn may_bypass_window(&self, now: Time) -> bool {
        let shared = &self.shared;
        self.nested_waits(now)
            || (shared.tree.is_limited()
                && (self.fair.nested_is_throttled()
                    || shared.is_on_live_shard(&shared.nested_throttled, now))
                && shared.budget.has_room_for_others())
    }

    pub(super) fn lead(&self, class: u16, now: Time) -> Lead {
        if self.shared.peers.alone() {
            return Lead::none(self.shard);
        }
        let live = PeerFilter::Live { now, patience: self.shared.patience() };
        self.fair.lead(class, self.report.totals.dispatched, live)
    }

    /// The unused budget at which the disk is about to idle, so that no shard waits for another.
    pub(super) fn idle_budget_threshold(&self) -> DiskTime {
        DiskTime::from_units(self.effective_goal().units() / IDLE_BUDGET.1 * IDLE_BUDGET.0)
    }

    /// Checks from time to time what other shards hold in the disk without polling.
    pub(super) fn refresh_stale_peers(&mut self, now: Time) {
        if !self.peer_wait.is_refresh_due(now) {
            return;
        }
        let Shared { budget, peers, tick_nanos, .. } = &*self.shared;
        let least_nanos = self.in_disk.lag_least_nanos(&self.requests, now);
        let lag_nanos = peers.disk_clock.lag_nanos().max(least_nanos);
        let check =
            PeerCheck { now, tick_nanos: *tick_nanos, lag_nanos, has_room: budget.has_room() };
        let (held, grows_at) = peers.unattended(self.shard, &check, &mut self.wakeups.list);
        let held = budget.uncounted(held);
        let stagger_nanos = self.shared.stagger_nanos();
        self.peer_wait.refresh(now, (held, grows_at), (stagger_nanos, *tick_nanos));
    }

    pub(super) fn next_refresh(&mut self, now: Time) -> Time {
        let Shared { peers, tick_nanos, .. } = &*self.shared;
        self.peer_wait.next_refresh(now, (peers.joined(), *tick_nanos), |at, planned| {
            peers.plan_check(now, at, planned)
        })
    }

    /// The disk time that may exceed the window, so that the disk has work while all threads are
    /// absent. It is what the disk does in the longest recent absence of this thread, up to a limit.
    /// Zero unless all other shards were absent lately too, and if this one leads them by more.
    pub(super) fn bridge(&self, class: u16, now: Time) -> DiskTime {
        let Some(nanos) = self.attendance.away_nanos(now) else { return DiskTime::ZERO };
        let Shared { budget, peers, .. } = &*self.shared;
        if !peers.others_were_away(self.shard, now, BRIDGED_NANOS) {
            return DiskTime::ZERO;
        }
        let bridge = DiskTime::from_nanos(nanos).min(budget.bridge_max());
        let filter = PeerFilter::Live { now, patience: BRIDGED_NANOS };
        let lead = self.fair.lead(class, self.report.totals.dispatched, filter);
        if lead.units > bridge.units() { DiskTime::ZERO } else { bridge }
    }

    /// The stop for a pace that is used up until `open_at`.
    pub(super) fn stop_by_pace(&self, now: Time, class: u16, index: u32, open_at: Time) -> Stop {
        let unused = self.wakeup_threshold(class, index, now);
        let resume_at = self.shared.budget.unused_at(now, unused).max(open_at);
        let empty = self.shared.budget.is_nearly_empty(now);
        let reason = if empty { Blocked::PaceDiskIdle } else { Blocked::Pace };
        Stop::new(reason, Some(resume_at))
    }

    /// The unused budget at which a wake-up is worthwhile. By then, the shards behind must have had
    /// their turn. Requests that have waited for longer than a goal are dispatched together. Requests
    /// that arrive before the wake-up find this budget, and are dispatched at once.
    fn wakeup_threshold(&self, class: u16, index: u32, now: Time) -> DiskTime {
        let turn = DiskTime::from_units(self.lead(class, now).units_of_all);
        let goal = self.effective_goal();
        let waited = now.nanos_since(self.requests.at(index).enqueued_at);
        let (part, whole) = match self.shared.peers.alone() {
            true => COALESCE_SINGLE_SHARD,
            false => COALESCE_SHARED,
        };
        let together = if waited < goal.as_nanos_ceil() { 0 } else { goal.units() / whole * part };
        turn.max(DiskTime::from_units(together)).min(self.idle_budget_threshold())
    }

    /// The time from which this queue cannot rely on completions of its own to poll again.
    pub(super) fn self_wake_deadline(&self) -> Time {
        let horizon = self.shared.budget.service_horizon_nanos();
        let count = self.report.totals.in_disk;
        self.in_disk.self_wake_deadline(&self.requests, count, horizon)
    }

    /// When a queue that others block polls again without a wake-up.
    pub(super) fn latest_resume(&self, now: Time) -> Time {
        let latest = now.plus_nanos(BLOCKED_NANOS_MAX);
        let deadline = self.self_wake_deadline();
        if deadline > now { deadline.min(latest) } else { latest }
    }

    /// Whether only a wake-up by another shard can end this stop. A shard that leads others polls again
    /// after about a tick without a wake-up, if the budget shows what they take.
    pub(super) fn waits_for_room(&self, now: Time, stop: &Stop) -> bool {
        let retry_at = now.plus_nanos(self.shared.tick_nanos);
        let waits_for_run = || {
            self.pricer.seeks()
                && (self.pricer.head_held(now).is_some()
                    || stop.resume_at.is_some_and(|at| at <= retry_at))
        };
        match stop.reason {
            Blocked::Window => true,
            Blocked::FairnessLead => self.shared.budget.spent().is_none() && !waits_for_run(),
            _ => false,
        }
    }

    pub(super) fn timer(&self, now: Time) -> Option<Time> {
        let resume_at = self.attendance.last_stop().and_then(|(stop, _)| stop.resume_at);
        let overdue_at = self.in_disk.oldest_at(&self.requests).map(|since| {
            let patience = self.shared.budget.patience_nanos(now);
            since.plus_nanos(patience).max(self.in_disk.give_up_after)
        });
        match (resume_at, overdue_at) {
            (Some(resume), Some(overdue)) => Some(resume.min(overdue)),
            (one, other) => one.or(other),
        }
    }

    /// Counts a wake-up if the timer of the queue alone has begun this turn.
    pub(super) fn note_timer(&mut self, now: Time) {
        let Some((stop, since)) = self.attendance.last_stop() else { return };
        // of several polls in a row, only the first can have been waited for
        let stands = since < now && stop.resume_at.is_none_or(|at| at > since);
        if stands && self.timer(now).is_some_and(|at| since < at && at <= now) {
            self.report.woken(1);
        }
    }
}
