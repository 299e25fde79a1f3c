//! What a run says about the disk.

mod interference;
mod knee;
mod sector;
mod seeks;
mod sizes;

use serde::Serialize;

use crate::credits::{Credits, Spent, credits};
use crate::drift::{Steadiness, steadiness};
use crate::error::Error;
use crate::phase::{FileState, Pattern, Purpose, Work};
use crate::plateau::{first, level, margin};
use crate::run::{MeasuredPhase, Run};
use crate::samples::{LatencyFigures, Rate};
use crate::sustained::{self, Buffer, Lasting};

pub use interference::DiscardCost;
pub use knee::{Knee, LatencyAt, Mix, depth_full};
pub use sector::Sector;
pub use seeks::Seeks;
pub use sizes::{CostPoint, Saturation, Sizes, saturation_of};

pub(crate) use interference::DISCARDS_MIN;
pub(crate) use knee::knee;
pub(crate) use sector::sector;
pub(crate) use sizes::saturation;

/// A rate is not resolved better than to this part.
const RESOLUTION: f64 = 0.001;
/// What waits in a disk with a head when a round ends is far away, and takes longer by up to this part.
const FAR_AWAY: f64 = 0.1;

/// One of the four figures of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Per second, at the end of the measurement.
    pub value: f64,
    /// Half of its 95 % confidence interval.
    pub margin: f64,
    /// Per second, at the beginning.
    pub first: f64,
    /// Bytes of the requests.
    pub request_bytes: u32,
}

impl Figure {
    /// The margin as a part of the value.
    pub fn uncertainty(&self) -> f64 {
        self.margin / self.value.max(1.0)
    }
}

/// Bytes per second of a stream into files of each kind, where measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FileStates {
    /// Over data written before.
    pub written: Option<f64>,
    /// Into a file that grows.
    pub fresh: Option<f64>,
    /// Into a file cut to its length in advance.
    pub truncated: Option<f64>,
    /// Into a file whose space was reserved in advance.
    pub allocated: Option<f64>,
}

/// What a run says about the disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Small reads per second.
    pub read_iops: Figure,
    /// Small writes per second.
    pub write_iops: Figure,
    /// Bytes read per second.
    pub read_bandwidth: Figure,
    /// Bytes written per second.
    pub write_bandwidth: Figure,
    /// Reads by size.
    pub read: Sizes,
    /// Writes by size.
    pub write: Sizes,
    /// The sector.
    pub sector: Sector,
    /// Whether it has a head that seeks; nothing where that was not measured.
    pub seeks: Option<Seeks>,
    /// Reads by requests in flight.
    pub read_knee: Knee,
    /// Writes by requests in flight.
    pub write_knee: Knee,
    /// Reads of 128 KiB by requests in flight.
    pub large_reads: Vec<LatencyAt>,
    /// Writes of 128 KiB by requests in flight.
    pub large_writes: Vec<LatencyAt>,
    /// Small reads alongside small writes and alongside large ones, by requests in flight.
    pub mixes: Vec<Mix>,
    /// Latency below the knee.
    pub below_knee: Vec<LatencyAt>,
    /// The median latency of one small read at a time, in microseconds.
    pub base_latency_us: f64,
    /// The same within a MiB read over and over, which a cache would answer.
    pub cached_latency_us: Option<f64>,
    /// How busy the threads were while small reads were counted, from 0 to 1.
    pub processor: f64,
    /// Streams into files.
    pub file_states: FileStates,
    /// How long flushes take alone, each after a small write.
    pub flush: Option<LatencyFigures>,
    /// The disk time of a flush, in microseconds.
    pub flush_us: Option<f64>,
    /// The disk time of discards.
    pub discard: Option<DiscardCost>,
    /// Which of the four figures were seen to last.
    pub lasting: Lasting,
    /// What is known of credits, where they were looked for.
    pub credits: Option<Credits>,
    /// The buffer that writes have filled, if they were faster before.
    pub buffer: Option<Buffer>,
    /// Whether reads keep their rate.
    pub read_steadiness: Steadiness,
    /// Whether writes keep their rate.
    pub write_steadiness: Steadiness,
}

impl Fit {
    /// What is known of its credits, if they ran out.
    pub fn spent(&self) -> Option<Spent> {
        self.credits.and_then(|credits| credits.spent)
    }
}

