//! Whether the thread of this shard polls in time, and what the shard keeps of a time in which it
//! could not ask.
//!
//! A turn is a row of polls up to the one that finds nothing to dispatch. A shard is late if its turn
//! begins later than it promised to poll, or takes back what the disk must have done long before. The
//! others do not wait for a late shard, and it may go beyond the budget for what they have used.
//!
//! Decision: `docs/decisions/0014-late-shards.md`.

use super::types::Stop;
use crate::{Blocked, DiskTime, Time};

/// A disk that works at its rate does at most one in this many effective goals at once. A shard that
/// takes back more did not look meanwhile.
const REAPED_PART: u64 = 3;
/// A shard that was late lately counts as late again after a tick divided by this, even where its turn
/// shows nothing.
const SLOW_TURN_PART: u64 = 2;
/// A disk may take its cost times this for a request before the thread that waits for it counts as
/// away. It is more than the windows of the service horizon for requests above a goal alone, which
/// are not split. At a smaller number a slow disk is taken for an absence.
const SLOW_TIMES: u64 = 4;
/// A late turn is counted where the thread was away for this long, in nanoseconds.
const COUNTED_NANOS_MIN: u64 = 2_000_000;
/// Absences are bridged while each thread has been away at least once in this time, in nanoseconds.
pub(super) const BRIDGED_NANOS: u64 = 100_000_000;
/// A thread that finds a request overdue for the first time, and this much later than it became so,
/// was away itself. The request may have come back long ago, and the owner has as long to say so. In
/// nanoseconds.
const GRACE_NANOS: u64 = 10_000_000;
/// The usual gap between polls follows by one part in this many with each poll: it ends at the median.
const GAP_STEP_PART: u64 = 16;
/// A gap this many times the usual one is of a thread that was preempted.
const PREEMPTED_GAPS: u64 = 4;

/// What is known as a turn begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnFacts {
    pub(super) now: Time,
    pub(super) effective_goal: DiskTime,
    /// Disk time that all shards have in the disk, and this one.
    pub(super) in_flight: DiskTime,
    pub(super) held: DiskTime,
    /// By how much a shard may be late to poll and still be waited for, in nanoseconds.
    pub(super) patience_nanos: u64,
    /// How long a disk that keeps up takes for what it got, in nanoseconds.
    pub(super) service_horizon_nanos: u64,
    pub(super) tick_nanos: u64,
    pub(super) has_peers: bool,
    /// The shard polls as it promised, or within the patience.
    pub(super) is_live: bool,
    /// The shard was late before, and comes after the disk must have answered all that it held.
    pub(super) is_late_again: bool,
}

/// Whether turns come late.
#[derive(Debug, Default)]
pub(super) struct Attendance {
    /// Why the last turn ended, and when; `None` during a turn.
    last_stop: Option<(Stop, Time)>,
    is_late: bool,
    /// When a turn last was late.
    seen_late_at: Option<Time>,
    /// By how much this turn has overdrawn the budget.
    overdrawn: DiskTime,
    /// Disk time of what came back since the last turn, and of the request that came back last, which
    /// may have done so just now.
    reaped: DiskTime,
    reaped_last: DiskTime,
    /// Disk time of the largest request that came back since the last turn.
    reaped_max: DiskTime,
    /// Whether the last turn left anything in the disk.
    left_in_disk: bool,
    /// Requests of the group that had gone past the window for nested ones when the last turn ended.
    bypasses_seen: u64,
    /// When the last turn meant to look again, if only time was to open the budget.
    meant_at: Option<Time>,
    /// The longest time in nanoseconds for which the thread was away lately while the disk had nothing
    /// of it, and when that last was.
    away: Option<(u64, Time)>,
    /// Disk time that nobody used before this turn while work waited here for the thread: the pace
    /// makes up for it.
    missed_pace_credit: DiskTime,
    /// When the thread polled last.
    polled_at: Time,
    /// Until then the owner, who was away, may say what has come back.
    grace_until: Time,
    gaps: PollGaps,
}

impl Attendance {
    /// A turn begins. Returns whether it shows that it is late.
    pub(super) fn begin_turn(&mut self, facts: &TurnFacts) -> bool {
        let Some((stop, since)) = self.last_stop else { return false };
        self.missed_pace_credit = self.unused_pace(stop.reason, since, facts);
        let is_late = self.is_seen_late(since, facts);
        self.is_late = is_late || self.was_recently_late(since, facts);
        if is_late {
            self.seen_late_at = Some(facts.now);
        }
        is_late
    }

