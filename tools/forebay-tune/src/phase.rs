//! What is asked of a disk at a time: a load of one kind.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done over and over in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// A write and then a flush; only the flushes are recorded.
    Flush,
    /// Discards; of files, holes punched and flushed.
    Discard,
}

/// Where the requests of a phase go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// Anywhere.
    Random,
    /// Anywhere within the first MiB, which any cache holds.
    Cached,
}

/// What a file is before a phase writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The data of the measurement, yet to be written.
    Blank,
    /// The data of the measurement, written before.
    Written,
    /// A new file, which grows.
    Fresh,
    /// A new file, cut to its length in advance.
    Truncated,
    /// A new file whose space was reserved in advance.
    Allocated,
    /// A new file, filled in advance.
    Filled,
}

/// When a phase ends: once its time is over, and `requests_min` are done or three times its
/// time is over, or when it has written as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// How long it lasts.
    pub seconds: f64,
    /// This many requests are worth a longer time.
    pub requests_min: u64,
    /// The most bytes that it writes or discards; reads are not bounded.
    pub bytes_max: u64,
}

/// A load of one kind: this many requests in flight, of one size, all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What is done.
    pub work: Work,
    /// Where.
    pub pattern: Pattern,
    /// On what.
    pub file: FileState,
    /// Bytes of each request.
    pub request_bytes: u32,
    /// How far each request begins behind a multiple of its size, in bytes.
    pub misalignment: u32,
    /// Requests in flight, of all threads together.
    pub depth: u32,
    /// When it ends.
    pub bound: Bound,
}

impl Phase {
    /// How long it lasts, unless the disk is very slow.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.bound.seconds.max(0.0))
    }

    /// Whether it changes what is on the disk.
    pub fn writes(&self) -> bool {
        self.work != Work::Read
    }

    /// Some small read, to try what is there.
    pub(crate) fn probe() -> Self {
        Self {
            work: Work::Read,
            pattern: Pattern::Random,
            file: FileState::Written,
            request_bytes: 4096,
            misalignment: 0,
            depth: 1,
            bound: Bound { seconds: 0.0, requests_min: 0, bytes_max: 0 },
        }
    }

    /// Whether both are the same load, however long.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        Self { bound: other.bound, ..*self } == *other
    }
}

/// What a phase is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To lay out the data that later phases read and overwrite.
    Layout,
    /// One of the four figures, at the beginning.
    First,
    /// Throughput and latency by requests in flight.
    Concurrency,
    /// The same for requests of 128 KiB.
    Large,
    /// Small reads alongside small writes and alongside large ones, by requests in flight.
    Mix,
    /// Requests by size, at random places.
    Sizes,
    /// Bytes by size, in sequence.
    Stream,
    /// Writes that begin between sectors.
    Misaligned,
    /// Latency at a part of the knee, in percent.
    BelowKnee(u32),
    /// What a cache would answer.
    Cache,
    /// Writes to files of several states.
    FileStates,
    /// How long a flush takes alone.
    Flush,
    /// What flushes and discards take from reads: those reads alone, and alongside each of them.
    #[serde(rename = "taken")]
    Interference,
    /// A round of one of the four figures, over and over.
    Steady,
    /// A look for credits.
    Credits,
}

impl Purpose {
    /// What the phase does, in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Layout => "writing data",
            Self::First => "first figures",
            Self::Concurrency => "concurrency",
            Self::Large => "concurrency of large requests",
            Self::Mix => "reads alongside writes",
            Self::Sizes => "sizes",
            Self::Stream => "streams",
            Self::Misaligned => "alignment",
            Self::BelowKnee(_) => "latency below the knee",
            Self::Cache => "caches",
            Self::FileStates => "kinds of files",
            Self::Flush => "flushes",
            Self::Interference => "flushes and discards alongside reads",
            Self::Steady => "figures",
            Self::Credits => "credits",
        }
    }
}
