//! Detects late shards: whether the thread of this shard polls in time, and the pace that it has
//! missed.
//!
//! A turn is a series of polls that ends when one finds nothing to dispatch. A shard is late if its
//! turn begins later than promised, or takes completions that the disk must have had long before. The
//! others do not wait for a late shard. It may exceed the budget by the disk time owed to it.
//!
//! Decision: `docs/decisions/0014-late-shards.md`.

use super::types::Stop;
use crate::{Blocked, DiskTime, Time};

/// A shard is late if it takes completions of more disk time in one turn than an effective goal divided
/// by this. A disk that works at its rate does not finish more at once, so the shard has not polled
/// meanwhile.
const REAPED_PART: u64 = 3;
/// A shard that was late recently is late again after a tick divided by this, even where its turn shows
/// nothing.
const SLOW_TURN_PART: u64 = 2;
/// The disk may take this multiple of the cost of a request before the thread that waits for it counts
/// as absent. That exceeds the service horizon only for requests above a goal, which are not split.
/// With a smaller number, a slow disk is taken for an absence.
const SLOW_TIMES: u64 = 4;
/// A late turn is counted if the thread was absent for this long, in nanoseconds (2 ms).
const COUNTED_NANOS_MIN: u64 = 2_000_000;
/// Absences are bridged while each thread has been absent at least once in this time, in nanoseconds
/// (100 ms).
pub(super) const BRIDGED_NANOS: u64 = 100_000_000;
/// If a thread first notices an overdue request later than this, in nanoseconds (10 ms), it was absent
/// itself. The request may have completed long ago, and the owner has the same time to report that.
const GRACE_NANOS: u64 = 10_000_000;
/// With each poll the usual gap between polls moves by one part in this many towards the latest gap. So
/// it approaches the median.
const GAP_STEP_PART: u64 = 16;
/// A gap of more than this multiple of the usual gap means that the thread was preempted.
const PREEMPTED_GAPS: u64 = 4;

/// The state of the group and the shard when a turn begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnFacts {
    pub(super) now: Time,
    pub(super) effective_goal: DiskTime,
    /// Disk time that all shards have in the disk; `held` is the part of this one.
    pub(super) in_flight: DiskTime,
    pub(super) held: DiskTime,
    /// How late a shard may poll while others still wait for it, in nanoseconds.
    pub(super) patience_nanos: u64,
    /// The time in which a disk that keeps up serves what it was sent, in nanoseconds.
    pub(super) service_horizon_nanos: u64,
    pub(super) tick_nanos: u64,
    pub(super) has_peers: bool,
    /// Whether the shard polls by its promise, or within the patience after it.
    pub(super) is_live: bool,
    /// Whether the shard was late before, and polls after the disk must have answered all that it held.
    pub(super) is_late_again: bool,
}

/// Whether the turns of a shard are late.
#[derive(Debug, Default)]
pub(super) struct Attendance {
    /// Why the last turn ended, and when; `None` during a turn.
    last_stop: Option<(Stop, Time)>,
    is_late: bool,
    /// When a turn last was late.
    seen_late_at: Option<Time>,
    /// Disk time by which this turn has overdrawn the budget.
    overdrawn: DiskTime,
    /// Disk time of the completions since the last turn. `reaped_last` is that of the latest one, which
    /// may have come just now.
    reaped: DiskTime,
    reaped_last: DiskTime,
    /// Disk time of the largest request that completed since the last turn.
    reaped_max: DiskTime,
    /// Whether the last turn left anything in the disk.
    left_in_disk: bool,
    /// Requests of the group that had exceeded the window for nested ones when the last turn ended.
    bypasses_seen: u64,
    /// When the last turn planned the next poll, if only time was to open the budget.
    meant_at: Option<Time>,
    /// The longest recent absence of the thread, in nanoseconds, and when the last one ended. In an
    /// absence the disk has nothing left of this shard.
    away: Option<(u64, Time)>,
    /// Unused disk time before this turn, while work waited for the thread. The pace makes up for it.
    missed_pace_credit: DiskTime,
    /// When the thread polled last.
    polled_at: Time,
    /// Until then the owner, which was absent, may report completions.
    grace_until: Time,
    gaps: PollGaps,
}

impl Attendance {
    /// Begins a turn. Returns whether the turn itself shows that it is late.
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

