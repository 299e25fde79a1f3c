//! Whether a shard turns late. The others do not wait for such a shard, and it
//! may go beyond the budget for what they have used meanwhile.

use super::IoQueue;
use super::lateness::Lateness;
use super::stop::Stop;
use crate::budget::Demand;
use crate::peers::PeerFilter;
use crate::{Blocked, DiskTime, Time};

/// A disk that works at its rate is not done with more than this part of an
/// effective goal at once: whoever takes back so much did not look meanwhile.
const TAKEN_BACK_PART: u64 = 3;
/// Who was late a short while ago is late again after this part of a tick, also
/// where its turn shows nothing.
const SLOW_TURN_PART: u64 = 2;

/// Late turns are counted where the thread was away for so long.
const COUNTED_NANOS_MIN: u64 = 2_000_000;

/// A disk that keeps up has done what it got after so many windows. What a shard
/// holds that has not polled for so long is unattended, and who comes back later
/// than that to take it is late.
const SILENT_WINDOWS: u64 = 2;

/// Absences are bridged while each thread has been away at least once in this time.
const BRIDGED_NANOS: u64 = 100_000_000;

impl IoQueue {
    /// Finds out whether the turn that begins is late. Of what it is owed for the
    /// time in which it could not ask, a late shard keeps a bounded credit.
    pub(super) fn begin_turn(&mut self, now: Time) {
        let Some((stop, since)) = self.stopped else { return };
        self.lateness.missed_pace_credit = self.unused_pace(stop.reason, now, since);
        self.note_away(&stop, now, since);
        let seen = self.is_seen_late(now, since);
        self.lateness.late = seen || self.was_late_lately(now, since);
        if seen {
            self.lateness.seen_at = Some(now);
            self.count_late_turn(now, since);
        }
        if self.lateness.late {
            self.fair.catch_up();
        }
    }

    /// Finds out whether the thread was away until the disk had done all that it had sent, and for
    /// longer than it meant to be.
    fn note_away(&mut self, stop: &Stop, now: Time, since: Time) {
        let waited = matches!(stop.reason, Blocked::Window | Blocked::FairnessLead);
        // holders of permits compute: their queue has no thread that could be away
        if self.grants_permits || !waited || self.held > DiskTime::ZERO {
            return;
        }
        let (nanos, meant_at) = (now.nanos_since(since), stop.resume_at.unwrap_or(Time::MAX));
        let is_late = now.nanos_since(meant_at) > self.shared.patience();
        if !is_late || nanos <= self.service_horizon_nanos() {
            return;
        }
        let lately = self.lateness.away.filter(|(_, at)| now.nanos_since(*at) <= BRIDGED_NANOS);
        self.lateness.away = Some((lately.map_or(nanos, |(before, _)| before.max(nanos)), now));
        self.shared.peers.publish_away(self.shard, now);
    }

    /// What may be unfinished beyond the window so that the disk has work while all threads are
    /// away: as much as it does in such a time, if all were away lately.
    pub(super) fn bridge(&self, class: u16, now: Time) -> DiskTime {
        let Some((nanos, at)) = self.lateness.away else { return DiskTime::ZERO };
        let (peers, budget) = (&self.shared.peers, &self.shared.budget);
        let is_recent = now.nanos_since(at) <= BRIDGED_NANOS;
        if !is_recent || !peers.others_were_away(self.shard, now, BRIDGED_NANOS) {
            return DiskTime::ZERO;
        }
        let bridge = DiskTime::from_nanos(nanos).min(budget.bridge_max());
        let met = PeerFilter::Live { now, patience: BRIDGED_NANOS };
        let leads = self.fair.lead(class, self.totals.dispatched, met).units > bridge.units();
        if leads { DiskTime::ZERO } else { bridge }
    }