/// What `run` says about the disk.
///
/// # Errors
/// The run was interrupted too early, or so few requests were counted that one of the four figures
/// is not known at all.
pub fn fit(run: &Run) -> Result<Fit, Error> {
    let read_knee = knee(run, Work::Read);
    let read_iops = figure(run, Work::Read, Pattern::Random)?;
    let write_iops = figure(run, Work::Write, Pattern::Random)?;
    let flush_us = interference::flush(run, write_iops);
    let read_bandwidth = figure(run, Work::Read, Pattern::Sequential)?;
    let write_bandwidth = figure(run, Work::Write, Pattern::Sequential)?;
    let mut read = sizes::sizes(run, Work::Read, read_iops, read_bandwidth);
    let mut write = sizes::sizes(run, Work::Write, write_iops, write_bandwidth);
    let seeks = seeks::seeks(run, &read.stream);
    if seeks.and_then(|seeks| seeks.known()) == Some(true) {
        // what streams cost says nothing of requests at random places
        [&mut read, &mut write].into_iter().for_each(|sizes| sizes.cost.clear());
    }
    let credits = credits(run);
    let lasting = |figure: Figure| match credits.and_then(|credits| credits.spent) {
        Some(spent) => {
            let Rate { mean: value, margin } = spent.lasting;
            Figure { value, margin, ..figure }
        }
        None => figure,
    };
    Ok(Fit {
        read_iops: lasting(read_iops),
        write_iops: lasting(write_iops),
        read_bandwidth,
        write_bandwidth,
        read,
        write,
        sector: sector(run),
        seeks,
        base_latency_us: read_knee.base_us,
        read_knee,
        write_knee: knee(run, Work::Write),
        large_reads: knee::large(run, Work::Read),
        large_writes: knee::large(run, Work::Write),
        mixes: knee::mixes(run),
        below_knee: knee::below(run),
        cached_latency_us: run
            .of(Purpose::Cache, Work::Read)
            .map(|measured| measured.samples.latency.p50)
            .next(),
        processor: last(run, Work::Read, Pattern::Random)
            .map_or(0.0, |measured| measured.samples.processor),
        file_states: file_states(run),
        flush: run.of(Purpose::Flush, Work::Flush).map(|measured| measured.samples.latency).next(),
        flush_us,
        discard: interference::discard(run, flush_us),
        credits,
        lasting: sustained::lasting(run),
        buffer: sustained::buffer(run),
        read_steadiness: steadiness(run, Work::Read),
        write_steadiness: steadiness(run, Work::Write),
    })
}

fn last(run: &Run, work: Work, pattern: Pattern) -> Option<&MeasuredPhase> {
    run.of(Purpose::Steady, work).filter(|measured| measured.phase.pattern == pattern).last()
}

fn figure(run: &Run, work: Work, pattern: Pattern) -> Result<Figure, Error> {
    let early = || {
        Error::Incomplete(String::from(
            "the run ended before the disk was measured; continue it with --resume",
        ))
    };
    let measured = last(run, work, pattern).ok_or_else(early)?;
    let first = first(run, work, pattern);
    let unit = |measured: &MeasuredPhase| match pattern {
        Pattern::Sequential => f64::from(measured.phase.request_bytes),
        _ => 1.0,
    };
    let level = level(run, work, pattern);
    // independent of each other (JCGM 100:2008, 5.1.2)
    let margin = margin(run, work, pattern).hypot(systematic(run, work, pattern) * level.rate);
    if margin.is_nan() || margin >= level.rate {
        return Err(unknown(run, measured));
    }
    Ok(Figure {
        value: level.rate * unit(measured),
        margin: margin * unit(measured),
        first: first.map_or(0.0, |first| first.samples.rate().mean * unit(first)),
        request_bytes: measured.phase.request_bytes,
    })
}

/// The part of a rate that the method cannot resolve: what it counts, what a head has left for
/// later, and what more requests in flight would add. Where requests go to one of many places at
/// random, the disk idles by a part that halves when they double: as much is missing as the last
/// doubling has added.
fn systematic(run: &Run, work: Work, pattern: Pattern) -> f64 {
    let measured = last(run, work, pattern);
    let counted = measured.map_or(0, |measured| measured.samples.requests);
    let steps = knee(run, work).steps;
    let depth = measured.map_or(0, |measured| measured.phase.depth);
    let reached: Vec<&LatencyAt> = steps.iter().filter(|step| step.depth <= depth).collect();
    let missing = match reached.as_slice() {
        [.., before, last] if pattern == Pattern::Random => {
            let sure = before.rate + before.margin.hypot(last.margin);
            (last.rate / sure.max(f64::MIN_POSITIVE) - 1.0).max(0.0)
        }
        _ => 0.0,
    };
    let left = if pattern == Pattern::Random && sustained::has_head(run) { depth } else { 0 };
    let later = FAR_AWAY * f64::from(left);
    RESOLUTION + (1.0 + later) / counted.max(1) as f64 + missing
}

/// A figure of which nothing is known: a file that states it would stop the disk.
fn unknown(run: &Run, measured: &MeasuredPhase) -> Error {
    let (what, advice) = match measured.phase.work {
        Work::Read => ("reads", String::from("measure longer, with a longer --budget")),
        _ => (
            "writes",
            format!(
                "the write limit of {} bytes was used up; raise it with --write-limit",
                run.written_max
            ),
        ),
    };
    Error::Incomplete(format!(
        "too few {what} of {} bytes were counted to know their rate: {advice}",
        measured.phase.request_bytes
    ))
}

fn file_states(run: &Run) -> FileStates {
    let of = |state: FileState| {
        let mut all = run.of(Purpose::FileStates, Work::Write);
        let measured = all.find(|measured| measured.phase.file == state)?;
        let rate = measured.samples.rate().mean * f64::from(measured.phase.request_bytes);
        (rate > 0.0).then_some(rate)
    };
    FileStates {
        written: of(FileState::Written),
        fresh: of(FileState::Fresh),
        truncated: of(FileState::Truncated),
        allocated: of(FileState::Allocated),
    }
}