    /// Notes whether the thread was away until the disk had done all that this shard had sent, and for
    /// longer than it meant to be. Returns whether it was.
    pub(super) fn note_absence(&mut self, facts: &TurnFacts) -> bool {
        let Some((stop, since)) = self.last_stop else { return false };
        let waited = matches!(stop.reason, Blocked::Window | Blocked::FairnessLead);
        if !waited || facts.held > DiskTime::ZERO {
            return false;
        }
        let nanos = facts.now.nanos_since(since);
        let meant_at = stop.resume_at.unwrap_or(Time::MAX);
        let is_late = facts.now.nanos_since(meant_at) > facts.patience_nanos;
        // the disk itself may take longer for one large request than for a window
        let disk_nanos = self.reaped_max.as_nanos_ceil().saturating_mul(SLOW_TIMES);
        if !is_late || nanos <= disk_nanos.max(facts.service_horizon_nanos) {
            return false;
        }
        let before = self.away_nanos(facts.now).unwrap_or(0);
        self.away = Some((before.max(nanos), facts.now));
        true
    }

    /// The longest time for which the thread was away lately, in nanoseconds.
    pub(super) fn away_nanos(&self, now: Time) -> Option<u64> {
        let recent = self.away.filter(|(_, at)| now.nanos_since(*at) <= BRIDGED_NANOS);
        recent.map(|(nanos, _)| nanos)
    }

    /// By how much this turn, which has just begun and is late, comes later than it could have, in
    /// nanoseconds; 0 if that is not worth counting. Healthy threads are away for a short
    /// while, and a shard that takes back a few large requests at once is late for fairness' sake alone.
    /// A shard that waits for the disk and nothing else is as late as the disk, which may be slow:
    /// within `disk_patience_nanos` that is no fault of the thread.
    pub(super) fn late_nanos(&self, facts: &TurnFacts, disk_patience_nanos: u64) -> u64 {
        let Some((_, since)) = self.last_stop else { return 0 };
        let away = facts.now.nanos_since(since);
        let waits_for_disk = self.left_in_disk
            && self.reaped_before_last() <= facts.effective_goal
            && away <= disk_patience_nanos;
        let nanos = match self.meant_at {
            Some(meant_at) => facts.now.nanos_since(meant_at),
            None if waits_for_disk => 0,
            None => away,
        };
        if nanos >= COUNTED_NANOS_MIN { nanos } else { 0 }
    }

    /// Disk time of at most one effective goal that nobody used, if this turn comes later than it was
    /// meant to, or later than there was room: the disk is done with more than it does at once.
    fn unused_pace(&self, reason: Blocked, since: Time, facts: &TurnFacts) -> DiskTime {
        let since = match (reason, self.meant_at) {
            (Blocked::Window, _) if self.reaped_many(facts) => since,
            (_, Some(meant_at)) => meant_at,
            _ => return DiskTime::ZERO,
        };
        let fits = facts.effective_goal.minus(facts.in_flight);
        DiskTime::from_nanos(facts.now.nanos_since(since).min(fits.as_nanos_ceil())).min(fits)
    }

    fn reaped_before_last(&self) -> DiskTime {
        self.reaped.minus(self.reaped_last)
    }

    fn reaped_many(&self, facts: &TurnFacts) -> bool {
        self.reaped_before_last().units() > facts.effective_goal.units() / REAPED_PART
    }

    /// Whether a turn that would begin now is late.
    pub(super) fn would_be_late(&self, facts: &TurnFacts) -> bool {
        let since = self.last_stop.map_or(facts.now, |(_, since)| since);
        self.is_seen_late(since, facts) || self.was_recently_late(since, facts)
    }

    /// Whether the turn was expected earlier, or takes back what the disk must have done some time ago.
    fn is_seen_late(&self, since: Time, facts: &TurnFacts) -> bool {
        let away = facts.now.nanos_since(since);
        let longest = facts.service_horizon_nanos.max(facts.patience_nanos);
        facts.has_peers
            && (self.reaped_many(facts)
                || !facts.is_live
                || self.left_in_disk && (away > longest || facts.is_late_again))
    }

    fn was_recently_late(&self, since: Time, facts: &TurnFacts) -> bool {
        self.seen_late_at.is_some_and(|seen| {
            facts.now.nanos_since(seen) <= facts.service_horizon_nanos
                && facts.now.nanos_since(since) > facts.tick_nanos / SLOW_TURN_PART
        })
    }

    /// Whether this turn is late.
    #[inline]
    pub(super) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Whether this turn is late and has overdrawn the budget by less than `most`.
    pub(super) fn may_overdraw(&self, most: impl FnOnce() -> DiskTime) -> bool {
        self.is_late && self.overdrawn < most()
    }

    pub(super) fn overdraw(&mut self, cost: DiskTime) {
        self.overdrawn = self.overdrawn.plus(cost);
    }

    #[inline]
    pub(super) fn missed_pace_credit(&self) -> DiskTime {
        self.missed_pace_credit
    }

    /// A request of this cost has come back.
    #[inline]
    pub(super) fn take_back(&mut self, cost: DiskTime) {
        self.reaped = self.reaped.plus(cost);
        self.reaped_last = cost;
        self.reaped_max = self.reaped_max.max(cost);
    }

    /// Whether a request has come back since the last turn.
    pub(super) fn has_reaped(&self) -> bool {
        self.reaped > DiskTime::ZERO
    }