    /// Counts a late turn, by how much it comes after it could have come: healthy threads are away
    /// for a short while, and who takes back a few large requests at once is late for fairness' sake
    /// alone. Who waits for the disk and nothing else is as late as the disk, which may be slow.
    fn count_late_turn(&mut self, now: Time, since: Time) {
        let away = now.nanos_since(since);
        let taken_back = self.lateness.taken_back.minus(self.lateness.latest);
        let waits_for_disk = self.lateness.left_in_disk
            && taken_back <= self.shared.budget.effective_goal()
            && away <= self.shared.budget.patience_nanos(now);
        let nanos = match self.lateness.meant_at {
            Some(meant_at) => now.nanos_since(meant_at),
            None if waits_for_disk => 0,
            None => away,
        };
        if nanos >= COUNTED_NANOS_MIN {
            self.totals.late_turns += 1;
            self.totals.late_nanos = self.totals.late_nanos.wrapping_add(nanos);
        }
    }

    /// Disk time of at most one effective goal that nobody used, if this turn comes
    /// later than it was meant to, or later than room was there: the disk is done
    /// with more than it does at once, as in [`Self::is_seen_late`].
    fn unused_pace(&self, reason: Blocked, now: Time, since: Time) -> DiskTime {
        let since = match (reason, self.lateness.meant_at) {
            (Blocked::Window, _) if self.takes_much_back() => since,
            (_, Some(meant_at)) => meant_at,
            _ => return DiskTime::ZERO,
        };
        let budget = &self.shared.budget;
        let fits = budget.effective_goal().minus(budget.in_flight());
        DiskTime::from_nanos(now.nanos_since(since).min(fits.as_nanos_ceil())).min(fits)
    }

    fn takes_much_back(&self) -> bool {
        let Lateness { taken_back, latest, .. } = self.lateness;
        let goal = self.shared.budget.effective_goal().units();
        taken_back.minus(latest).units() > goal / TAKEN_BACK_PART
    }

    /// Whether the turn that would begin now is late.
    pub(super) fn would_be_late(&self, now: Time) -> bool {
        let since = self.stopped.map_or(now, |(_, since)| since);
        self.is_seen_late(now, since) || self.was_late_lately(now, since)
    }

    /// Whether it was expected earlier, or takes back what the disk must have
    /// done some time ago.
    fn is_seen_late(&self, now: Time, since: Time) -> bool {
        let (peers, patience) = (&self.shared.peers, self.shared.patience());
        if peers.alone() {
            return false;
        }
        let away = now.nanos_since(since);
        self.takes_much_back()
            || !peers.is_live(self.shard, now, patience)
            || self.lateness.left_in_disk && away > self.service_horizon_nanos().max(patience)
    }

    fn was_late_lately(&self, now: Time, since: Time) -> bool {
        self.lateness.seen_at.is_some_and(|seen| {
            now.nanos_since(seen) <= self.service_horizon_nanos()
                && now.nanos_since(since) > self.shared.tick_nanos / SLOW_TURN_PART
        })
    }

    /// After so long a disk that keeps up has done what it got.
    pub(super) fn service_horizon_nanos(&self) -> u64 {
        self.shared.budget.window().as_nanos_ceil().saturating_mul(SILENT_WINDOWS)
    }

    /// Whether a request goes although the budget is closed: the shard turns
    /// late, and others have used meanwhile what it is owed. In a turn it goes
    /// at most one effective goal beyond.
    pub(super) fn overdraws(&mut self, now: Time, class: u16, ask: &Demand) -> bool {
        if !self.lateness.late || self.shared.peers.alone() {
            return false;
        }
        // one goes from each however full the disk is, or it may never have a turn
        let window_binds = self.totals.in_disk > 0 && !self.nested_waits(now);
        let met = PeerFilter::PromptWithin { now, nanos: self.shared.tick_nanos };
        let overdraws = self.lateness.overdrawn < self.shared.budget.effective_goal()
            && self.fair.owed(class) > 0
            && self.fair.lead(class, self.totals.dispatched, met).units == 0
            && self.shared.budget.try_overdraw(now, ask, window_binds);
        if overdraws {
            self.lateness.overdrawn = self.lateness.overdrawn.plus(ask.cost);
        }
        overdraws
    }
}
