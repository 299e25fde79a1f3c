//! The order of phases, each chosen by what the earlier ones found.

mod auxiliary;
mod curves;
mod rounds;
mod watch;

pub use curves::LARGE_REQUEST_BYTES;

use std::collections::VecDeque;

use crate::budget::{Budget, Ledger};
use crate::error::Error;
use crate::fit::{Knee, Saturation, knee, saturation, sector};
use crate::phase::{Bound, FileState, Pattern, Phase, Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Samples;
use crate::target::Target;

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;
/// Size of small requests, unless the disk needs larger ones.
const SMALL: u32 = 4 * KIB;
const SIZE_MIN: u32 = 512;
const SIZE_MAX: u32 = 4 * MIB;
/// Requests in flight before it is known how many the disk needs, and the most.
const DEPTH_FIRST: u32 = 128;
const DEPTH_MAX: u32 = 4096;
/// The least while rates are measured: a disk of several needs all of them busy.
const DEPTH_MIN: u32 = 32;
/// Large requests are of this size at least, and this many per second, lest a slow disk does few.
const BULK_MIN: u32 = 128 * KIB;
const BULK_RATE_MIN: f64 = 50.0;
/// Bytes in flight, so that large requests do not wait for seconds.
const IN_FLIGHT_BYTES: u32 = 16 * MIB;
/// More requests in flight do not help when they add no more than this.
const GAIN_MIN: f64 = 1.005;
/// Small requests in flight for the figures: this many times those that seemed enough for a moment.
const DEEPER: u32 = 4;
/// And no more than the disk does in this many seconds: one with a head serves first what has
/// waited for long, wherever it is.
const WAIT_SECONDS: f64 = 0.5;
/// With fewer requests a phase on a slow disk goes on.
const REQUESTS_MIN: u64 = 100;
/// With less data than this, requests meet each other.
const LAYOUT_MIN: u64 = 8 << 20;
/// All sizes of streams are passed so often, there and back by turns, and so often at most.
const STREAM_PASSES: u32 = 2;
const STREAM_PASSES_MAX: u32 = 6;
/// And no more begin after this many times what was planned, as on a slow disk, whose last requests
/// take long.
const STREAM_LONGER: f64 = 3.0;
/// A pass writes this many requests of a size, and this many times those in flight, lest they are
/// too few to tell, but this part of the bytes left at most.
const STREAM_REQUESTS_MIN: u64 = 32;
const STREAM_TURNS: u64 = 4;
const STREAM_PART: u64 = 16;
const BOTH: [Work; 2] = [Work::Read, Work::Write];

/// How far the measurement is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is measured now.
    pub purpose: Purpose,
    /// The phase that begins.
    pub phase: Phase,
    /// Planned seconds of what is done.
    pub seconds_done: f64,
}

/// Measures `target` within `budget`. Each phase is added to `run` when it ends, so that an error loses
/// none. A `run` with phases of an interrupted measurement is continued. `watch` is called before each
/// phase, except for phases that `run` already has.
///
/// # Errors
/// What [`Target::run`] or `watch` add, or that the disk is too slow to be measured.
pub fn measure(
    target: &mut dyn Target,
    budget: &Budget,
    run: &mut Run,
    watch: &mut dyn FnMut(&Run, &Progress) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut ledger = Ledger::new(budget);
    ledger.spend(run.written_before + run.grown() + run.looked(), 0.0);
    run.complete = false;
    let behind_credits = run.behind_credits.take();
    let earlier = std::mem::take(&mut run.phases).into();
    let mut measuring = Measuring {
        target,
        budget: *budget,
        ledger,
        run,
        earlier,
        watch,
        seconds_done: 0.0,
        clock: 0.0,
    };
    let done = measuring.all();
    let left = measuring.earlier;
    if done.is_ok() {
        run.complete = true;
    } else if !left.is_empty() {
        // an end on the way to where the earlier measurement was loses nothing of it
        run.phases.extend(left);
        run.behind_credits = behind_credits;
    }
    done
}

struct Measuring<'a> {
    target: &'a mut dyn Target,
    budget: Budget,
    ledger: Ledger,
    run: &'a mut Run,
    /// Phases of an interrupted measurement that are still to be asked for.
    earlier: VecDeque<MeasuredPhase>,
    watch: &'a mut dyn FnMut(&Run, &Progress) -> Result<(), Error>,
    seconds_done: f64,
    /// When the last phase ended, on the clock of the target.
    clock: f64,
}