    /// Takes the stop of the last turn, if one has ended: how long nothing went is known now.
    pub(super) fn take_stop(&mut self) -> Option<(Stop, Time)> {
        self.last_stop.take()
    }

    /// Whether requests have gone past the window for nested ones since the last turn, and this turn
    /// has not overdrawn the budget. `bypasses`: how many of the group have gone past it so far.
    pub(super) fn was_bypassed(&self, bypasses: u64) -> bool {
        bypasses != self.bypasses_seen && self.overdrawn == DiskTime::ZERO
    }

    /// Ends the turn. `has_in_disk`: it leaves something in the disk. `bypasses`: requests of the group
    /// that have gone past the window for nested ones.
    pub(super) fn end_turn(&mut self, now: Time, stop: Stop, has_in_disk: bool, bypasses: u64) {
        let Self { seen_late_at, away, polled_at, grace_until, gaps, .. } = *self;
        *self = Self {
            last_stop: Some((stop, now)),
            left_in_disk: has_in_disk,
            bypasses_seen: bypasses,
            meant_at: stop.waits_for_time(),
            seen_late_at,
            away,
            polled_at,
            grace_until,
            gaps,
            ..Self::default()
        };
    }

    /// Why the last turn ended, and when; `None` during a turn.
    #[inline]
    pub(super) fn last_stop(&self) -> Option<(Stop, Time)> {
        self.last_stop
    }

    /// Why nothing went when the last turn ended; `None` during a turn.
    pub(super) fn blocked(&self) -> Option<Blocked> {
        self.last_stop.map(|(stop, _)| stop.reason)
    }

    /// Something changed: the next poll may dispatch, so no timer stands.
    #[inline]
    pub(super) fn resume_at_once(&mut self) {
        if let Some((stop, since)) = &mut self.last_stop {
            stop.resume_at = Some(*since);
        }
    }

    /// The thread polls. Returns when it polled before.
    #[inline]
    pub(super) fn poll(&mut self, now: Time) -> Time {
        core::mem::replace(&mut self.polled_at, now)
    }

    /// Whether the owner may still say what has come back while it was away.
    pub(super) fn is_in_grace(&self, now: Time) -> bool {
        now < self.grace_until
    }

    /// If the thread, which polled before at `polled_at`, finds a request overdue this much later than
    /// it became so, its owner may say what has come back meanwhile: until the time that is returned.
    pub(super) fn grace(&mut self, now: Time, polled_at: Time, overdue_at: Time) -> Option<Time> {
        let was_away = polled_at < overdue_at && now.nanos_since(overdue_at) > GRACE_NANOS;
        was_away.then(|| {
            self.grace_until = now.plus_nanos(GRACE_NANOS);
            self.grace_until
        })
    }

    /// An answer was found `now`, this long after the poll before. Whether the thread was preempted
    /// meanwhile.
    pub(super) fn was_preempted(&mut self, now: Time, gap_nanos: u64) -> bool {
        self.gaps.was_preempted(now, gap_nanos)
    }
}

/// The gaps between polls that found answers.
#[derive(Clone, Copy, Debug, Default)]
struct PollGaps {
    seen_at: Time,
    usual_nanos: u64,
}

impl PollGaps {
    fn was_preempted(&mut self, now: Time, gap_nanos: u64) -> bool {
        if self.seen_at == Time::ZERO {
            self.usual_nanos = gap_nanos;
        }
        if now > self.seen_at {
            self.seen_at = now;
            let step = self.usual_nanos / GAP_STEP_PART + 1;
            self.usual_nanos = match gap_nanos > self.usual_nanos {
                true => self.usual_nanos.saturating_add(step),
                false => self.usual_nanos.saturating_sub(step),
            };
        }
        gap_nanos > self.usual_nanos.saturating_mul(PREEMPTED_GAPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `polls` with such gaps, those at which a thread was found to have been preempted.
    fn preempted(polls: u64, gap_of: impl Fn(u64) -> u64) -> u64 {
        let (mut gaps, mut now, mut preempted) = (PollGaps::default(), Time::from_nanos(1), 0);
        for poll in 0..polls {
            now = now.plus_nanos(gap_of(poll));
            // several come back together
            for _ in 0..3 {
                preempted += u64::from(gaps.was_preempted(now, gap_of(poll)));
            }
        }
        preempted / 3
    }

    #[test]
    fn poll_gaps_tell_a_thread_that_is_preempted_now_and_then_from_one_that_always_polls_rarely() {
        for usual in [10_000, 1_000_000, 20_000_000] {
            assert_eq!(preempted(1000, |_| usual), 0, "{usual}");
            for one_in in [3, 20, 50] {
                let gap_of = |poll| if poll % one_in == one_in - 1 { 50 * usual } else { usual };
                let (seen, all) = (preempted(1000, gap_of), 1000 / one_in);
                assert!(
                    seen >= all - 2 && seen <= all,
                    "{usual}, one in {one_in}: {seen} of {all}"
                );
            }
        }
    }
}
