//! Which rates last: what a disk does behind its buffers and credits, and whether that was seen.

use serde::Serialize;

use crate::budget::{Budget, WATCHED_BYTES};
use crate::credits::{FALL, credits};
use crate::drift::KNOWN_AFTER;
use crate::phase::{Pattern, Purpose, Work};
use crate::plateau::{LEVEL_ROUNDS, Level, first, last_step, level, margin, rounds};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Rate;

/// A buffer makes writes faster by at least this part.
const BUFFER_GAIN: f64 = 0.1;
/// Volumes with credits admit as many reads as writes, to such a part and what is not known,
const CREDITS_ALIKE: f64 = 0.03;
/// and none on sale more than this many per second.
const CREDITS_IOPS_MAX: f64 = 40_000.0;
/// A head makes reads of this many bytes at random places slower by this factor and more.
const SEEKS_BYTES: u32 = 128 << 10;
const SEEKS_TIMES: f64 = 2.0;
/// Only disks with a head take so long for a small read, in microseconds, and one does so few.
const HEAD_US: f64 = 3000.0;
const HEAD_IOPS: f64 = 1000.0;

/// What a disk takes faster than it can for long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Buffer {
    /// Its capacity, without the bytes that leave it while it fills, in bytes.
    pub bytes: u64,
    /// Bytes per second until it was full.
    pub before: f64,
    /// Bytes per second since.
    pub behind: f64,
}

/// Whether each of the four figures was seen to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lasting {
    /// Small reads.
    pub read_iops: bool,
    /// Small writes.
    pub write_iops: bool,
    /// Bytes read.
    pub read_bandwidth: bool,
    /// Bytes written.
    pub write_bandwidth: bool,
    /// Whether the disk may be a volume that is faster while it has credits.
    pub may_have_credits: bool,
    /// Whether writes were streamed for so long, or this many, that no buffer holds the rest.
    pub buffer_passed: bool,
}

