//! Watching for burst credits, in the background.
//!
//! While no other program uses the disk, it is kept busy until its rate falls. Alongside other load,
//! short probes check whether that load has used up the credits.

use super::{BOTH, Measuring};
use crate::credits::{credits, first_operations, hours_watched, reads_next};
use crate::error::Error;
use crate::fit::knee;
use crate::phase::{Bound, Pattern, Phase, Purpose, Work};
use crate::probe::{CreditProbe, DiskCounters};
use crate::sustained::may_have_credits;

/// Looks disturb other programs for at most this fraction of the time.
const DUTY: f64 = 0.02;
/// Looks use at most this many operations for each operation of other programs that need credits.
const CREDITS_PART: f64 = DUTY / 2.0;
/// The duration of a probe alongside other programs, in seconds.
const SHORT: f64 = 0.5;
/// The longest duration of a probe on a free disk, in seconds.
const LONG: f64 = 10.0;
/// The pause between probes, in seconds.
const PAUSE: f64 = 10.0;
/// The rest before the first probe, in seconds. An empty volume earns credits in this time.
const REST: f64 = 30.0;
/// Other programs that have not used the disk for this many seconds need no credits.
const AWAY: f64 = 3600.0;
/// The least number of requests in flight, because the knee may have been measured without credits.
const IN_FLIGHT_MIN: u32 = 4;
/// One in this many of the bytes left is kept to measure the rates without credits.
const KEPT_PART: u64 = 16;

/// The state of a watch for credits.
struct Watched {
    began: DiskCounters,
    /// When other programs last used the disk, in seconds of the target's clock.
    seen: Option<f64>,
    /// For how many seconds they were disturbed.
    disturbed: f64,
    /// The number of requests of all probes.
    own: u64,
    /// The number of requests of probes alongside other programs.
    alongside: u64,
}

impl Watched {
    /// Whether no other program needs the disk or its credits.
    fn is_free(&self, now: &DiskCounters) -> bool {
        self.seen.is_none_or(|seen| now.at - seen >= AWAY)
    }

    /// How many seconds the next probe may take. 0 if it has to wait.
    fn seconds(&self, now: &DiskCounters) -> f64 {
        let others = now.operations.saturating_sub(self.began.operations + self.own);
        let most = now.at * DUTY - self.disturbed;
        match self.is_free(now) {
            _ if most < SHORT => 0.0,
            true => most.min(LONG),
            false if self.alongside as f64 > others as f64 * CREDITS_PART => 0.0,
            false => SHORT,
        }
    }
}

impl Measuring<'_> {
    /// Watches for credits for the hours of the run. Ends earlier when the rates without credits are
    /// known, or when all bytes that may be written are written.
    pub(super) fn look_for_credits(&mut self) -> Result<(), Error> {
        let hours = f64::from(self.run.watch_hours) - hours_watched(&self.run.probes);
        if hours <= 0.0 || !may_have_credits(self.run) {
            return Ok(());
        }
        let kept = self.ledger.bytes_left / KEPT_PART;
        let began = self.target.counters()?;
        self.run.watch_began = began;
        let mut watched = Watched { began, seen: None, disturbed: 0.0, own: 0, alongside: 0 };
        self.pass(REST, &mut watched)?;
        // If other programs use the disk, the whole measurement so far has disturbed them.
        watched.disturbed = watched.seen.map_or(0.0, |_| began.at);
        loop {
            let now = self.target.counters()?;
            let free = watched.is_free(&now);
            if credits(self.run).is_some_and(|credits| credits.spent.is_some()) {
                return if free { self.figures_behind_credits(&mut watched) } else { Ok(()) };
            }
            let bytes = self.ledger.bytes_left.saturating_sub(kept);
            if now.at >= hours * 3600.0 || free && bytes == 0 {
                return Ok(());
            }
            let seconds = watched.seconds(&now);
            if seconds <= 0.0 {
                self.pass(PAUSE, &mut watched)?;
                continue;
            }
            let writes = free && !reads_next(self.run);
            let work = if writes { Work::Write } else { Work::Read };
            self.probe(work, Bound { seconds, requests_min: 0, bytes_max: bytes }, &mut watched)?;
        }
    }

    /// Waits for `seconds`, and notes the load of other programs.
    fn pass(&mut self, seconds: f64, watched: &mut Watched) -> Result<(), Error> {
        let before = self.target.counters()?;
        self.target.wait(seconds)?;
        let after = self.target.counters()?;
        let others = after.operations.saturating_sub(before.operations);
        self.note(others, &before, &after, watched);
        Ok(())
    }

    /// Notes this many operations of other programs. They count as present if they would lose more than
    /// [`DUTY`] in case each of their operations waited for the requests of a probe.
    fn note(
        &self,
        others: u64,
        before: &DiskCounters,
        after: &DiskCounters,
        watched: &mut Watched,
    ) {
        let most = first_operations(self.run) * (after.at - before.at);
        if others as f64 * f64::from(self.in_flight()) > most * DUTY {
            watched.seen = Some(after.at);
        }
    }

    /// The number of requests of a probe in flight, which is not much more than the disk needs.
    fn in_flight(&self) -> u32 {
        let needed = BOTH.map(|work| knee(self.run, work).depth_full);
        needed.into_iter().fold(IN_FLIGHT_MIN, u32::max)
    }

    fn probe(&mut self, work: Work, bound: Bound, watched: &mut Watched) -> Result<(), Error> {
        let (small, depth) = (self.small(Work::Write), self.in_flight());
        let phase = self.phase(work, Pattern::Random, small, depth, bound.seconds);
        let phase = Phase { bound, ..phase };
        self.announce(Purpose::Credits, phase)?;
        let before = self.target.counters()?;
        let samples = self.target.run(&phase)?;
        let (after, bytes_written) = (self.target.counters()?, samples.bytes_written);
        self.ledger.spend(bytes_written, 0.0);
        let probe = CreditProbe { work, before, after, bytes_written };
        self.run.probes.push(probe);
        let (all, own) = (probe.operations(), samples.requests + u64::from(depth));
        let free = watched.is_free(&before);
        watched.own += own;
        watched.alongside += if free { 0 } else { own };
        self.note(all.saturating_sub(own), &before, &after, watched);
        watched.disturbed += if watched.is_free(&after) { 0.0 } else { after.at - before.at };
        Ok(())
    }

    /// Measures the bandwidth without credits, and discards it if other programs used the disk.
    fn figures_behind_credits(&mut self, watched: &mut Watched) -> Result<(), Error> {
        let from = self.run.phases.len();
        self.run.behind_credits = Some(from);
        for work in BOTH {
            self.rounds(work, &[Pattern::Sequential], self.budget.rounds)?;
        }
        self.pass(PAUSE, watched)?;
        if !watched.is_free(&self.target.counters()?) {
            self.run.phases.truncate(from);
            self.run.behind_credits = None;
        }
        Ok(())
    }
}
