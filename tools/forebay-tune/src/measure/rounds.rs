//! The four figures: each is watched round by round, until what a disk does for a while only is
//! over.

use super::{BOTH, MIB, Measuring, depth_of};
use crate::budget::WATCHED_BYTES;
use crate::drift;
use crate::error::Error;
use crate::phase::{Pattern, Purpose, Work};
use crate::plateau::{LEVEL_ROUNDS, level};
use crate::sustained::{buffer_may_be_passed, buffer_passed, credits_used_up};

/// A round writes at most this part of the bytes that a stream is watched for, so that a fast disk
/// has several.
const ROUND_PART: u64 = 8;
/// Small requests go on until this many times those in flight are done, so that a disk with a head
/// has to serve those that are far away too.
const TURNS: u32 = 4;
/// The stream takes at most this part of the bytes left; small writes need the rest.
const STREAM_PART: f64 = 0.9;
/// Rounds go on for this many times the rounds planned where their rate is not known well.
const ROUNDS_MORE: u32 = 4;
/// And for this many more at least, however long they take: one that is off makes a step among few.
const ROUNDS_MORE_MIN: u32 = 3;
/// A rate known to this part of what the budget asks for needs no more rounds.
const MARGIN_ENOUGH: f64 = 0.4;

impl Measuring<'_> {
    /// The same reads and writes over and over, until both are known to be steady; only where the
    /// budget has rounds for that.
    pub(super) fn until_steady(&mut self) -> Result<(), Error> {
        for _ in 0..self.budget.steady_rounds {
            if BOTH.into_iter().all(|work| drift::steadiness(self.run, work).is_known()) {
                break;
            }
            for work in BOTH {
                self.round(work, Pattern::Random, self.budget.steady_round, u64::MAX)?;
            }
        }
        if self.budget.steady_rounds > 0 { self.read_figures() } else { Ok(()) }
    }

    pub(super) fn read_figures(&mut self) -> Result<(), Error> {
        self.rounds(Work::Read, &[Pattern::Random, Pattern::Sequential], self.budget.rounds)
    }

    /// Bytes left with which a stream writes more than any buffer holds.
    pub(super) fn bytes_to_watch(&self) -> u64 {
        (WATCHED_BYTES as f64 / STREAM_PART) as u64 + u64::from(MIB)
    }

    /// Writes in sequence until the buffer is passed, and small writes behind it: one after the
    /// other, for a disk that rests empties its buffer.
    pub(super) fn write_figures(&mut self) -> Result<(), Error> {
        let bytes = self.ledger.bytes_left;
        self.stream_writes(bytes - (bytes as f64 * STREAM_PART) as u64)?;
        self.rounds(Work::Write, &[Pattern::Random], self.budget.rounds * 2)?;
        if credits_used_up(self.run) { self.read_figures() } else { Ok(()) }
    }

    /// Rounds of one direction, where there are several patterns in turns: as many as planned, and
    /// more while the rate is not known well. On a disk whose last requests take long time passes
    /// between rounds, and counts.
    pub(super) fn rounds(
        &mut self,
        work: Work,
        patterns: &[Pattern],
        planned: u32,
    ) -> Result<(), Error> {
        let enough = self.budget.margin_max * MARGIN_ENOUGH;
        let turns = planned * ROUNDS_MORE * patterns.len() as u32;
        let until = self.clock + f64::from(turns) * self.budget.round;
        let bytes_max = self.ledger.bytes_left / u64::from(planned);
        for round in 0..planned * ROUNDS_MORE {
            for &pattern in patterns {
                let level = level(self.run, work, pattern);
                let sure = !level.drifts && level.margin <= level.rate * enough;
                let known = level.rounds >= LEVEL_ROUNDS && sure;
                let spent = work == Work::Write && self.ledger.bytes_left < bytes_max / 2;
                let late = self.clock >= until && round >= planned + ROUNDS_MORE_MIN;
                if round >= planned && (known || spent || late) {
                    continue;
                }
                self.round(work, pattern, self.budget.round, bytes_max)?;
            }
        }
        Ok(())
    }

    /// Streams writes while the rate is not level, or a buffer may still hold what was written;
    /// leaves this many of the bytes.
    fn stream_writes(&mut self, bytes_kept: u64) -> Result<(), Error> {
        let (mut seconds, mut last) = (0.0, 0);
        let budget = self.budget;
        let enough = budget.margin_max * MARGIN_ENOUGH;
        while self.ledger.bytes_left > bytes_kept {
            let level = level(self.run, Work::Write, Pattern::Sequential);
            let sure = level.margin <= level.rate * enough || seconds >= budget.watch;
            let is_level = level.rounds >= LEVEL_ROUNDS && sure || seconds >= budget.watch_longest;
            let watched = buffer_passed(self.run) || !buffer_may_be_passed(self.run);
            if is_level && watched {
                break;
            }
            let most = self.ledger.bytes_left - bytes_kept;
            if most < last / 2 {
                break;
            }
            seconds += self.round(Work::Write, Pattern::Sequential, budget.round, most)?;
            last = self.run.phases.last().map_or(0, |last| last.samples.bytes_written);
            if last == 0 {
                break;
            }
        }
        Ok(())
    }

    /// A round that writes at most `bytes_max`; says how many seconds it took.
    fn round(
        &mut self,
        work: Work,
        pattern: Pattern,
        seconds: f64,
        bytes_max: u64,
    ) -> Result<f64, Error> {
        let (small, depth) = (self.small(work), self.depth(work));
        let bulk = self.bulk(work);
        let (bytes, depth) = match pattern {
            Pattern::Sequential => (bulk, depth_of(bulk, depth)),
            _ => (small, depth),
        };
        let mut phase = self.phase(work, pattern, bytes, depth, seconds);
        if pattern == Pattern::Random {
            phase.bound.requests_min = phase.bound.requests_min.max((TURNS * depth).into());
        }
        if work == Work::Write {
            let most = self.ledger.bytes_left.min(bytes_max);
            phase.bound.bytes_max = most.min((WATCHED_BYTES / ROUND_PART).max(u64::from(MIB)));
        }
        Ok(self.run(Purpose::Steady, phase)?.seconds)
    }
}