    /// Records an absence: the thread polls later than planned, and the disk has done all that this shard
    /// had sent. Returns whether there was one.
    pub(super) fn note_absence(&mut self, facts: &TurnFacts) -> bool {
        let Some((stop, since)) = self.last_stop else { return false };
        let waited = matches!(stop.reason, Blocked::Window | Blocked::FairnessLead);
        if !waited || facts.held > DiskTime::ZERO {
            return false;
        }
        let nanos = facts.now.nanos_since(since);
        let meant_at = stop.resume_at.unwrap_or(Time::MAX);
        let is_late = facts.now.nanos_since(meant_at) > facts.patience_nanos;
        // the disk itself may take longer for one large request than for a whole window
        let disk_nanos = self.reaped_max.as_nanos_ceil().saturating_mul(SLOW_TIMES);
        if !is_late || nanos <= disk_nanos.max(facts.service_horizon_nanos) {
            return false;
        }
        let before = self.away_nanos(facts.now).unwrap_or(0);
        self.away = Some((before.max(nanos), facts.now));
        true
    }

    /// The longest recent absence of the thread, in nanoseconds.
    pub(super) fn away_nanos(&self, now: Time) -> Option<u64> {
        let recent = self.away.filter(|(_, at)| now.nanos_since(*at) <= BRIDGED_NANOS);
        recent.map(|(nanos, _)| nanos)
    }

    /// How late this turn is, which has just begun, in nanoseconds; 0 if that is not worth counting.
    /// Healthy threads are absent for a short while, and a shard with a few large completions is late
    /// only for the sake of fairness. A shard that waits for nothing but the disk is as late as the
    /// disk, which may be slow. Up to `disk_patience_nanos` its thread is not to blame.
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

    /// Disk time that was unused before this turn, at most one effective goal less what is in flight.
    /// It counts from the planned time of the turn. If the turn follows a full window and takes many
    /// completions, there was room before, and it counts from the end of the last turn.
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

    /// Whether the turn was expected earlier, or takes completions that the disk must have had some
    /// time ago.
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

    /// A request of this cost has completed.
    #[inline]
    pub(super) fn take_back(&mut self, cost: DiskTime) {
        self.reaped = self.reaped.plus(cost);
        self.reaped_last = cost;
        self.reaped_max = self.reaped_max.max(cost);
    }

    /// Whether a request has completed since the last turn.
    pub(super) fn has_reaped(&self) -> bool {
        self.reaped > DiskTime::ZERO
    }

    /// Takes the stop of the last turn, if there is one. From now on a turn is under way.
    pub(super) fn take_stop(&mut self) -> Option<(Stop, Time)> {
        self.last_stop.take()
    }

    /// Whether requests have exceeded the window for nested ones since the last turn, and this turn has
    /// not overdrawn the budget. `bypasses` is the number of such requests of the group so far.
    pub(super) fn was_bypassed(&self, bypasses: u64) -> bool {
        bypasses != self.bypasses_seen && self.overdrawn == DiskTime::ZERO
    }

    /// Ends the turn. `has_in_disk` says whether it leaves requests in the disk. `bypasses` is the
    /// number of requests of the group so far that have exceeded the window for nested ones.
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

    /// Why nothing was dispatched when the last turn ended; `None` during a turn.
    pub(super) fn blocked(&self) -> Option<Blocked> {
        self.last_stop.map(|(stop, _)| stop.reason)
    }

    /// Lets the next poll come at once, because something has changed.
    #[inline]
    pub(super) fn resume_at_once(&mut self) {
        if let Some((stop, since)) = &mut self.last_stop {
            stop.resume_at = Some(*since);
        }
    }

    /// Records a poll of the thread. Returns the time of the poll before.
    #[inline]
    pub(super) fn poll(&mut self, now: Time) -> Time {
        core::mem::replace(&mut self.polled_at, now)
    }

    /// Whether the owner may still report completions from an absence.
    pub(super) fn is_in_grace(&self, now: Time) -> bool {
        now < self.grace_until
    }

    /// Gives the owner time to report completions if the thread was absent: it polled before at
    /// `polled_at`, and notices an overdue request long after `overdue_at`. Returns the end of that
    /// time.
    pub(super) fn grace(&mut self, now: Time, polled_at: Time, overdue_at: Time) -> Option<Time> {
        let was_away = polled_at < overdue_at && now.nanos_since(overdue_at) > GRACE_NANOS;
        was_away.then(|| {
            self.grace_until = now.plus_nanos(GRACE_NANOS);
            self.grace_until
        })
    }

    /// Whether the thread was preempted before it found a completion at `now`, `gap_nanos` after its
    /// last poll.
    pub(super) fn was_preempted(&mut self, now: Time, gap_nanos: u64) -> bool {
        self.gaps.was_preempted(now, gap_nanos)
    }
}

/// The gaps between polls that found completions.
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

    /// The number of `polls` with gaps by `gap_of` at which a preemption is detected.
    fn preempted(polls: u64, gap_of: impl Fn(u64) -> u64) -> u64 {
        let (mut gaps, mut now, mut preempted) = (PollGaps::default(), Time::from_nanos(1), 0);
        for poll in 0..polls {
            now = now.plus_nanos(gap_of(poll));
            // several complete together
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
