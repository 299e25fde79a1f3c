//! What the requests of a job do, one after the other.

use std::num::NonZeroU64;
use std::time::Duration;

use forebay_core::Op;

use super::offsets::{Cut, Offsets};
use crate::job_file::{Job, JobKind};
use crate::rng::Rng;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A request to the job's own file.
    Io {
        /// What the request does.
        op: Op,
        /// The first byte, counted from the beginning of the file; 0 for a flush. Of a
        /// [`JobKind::Delete`] counted through all files of the job, each of its size.
        offset: u64,
        /// The number of bytes; 0 for a flush.
        len: u32,
    },
    /// Keep the thread busy for so long.
    Cpu(Duration),
    /// Remove the file with this number, counted from 0.
    Unlink(u64),
}

impl Work {
    /// Makes the file durable.
    pub(super) const FLUSH: Self = Self::Io { op: Op::Flush, offset: 0, len: 0 };
}

/// The source of a job's requests, shared by its fibers.
#[derive(Clone, Debug)]
pub(super) enum RequestSource {
    Transfer(Op, Offsets),
    Flush,
    Unlink { next_file: u64 },
    Cpu(Duration),
}

impl RequestSource {
    /// The requests of `job`, with random places taken from `rng`.
    pub(super) fn new(job: &Job, rng: Rng) -> Self {
        let (size, reqsize) = (job.file_size, job.reqsize);
        match job.kind {
            JobKind::SeqRead => Self::Transfer(Op::Read, Offsets::wrapping(size, reqsize)),
            JobKind::Overwrite => Self::Transfer(Op::Write, Offsets::wrapping(size, reqsize)),
            JobKind::RandRead => Self::Transfer(Op::Read, Offsets::random(size, reqsize, rng)),
            JobKind::RandWrite => Self::Transfer(Op::Write, Offsets::random(size, reqsize, rng)),
            JobKind::Append => Self::Transfer(Op::Write, Offsets::growing(size, reqsize)),
            JobKind::Discard => Self::Transfer(Op::Discard, Offsets::half_away(size, reqsize)),
            JobKind::Delete => Self::Transfer(Op::Discard, Offsets::from_ends(size, Cut::of(job))),
            JobKind::Fsync => Self::Flush,
            JobKind::Unlink => Self::Unlink { next_file: 0 },
            JobKind::Cpu => Self::Cpu(job.execution_time),
        }
    }

    /// The most requests of a job.
    pub(super) fn most(job: &Job) -> u64 {
        let limit = job.limit.map_or(u64::MAX, NonZeroU64::get);
        let Some(files) = job.deletions() else { return limit };
        if job.kind == JobKind::Unlink {
            return limit.min(files);
        }
        let cut = Cut::of(job);
        let all = files.saturating_mul(cut.parts(job.file_size));
        if job.steps.is_none() {
            return limit.min(all);
        }
        // the limit is of whole requests
        let bytes = limit.saturating_mul(job.reqsize.into());
        let (whole, rest) = (bytes / job.file_size.max(1), bytes % job.file_size.max(1));
        let some = whole.saturating_mul(cut.parts(job.file_size)).saturating_add(cut.parts(rest));
        all.min(some)
    }

    /// The next request.
    pub(super) fn next(&mut self) -> Work {
        match self {
            Self::Transfer(op, offsets) => {
                let (offset, len) = offsets.next();
                Work::Io { op: *op, offset, len }
            }
            Self::Flush => Work::FLUSH,
            Self::Unlink { next_file } => {
                *next_file += 1;
                Work::Unlink(*next_file - 1)
            }
            Self::Cpu(duration) => Work::Cpu(*duration),
        }
    }
}
