//! Looking for credits, in the background.
//!
//! While nothing else uses the disk it is kept busy until its rate falls. Alongside other load short
//! looks tell whether that has used up the credits.

use super::{BOTH, Measuring};
use crate::credits::{credits, first_operations, hours_watched, reads_next};
use crate::error::Error;
use crate::fit::knee;
use crate::look::{Counted, Look};
use crate::phase::{Bound, Pattern, Phase, Purpose, Work};
use crate::sustained::may_have_credits;

/// The part of the time for which others are disturbed, at most,
const DUTY: f64 = 0.02;
/// and as how large a part of what they do it uses up credits while they need some.
const CREDITS_PART: f64 = DUTY / 2.0;
/// Seconds of a look alongside others, and of the longest.
const SHORT: f64 = 0.5;
const LONG: f64 = 10.0;
/// Seconds between looks, and of the rest before the first, in which an empty volume earns some.
const PAUSE: f64 = 10.0;
const REST: f64 = 30.0;
/// Others who have not used the disk for this many seconds need no credits.
const AWAY: f64 = 3600.0;
/// Requests in flight, lest the knee was found without credits.
const IN_FLIGHT_MIN: u32 = 4;
/// This part of the bytes left is for the rates behind credits.
const KEPT_PART: u64 = 16;

/// What looking for credits has come to.
struct Watched {
    began: Counted,
    /// When others were last seen, if they were.
    seen: Option<f64>,
    /// Seconds in which they were disturbed.
    disturbed: f64,
    /// Requests of all looks, and of those alongside others.
    own: u64,
    alongside: u64,
}

impl Watched {
    /// Whether nobody needs the disk or its credits.
    fn is_free(&self, now: &Counted) -> bool {
        self.seen.is_none_or(|seen| now.at - seen >= AWAY)
    }

    /// Seconds that the next look may take; 0 for none yet.
    fn seconds(&self, now: &Counted) -> f64 {
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
    /// Looks for credits for as long as the run says, or until it is known what the disk does
    /// without, or the bytes that may be written are.
    pub(super) fn look_for_credits(&mut self) -> Result<(), Error> {
        let hours = f64::from(self.run.watch_hours) - hours_watched(&self.run.looks);
        if hours <= 0.0 || !may_have_credits(self.run) {
            return Ok(());
        }
        let kept = self.ledger.bytes_left / KEPT_PART;
        let began = self.target.counted()?;
        self.run.watch_began = began;
        let mut watched = Watched { began, seen: None, disturbed: 0.0, own: 0, alongside: 0 };
        self.pass(REST, &mut watched)?;
        // all before has disturbed those who are there, if somebody is
        watched.disturbed = watched.seen.map_or(0.0, |_| began.at);
        loop {
            let now = self.target.counted()?;
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
            self.look(work, Bound { seconds, requests_min: 0, bytes_max: bytes }, &mut watched)?;
        }
    }

    /// Lets `seconds` pass.
    fn pass(&mut self, seconds: f64, watched: &mut Watched) -> Result<(), Error> {
        let before = self.target.counted()?;
        self.target.wait(seconds)?;
        let after = self.target.counted()?;
        let others = after.operations.saturating_sub(before.operations);
        self.note(others, &before, &after, watched);
        Ok(())
    }

    /// Takes note of this many operations of others: they are there if they would lose more than the
    /// duty were each to wait for the requests of a look.
    fn note(&self, others: u64, before: &Counted, after: &Counted, watched: &mut Watched) {
        let most = first_operations(self.run) * (after.at - before.at);
        if others as f64 * f64::from(self.in_flight()) > most * DUTY {
            watched.seen = Some(after.at);
        }
    }

    /// How many requests of a look are in flight: not many more than the disk needs.
    fn in_flight(&self) -> u32 {
        let needed = BOTH.map(|work| knee(self.run, work).depth_full);
        needed.into_iter().fold(IN_FLIGHT_MIN, u32::max)
    }

    fn look(&mut self, work: Work, bound: Bound, watched: &mut Watched) -> Result<(), Error> {
        let (small, depth) = (self.small(Work::Write), self.in_flight());
        let phase = self.phase(work, Pattern::Random, small, depth, bound.seconds);
        let phase = Phase { bound, ..phase };
        self.announce(Purpose::Credits, phase)?;
        let before = self.target.counted()?;
        let samples = self.target.run(&phase)?;
        let (after, bytes_written) = (self.target.counted()?, samples.bytes_written);
        self.ledger.spend(bytes_written, 0.0);
        let look = Look { work, before, after, bytes_written };
        self.run.looks.push(look);
        let (all, own) = (look.operations(), samples.requests + u64::from(depth));
        let free = watched.is_free(&before);
        watched.own += own;
        watched.alongside += if free { 0 } else { own };
        self.note(all.saturating_sub(own), &before, &after, watched);
        watched.disturbed += if watched.is_free(&after) { 0.0 } else { after.at - before.at };
        Ok(())
    }

    /// Bytes per second while there are no credits.
    fn figures_behind_credits(&mut self, watched: &mut Watched) -> Result<(), Error> {
        let from = self.run.phases.len();
        self.run.behind_credits = Some(from);
        for work in BOTH {
            self.rounds(work, &[Pattern::Sequential], self.budget.rounds)?;
        }
        self.pass(PAUSE, watched)?;
        if !watched.is_free(&self.target.counted()?) {
            self.run.phases.truncate(from);
            self.run.behind_credits = None;
        }
        Ok(())
    }
}