impl Measuring<'_> {
    fn all(&mut self) -> Result<(), Error> {
        self.lay_out()?;
        // Reads before most writes: a disk that empties a buffer has less time for them.
        self.ladders(Work::Read)?;
        self.read_figures()?;
        self.ladders(Work::Write)?;
        self.misaligned()?;
        self.auxiliary()?;
        self.interference()?;
        self.mixes()?;
        self.until_steady()?;
        self.write_figures()?;
        self.look_for_credits()
    }

    /// One direction by requests in flight and by their size.
    fn ladders(&mut self, work: Work) -> Result<(), Error> {
        self.rates(Purpose::First, work, self.least(), DEPTH_FIRST, MIB, self.budget.first)?;
        self.concurrency(work)?;
        if work == Work::Read {
            self.below_knee()?;
        }
        // streams first: small writes are compared by size, which half a buffer would mix up
        self.streams(work)?;
        self.sizes(work)?;
        self.large(work)
    }

    /// A phase on the data laid out, with a fair part of the bytes to write.
    fn phase(&self, work: Work, pattern: Pattern, bytes: u32, depth: u32, seconds: f64) -> Phase {
        let bytes_max = if work == Work::Read { 0 } else { self.ledger.share(seconds) };
        Phase {
            work,
            pattern,
            file: FileState::Written,
            request_bytes: bytes,
            misalignment: 0,
            depth,
            bound: Bound { seconds, requests_min: REQUESTS_MIN, bytes_max },
        }
    }

    fn run(&mut self, purpose: Purpose, phase: Phase) -> Result<&Samples, Error> {
        let earlier = if purpose == Purpose::Layout { None } else { self.take(purpose, &phase) };
        let measured = match earlier {
            Some(measured) => measured,
            None => {
                self.announce(purpose, phase)?;
                MeasuredPhase { purpose, phase, samples: self.target.run(&phase)? }
            }
        };
        self.keep(measured);
        self.latest()
    }

    fn latest(&self) -> Result<&Samples, Error> {
        self.run.phases.last().map(|measured| &measured.samples).ok_or_else(Error::nothing_measured)
    }

    /// Runs two phases at the same time, which end when `phase` does; what came of that one.
    fn run_concurrently(
        &mut self,
        purpose: Purpose,
        background: Phase,
        phase: Phase,
    ) -> Result<&Samples, Error> {
        let (first, second) = match self.take(purpose, &background).zip(self.take(purpose, &phase))
        {
            Some(earlier) => earlier,
            None => {
                self.announce(purpose, phase)?;
                let (first, second) = self.target.run_concurrently(&background, &phase)?;
                let measured = |phase, samples| MeasuredPhase { purpose, phase, samples };
                (measured(background, first), measured(phase, second))
            }
        };
        self.keep(first);
        self.keep(second);
        self.latest()
    }

    fn announce(&mut self, purpose: Purpose, phase: Phase) -> Result<(), Error> {
        let progress = Progress { purpose, phase, seconds_done: self.seconds_done };
        (self.watch)(self.run, &progress)
    }

    fn keep(&mut self, measured: MeasuredPhase) {
        let MeasuredPhase { purpose, phase, samples } = &measured;
        // Laying out is not one of the phases that share the bytes.
        let shares = phase.writes() && *purpose != Purpose::Layout;
        self.ledger.spend(samples.bytes_written, if shares { phase.bound.seconds } else { 0.0 });
        self.seconds_done += phase.bound.seconds;
        self.clock = samples.began + samples.seconds;
        self.run.phases.push(measured);
    }

    /// The phase from an interrupted measurement, if it comes next there.
    fn take(&mut self, purpose: Purpose, phase: &Phase) -> Option<MeasuredPhase> {
        let next = self.earlier.pop_front()?;
        if next.purpose == purpose && next.phase.is_as(phase) {
            return Some(next);
        }
        self.earlier.clear();
        None
    }

    fn lay_out(&mut self) -> Result<(), Error> {
        // What was laid out earlier is gone, and was written all the same.
        let gone = self.earlier.front().filter(|first| first.purpose == Purpose::Layout);
        let gone = gone.map(|first| first.samples.bytes_written);
        self.ledger.spend(gone.unwrap_or(0), 0.0);
        let room = self.target.info().room;
        let bytes_max = self.budget.layout_bytes.min(room).min(self.ledger.ladder_left / 2);
        if bytes_max < LAYOUT_MIN {
            return Err(Error::Incomplete(format!(
                "the write limit is {bytes_max} bytes, and a measurement needs {LAYOUT_MIN}; \
                 raise it with --write-limit"
            )));
        }
        let seconds = self.budget.layout_seconds;
        let layout = Phase {
            file: FileState::Blank,
            bound: Bound { seconds, requests_min: 4 * REQUESTS_MIN, bytes_max },
            ..self.phase(Work::Write, Pattern::Sequential, MIB, 16, seconds)
        };
        let written = self.run(Purpose::Layout, layout)?.bytes_written;
        if let Some(bytes) = gone {
            self.earlier.pop_front();
            self.run.written_before += bytes;
        }
        if written >= LAYOUT_MIN {
            return Ok(());
        }
        Err(Error::Incomplete(format!(
            "only {written} bytes of data could be written in {seconds} s; use a longer budget, or \
             free some space"
        )))
    }

    /// Small requests and large ones, for the figures of one direction.
    fn rates(
        &mut self,
        purpose: Purpose,
        work: Work,
        small: u32,
        depth: u32,
        bulk: u32,
        seconds: f64,
    ) -> Result<(), Error> {
        self.run(purpose, self.phase(work, Pattern::Random, small, depth, seconds))?;
        let depth = depth_of(bulk, depth);
        self.run(purpose, self.phase(work, Pattern::Sequential, bulk, depth, seconds))?;
        Ok(())
    }

    /// More and more requests in flight, until that does not help.
    fn concurrency(&mut self, work: Work) -> Result<(), Error> {
        let (mut best, mut in_vain, mut depth) = (0.0, 0, 1);
        let seconds = self.budget.concurrency;
        while depth <= depth_max(best) && (in_vain < 2 || depth <= DEPTH_MIN) {
            let phase = self.phase(work, Pattern::Random, self.least(), depth, seconds);
            let rate = self.run(Purpose::Concurrency, phase)?.rate().mean;
            in_vain = if rate > best * GAIN_MIN { 0 } else { in_vain + 1 };
            best = f64::max(best, rate);
            depth *= 2;
        }
        Ok(())
    }

    fn below_knee(&mut self) -> Result<(), Error> {
        let Knee { requests, depth_full, .. } = knee(self.run, Work::Read);
        let requests = f64::from(requests.unwrap_or(depth_full));
        for percent in [70, 90] {
            let depth = (requests * f64::from(percent) / 100.0).round().max(1.0) as u32;
            let phase =
                self.phase(Work::Read, Pattern::Random, self.least(), depth, self.budget.side);
            self.run(Purpose::BelowKnee(percent), phase)?;
        }
        Ok(())
    }

    /// Random requests of all sizes.
    fn sizes(&mut self, work: Work) -> Result<(), Error> {
        let depth = self.depth(work);
        for bytes in self.ladder(SIZE_MIN) {
            let (depth, seconds) = (depth_of(bytes, depth), self.budget.sizes);
            let phase = self.phase(work, Pattern::Random, bytes, depth, seconds);
            self.run(Purpose::Sizes, phase)?;
        }
        Ok(())
    }

    /// Streams of all sizes from small requests on, there and back, and again until it is known
    /// from which size on they reach their bandwidth.
    fn streams(&mut self, work: Work) -> Result<(), Error> {
        let depth = self.depth(work);
        let seconds = self.budget.stream / f64::from(STREAM_PASSES);
        let mut sizes: Vec<u32> = self.ladder(SMALL).collect();
        let planned = self.budget.stream * sizes.len() as f64;
        let until = self.clock + planned * STREAM_LONGER;
        for pass in 1..=STREAM_PASSES_MAX {
            for &bytes in &sizes {
                let depth = depth_of(bytes, depth);
                let mut phase = self.phase(work, Pattern::Sequential, bytes, depth, seconds);
                if work == Work::Write {
                    let few = STREAM_REQUESTS_MIN.max(STREAM_TURNS * u64::from(depth));
                    let few = few * u64::from(bytes);
                    let few = few.min(self.ledger.ladder_left / STREAM_PART);
                    phase.bound.bytes_max = phase.bound.bytes_max.max(few);
                }
                self.run(Purpose::Stream, phase)?;
            }
            sizes.reverse();
            let is_known = saturation(self.run, work).bytes.is_some();
            if pass >= STREAM_PASSES && (is_known || self.clock >= until) {
                break;
            }
        }
        Ok(())
    }

    /// Powers of two from `least`, or from what the file system takes.
    fn ladder(&self, least: u32) -> impl Iterator<Item = u32> + use<> {
        let first = least.max(self.target.info().alignment.next_power_of_two());
        std::iter::successors(Some(first), |bytes| bytes.checked_mul(2))
            .take_while(|&bytes| bytes <= SIZE_MAX)
    }

    /// The size of small requests: 4 KiB, or what the file system takes.
    fn least(&self) -> u32 {
        SMALL.max(self.target.info().alignment)
    }

    /// The size of small requests for the figures: 4 KiB, or a sector where writes need that.
    fn small(&self, work: Work) -> u32 {
        let sector = if work == Work::Write { sector(self.run).measured() } else { 0 };
        self.least().max(sector)
    }

    /// How many small requests keep the disk busy.
    fn depth(&self, work: Work) -> u32 {
        let Knee { depth_full, rate, .. } = knee(self.run, work);
        depth_full.saturating_mul(DEEPER).clamp(DEPTH_MIN, depth_max(rate))
    }

    /// The size of requests that reach the bandwidth.
    fn bulk(&self, work: Work) -> u32 {
        let Saturation { bytes, bandwidth } = saturation(self.run, work);
        let often = (bandwidth / BULK_RATE_MIN) as u32;
        let most = (often / 2 + 1).next_power_of_two().clamp(BULK_MIN, SIZE_MAX);
        u32::try_from(bytes.unwrap_or(0).saturating_mul(2)).unwrap_or(most).max(MIB).min(most)
    }
}

/// How many requests of `bytes` are in flight where `depth` small ones keep the disk busy.
fn depth_of(bytes: u32, depth: u32) -> u32 {
    depth.min(IN_FLIGHT_BYTES / bytes).max(4)
}

/// The most small requests in flight at a disk that does `rate` of them per second.
fn depth_max(rate: f64) -> u32 {
    ((rate * WAIT_SECONDS) as u32).clamp(DEPTH_MIN, DEPTH_MAX)
}