impl Lasting {
    /// What each is called, and whether it was.
    pub fn figures(&self) -> [(&'static str, bool); 4] {
        [
            ("small reads", self.read_iops),
            ("small writes", self.write_iops),
            ("bytes read", self.read_bandwidth),
            ("bytes written", self.write_bandwidth),
        ]
    }
}

/// Which figures of `run` last, each being known to such a part of it.
pub(crate) fn lasting(run: &Run) -> Lasting {
    let spent = credits(run).is_some_and(|credits| credits.spent.is_some());
    let behind = run.behind_credits.is_some();
    let credits = spent || may_have_credits(run);
    let known = |work, pattern| {
        let level = level(run, work, pattern);
        let sure = margin(run, work, pattern) <= level.rate * budget(run).margin_max;
        let kept_up = !credits || behind || has_fallen(run, work, pattern);
        level.rounds >= LEVEL_ROUNDS && sure && !level.drifts && kept_up
    };
    let passed = behind || buffer_passed(run);
    Lasting {
        read_iops: spent || known(Work::Read, Pattern::Random),
        read_bandwidth: known(Work::Read, Pattern::Sequential),
        write_iops: spent || passed && known(Work::Write, Pattern::Random),
        write_bandwidth: passed && known(Work::Write, Pattern::Sequential),
        may_have_credits: credits,
        buffer_passed: passed,
    }
}

fn budget(run: &Run) -> Budget {
    Budget::named(&run.budget).unwrap_or(Budget::STANDARD)
}

/// The buffer that streamed writes have filled, if they became slower.
pub(crate) fn buffer(run: &Run) -> Option<Buffer> {
    if run.behind_credits.is_some() {
        return None;
    }
    let rounds = rounds(run, Work::Write, Pattern::Sequential);
    let rates: Vec<Rate> = rounds.iter().map(|round| round.samples.rate_in_all()).collect();
    let filling = rounds.get(..last_step(&rates))?;
    let bytes = f64::from(rounds.first()?.phase.request_bytes);
    let before = rates.first()?.mean * bytes;
    let behind = level(run, Work::Write, Pattern::Sequential).rate * bytes;
    let excess = |round: &&MeasuredPhase| {
        round.samples.bytes_written as f64 - behind * round.samples.seconds
    };
    let held: f64 = filling.iter().map(excess).sum();
    (before > behind * (1.0 + BUFFER_GAIN) && held > 0.0).then_some(Buffer {
        bytes: held as u64,
        before,
        behind,
    })
}

/// Whether no buffer is taken to hold the rest of what is written: this many bytes were, or for so
/// long and a buffer was seen to be full, or there can be no large one.
pub(crate) fn buffer_passed(run: &Run) -> bool {
    let Watched { seconds, bytes } = Watched::of(run);
    let sought = || has_head(run) || is_behind_buffer(run);
    bytes >= WATCHED_BYTES || seconds >= budget(run).watch && sought()
}

/// What a buffer may hold that was not looked for, in bytes, where it is emptied at up to two
/// thirds of the rate at which it is filled: none where there can be no large one, or one was
/// found.
pub(crate) fn buffer_left(run: &Run) -> Option<u64> {
    let sought = has_head(run) || is_behind_buffer(run);
    (!sought).then_some(Watched::of(run).bytes / 3)
}

/// Whether writes have filled a buffer: while they were streamed, or before.
fn is_behind_buffer(run: &Run) -> bool {
    let stream = rounds(run, Work::Write, Pattern::Sequential);
    let Some(bytes) = stream.first().map(|round| round.phase.request_bytes) else { return false };
    let level = level(run, Work::Write, Pattern::Sequential);
    let behind = (level.rate + level.margin) * f64::from(bytes);
    run.behind_credits.is_some()
        || buffer(run).is_some()
        || first_stream(run) > behind * (1.0 + BUFFER_GAIN)
}

/// Bytes per second that were written in sequence at first, or at least; 0 where none were.
fn first_stream(run: &Run) -> f64 {
    first(run, Work::Write, Pattern::Sequential).map_or(0.0, |first| {
        let Rate { mean, margin } = first.samples.rate();
        (mean - margin) * f64::from(first.phase.request_bytes)
    })
}

/// Whether a stream that goes on as long as it may will pass every buffer.
pub(crate) fn buffer_may_be_passed(run: &Run) -> bool {
    let Watched { seconds, bytes } = Watched::of(run);
    let budget = budget(run);
    let longest = budget.watch_longest;
    seconds < budget.watch
        || seconds < longest && bytes as f64 / seconds * longest >= WATCHED_BYTES as f64
}

/// The stream of writes.
struct Watched {
    seconds: f64,
    bytes: u64,
}

impl Watched {
    fn of(run: &Run) -> Self {
        let stream = rounds(run, Work::Write, Pattern::Sequential);
        Self {
            seconds: stream.iter().map(|round| round.samples.seconds).sum(),
            bytes: stream.iter().map(|round| round.samples.bytes_written).sum(),
        }
    }
}

/// Whether it behaves like a disk with a head, which has no large buffers and no credits.
pub(crate) fn has_head(run: &Run) -> bool {
    let alone = run.of(Purpose::Concurrency, Work::Read).map(|step| step.samples.latency.p50);
    let alone = alone.reduce(f64::min).unwrap_or(0.0);
    let is_slow = level(run, Work::Read, Pattern::Random).rate < HEAD_IOPS;
    alone >= HEAD_US && (is_slow || run.target.rotational == Some(true))
}

/// Whether reads in sequence were seen to be no faster than at random places: a volume without
/// credits is as slow as a disk with a head.
fn has_no_seeks(run: &Run) -> bool {
    let rate = |purpose| {
        let mut all = run.of(purpose, Work::Read);
        let found = all.find(|measured| measured.phase.request_bytes == SEEKS_BYTES);
        found.map(|measured| measured.samples.rate().mean)
    };
    let both = rate(Purpose::Stream).zip(rate(Purpose::Sizes));
    both.is_some_and(|(stream, random)| stream < random * SEEKS_TIMES)
}

/// Whether the disk may be a volume whose rate is one for both directions, and higher while it has
/// credits: those last for half an hour, and until then nothing tells it from one without.
pub(crate) fn may_have_credits(run: &Run) -> bool {
    let known = |work| {
        let Level { rate, margin, .. } = level(run, work, Pattern::Random);
        Rate { mean: rate, margin }
    };
    let now = [Work::Read, Work::Write].map(known);
    let before = [Work::Read, Work::Write].map(|work| first_rate(run, work, Pattern::Random));
    let is_volume = |[reads, writes]: [Rate; 2]| {
        let apart = (reads.mean - writes.mean).abs();
        (f64::MIN_POSITIVE..CREDITS_IOPS_MAX).contains(&reads.mean)
            && apart <= reads.mean * CREDITS_ALIKE + reads.margin.hypot(writes.margin)
    };
    let watched = run.phases.last().map_or(0.0, |last| last.samples.began);
    let has_head = has_head(run) && !has_no_seeks(run);
    [now, before].into_iter().any(is_volume) && !has_head && watched < KNOWN_AFTER
}

/// Whether the disk may be such a volume, and has used up its credits.
pub(crate) fn credits_used_up(run: &Run) -> bool {
    may_have_credits(run) && has_fallen(run, Work::Write, Pattern::Random)
}

/// Whether a figure is as much lower than at first as one of a volume without credits.
fn has_fallen(run: &Run, work: Work, pattern: Pattern) -> bool {
    level(run, work, pattern).rate * (1.0 + FALL) < first_rate(run, work, pattern).mean
}

/// The rate of one figure at the beginning; 0 where there is none.
fn first_rate(run: &Run, work: Work, pattern: Pattern) -> Rate {
    first(run, work, pattern).map_or_else(Rate::default, |first| first.samples.rate())
}
