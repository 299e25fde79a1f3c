//! A job on a thread: its load, its data, its records.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay::engine::{Operation, SEGMENTS_MAX};
use forebay::{AlignedBuf, DirectFile};
use forebay_core::{Op, Parts, Time};
use forebay_load::Rng;
use forebay_load::generator::Generator;
use forebay_load::job_file::{Job, Pace};
use forebay_load::recorder::Recorder;

use crate::bench::storage::{BUFFER_ALIGNMENT, Data, Extent, Steps, fill_randomly};

/// Buffers made before the run take at most so much; more are made when they are needed.
const PREPARED_BYTES_MAX: u64 = 128 << 20;

/// A job on a thread.
#[derive(Debug)]
pub(in crate::bench) struct ThreadJob {
    /// The index of the job in its file.
    pub(super) index: usize,
    /// The index of its class there.
    pub(super) class: usize,
    pub(super) generator: Generator,
    pub(super) recorder: Recorder,
    pub(super) failures: Failures,
    data: Data,
    /// Bytes of each buffer of a vectored request.
    segment: Option<u64>,
    /// Bytes of each of the files that an unlink job removes.
    pub(super) removed_len: u64,
    /// Whether it deletes files, and since when all of them are gone.
    deletes: bool,
    deleted_at: Option<Time>,
    /// The file that a step was last taken from, by its place among the job's.
    opened: Option<(usize, DirectFile)>,
    growth: Option<Growth>,
    /// Operations that are not under way, to be used again with their buffers.
    spare: Vec<Operation>,
    rng: Rng,
}

/// A file that is made longer ahead of the writes behind its end: to a hint at
/// first, and then to twice its length each time, as Seastar does.
#[derive(Debug)]
struct Growth {
    hint: u64,
    size: u64,
}

impl Growth {
    /// How long to make the file for a write that ends at `end`, if it is too
    /// short.
    fn ahead_of(&self, end: u64) -> Option<u64> {
        (self.size < end).then(|| end.max(self.hint).max(self.size.saturating_mul(2)))
    }
}

/// The requests that failed.
#[derive(Debug, Default)]
pub(in crate::bench) struct Failures {
    pub(in crate::bench) count: u64,
    /// What went wrong the first time, and with what.
    pub(in crate::bench) first: Option<String>,
}

impl ThreadJob {
    pub(in crate::bench) fn new(
        job: &Job,
        index: usize,
        data: Data,
        generator: Generator,
        recorder: Recorder,
        shard: u32,
    ) -> Self {
        let segment = (job.iov_count > 1).then(|| u64::from(job.reqsize / job.iov_count));
        let hint = job.options.sloppy_size_hint.filter(|_| data.can_grow());
        let growth = hint.map(|hint| Growth { hint, size: job.file_size });
        Self {
            index,
            class: job.class,
            generator,
            recorder,
            failures: Failures::default(),
            data,
            segment,
            removed_len: job.file_size,
            deletes: job.kind.deletes(),
            deleted_at: None,
            opened: None,
            growth,
            spare: Vec::new(),
            rng: Rng::new(u64::from(shard), &[index as u64]),
        }
    }

    /// Makes the buffers that the job will use at once.
    pub(in crate::bench) fn prepare(&mut self, job: &Job) -> io::Result<()> {
        if !job.kind.transfers() {
            return Ok(());
        }
        let op = if job.kind.writes() { Op::Write } else { Op::Read };
        let operations = self.operations_of(op, u64::from(job.reqsize));
        let Some((_, len)) = operations.clone().next() else { return Ok(()) };
        let count = in_flight_max(job).saturating_mul(operations.count() as u64);
        let count = count.min(PREPARED_BYTES_MAX / len);
        self.spare.reserve(count as usize);
        for _ in 0..count {
            let operation = self.new_transfer(op, 0, len)?;
            self.spare.push(operation);
        }
        Ok(())
    }

    /// The operations that a request of `len` bytes is made of: one, unless it has more segments
    /// than an operation takes.
    pub(super) fn operations_of(&self, op: Op, len: u64) -> Parts {
        let vector_max = match self.segment {
            Some(segment) if matches!(op, Op::Read | Op::Write) => {
                segment.saturating_mul(SEGMENTS_MAX as u64)
            }
            _ => u64::MAX,
        };
        // There is one, also where it moves no bytes.
        Parts::new(len.max(1), vector_max)
    }

    /// What the disk is to do for the `len` bytes from `at` on of a request that begins at `start`.
    pub(super) fn operation(
        &mut self,
        op: Op,
        start: u64,
        at: u64,
        len: u64,
    ) -> io::Result<Operation> {
        if op == Op::Discard
            && let Data::Extent(extent) = &self.data
        {
            let offset = extent.start + start + at;
            return Ok(Operation::PunchHole { file: extent.file.clone(), offset, len });
        }
        if let Data::Steps(steps) = &self.data {
            let steps = steps.clone();
            return self.step(op, &steps, start + at, len);
        }
        if op == Op::Discard {
            let name = match &self.data {
                Data::Files(names) => names.get(start as usize).cloned(),
                _ => None,
            };
            let path = name.unwrap_or_default();
            return Ok(Operation::Unlink { path, len });
        }
        if op == Op::Flush {
            return Ok(Operation::SyncData { file: self.extent()?.file.clone() });
        }
        let at = start + at;
        if op == Op::Write {
            self.grow(at + len)?;
        }
        let offset = self.extent()?.start + at;
        if let Some(mut operation) = self.spare.pop()
            && aim(&mut operation, offset, len)
        {
            return Ok(operation);
        }
        self.new_transfer(op, offset, len)
    }

    /// What gives back `len` bytes from `place` on, counted through all files, or flushes the file
    /// of the step before.
    fn step(&mut self, op: Op, steps: &Steps, place: u64, len: u64) -> io::Result<Operation> {
        if op == Op::Flush {
            let file = self.opened.as_ref().map(|(_, file)| file.clone());
            let file = file.ok_or_else(|| io::Error::other("no step was taken"))?;
            return Ok(Operation::SyncAll { file });
        }
        let (number, offset) = ((place / steps.size.max(1)) as usize, place % steps.size.max(1));
        if self.opened.as_ref().is_none_or(|(opened, _)| *opened != number) {
            let name = steps.names.get(number).ok_or(io::ErrorKind::NotFound)?;
            let path = Path::new(OsStr::from_bytes(name.as_bytes()));
            self.opened = Some((number, DirectFile::options().write(true).open(path)?));
        }
        match &self.opened {
            Some((_, file)) => Ok(Operation::PunchHole { file: file.clone(), offset, len }),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Notes whether all its files are deleted.
    pub(super) fn note_deleted(&mut self, now: Time) {
        if self.deletes && self.deleted_at.is_none() && self.generator.is_done() {
            self.deleted_at = Some(now);
        }
    }

    /// Since when all its files have been deleted.
    pub(super) fn deleted_at(&self) -> Option<(usize, Time)> {
        self.deleted_at.map(|at| (self.index, at))
    }

    /// Keeps an operation that is done for the next request.
    pub(super) fn give_back(&mut self, operation: Operation) {
        if operation.transfer_len() > 0 {
            self.spare.push(operation);
        }
    }

    /// Notes that a request failed.
    pub(super) fn failed(&mut self, request: &LoadRequest, error: &io::Error) {
        self.failures.count += 1;
        if self.failures.first.is_none() {
            self.failures.first = Some(self.error_message(request, error));
        }
    }

    /// Records the requests that are due at the end of the run, `to`, and were never sent.
    pub(super) fn record_overdue(&mut self, to: Time) {
        self.recorder.measured.to = to;
        for intended in self.generator.overdue(to) {
            self.recorder.record_unfinished(intended, false);
        }
        self.generator.stop();
    }

    fn error_message(&self, request: &LoadRequest, error: &io::Error) -> String {
        let LoadRequest { offset, len, .. } = request;
        match (&self.data, request.op) {
            (Data::Files(names), _) => {
                let name = names.get(*offset as usize).map(|name| name.to_string_lossy());
                format!("cannot remove `{}`: {error}", name.unwrap_or_default())
            }
            (Data::Extent(Extent { name, .. }), Op::Flush) => {
                format!("cannot flush `{}`: {error}", name.display())
            }
            (Data::Extent(Extent { name, start, .. }), op) => {
                let verb = match op {
                    Op::Discard => "give back",
                    op if op.is_write() => "write",
                    _ => "read",
                };
                let offset = start + offset;
                format!("cannot {verb} {len} bytes at {offset} of `{}`: {error}", name.display())
            }
            (Data::Steps(steps), _) => {
                let (number, offset) = (offset / steps.size.max(1), offset % steps.size.max(1));
                format!("cannot give back {len} bytes at {offset} of file {number}: {error}")
            }
            (Data::Nothing, _) => error.to_string(),
        }
    }

    fn extent(&self) -> io::Result<&Extent> {
        match &self.data {
            Data::Extent(extent) => Ok(extent),
            _ => Err(io::Error::other("the job has no file")),
        }
    }

    /// Makes the file longer if the job wants that ahead of writes that end at `end`.
    fn grow(&mut self, end: u64) -> io::Result<()> {
        let (Data::Extent(Extent { file, .. }), Some(growth)) = (&self.data, &mut self.growth)
        else {
            return Ok(());
        };
        let Some(len) = growth.ahead_of(end) else { return Ok(()) };
        rustix::fs::ftruncate(file, len).map_err(|errno| {
            let error = io::Error::from(errno);
            io::Error::new(error.kind(), format!("cannot make it {len} bytes long: {error}"))
        })?;
        growth.size = len;
        Ok(())
    }

    fn new_transfer(&mut self, op: Op, offset: u64, len: u64) -> io::Result<Operation> {
        let file = self.extent()?.file.clone();
        let Some(segment) = self.segment else {
            let buffer = self.new_buffer(op, len)?;
            return Ok(match op {
                Op::Write => Operation::write(file, offset, buffer),
                _ => Operation::read(file, offset, buffer),
            });
        };
        let segments = Parts::new(len, segment);
        let buffers =
            segments.map(|(_, len)| self.new_buffer(op, len)).collect::<Result<_, _>>()?;
        Ok(match op {
            Op::Write => Operation::WriteVectored { file, offset, buffers },
            _ => Operation::ReadVectored { file, offset, buffers },
        })
    }

    fn new_buffer(&mut self, op: Op, len: u64) -> io::Result<AlignedBuf> {
        let alignment = self.extent()?.file.memory_alignment().max(BUFFER_ALIGNMENT);
        let mut buffer = AlignedBuf::new(len as usize, alignment)?;
        if op == Op::Write {
            fill_randomly(&mut buffer, &mut self.rng);
        }
        Ok(buffer)
    }
}

/// The most requests of a job that a thread has under way at once.
pub(in crate::bench) fn in_flight_max(job: &Job) -> u64 {
    let batch = match job.pace {
        Pace::Open(rate) => rate.batch.get(),
        Pace::Closed(_) => 1,
    };
    u64::from(job.parallelism) * u64::from(batch)
}

/// Points a used transfer at `len` bytes elsewhere; `false` if its buffers do not fit.
fn aim(operation: &mut Operation, at: u64, len: u64) -> bool {
    let len = len as usize;
    match operation {
        Operation::Read { offset, buffer, range, .. } => {
            *offset = at;
            *range = 0..len;
            buffer.len() >= len
        }
        Operation::Write { offset, buffer, range, .. } => {
            *offset = at;
            *range = 0..len;
            buffer.len() >= len
        }
        Operation::ReadVectored { offset, buffers, .. }
        | Operation::WriteVectored { offset, buffers, .. } => {
            *offset = at;
            buffers.iter().map(|buffer| buffer.len()).sum::<usize>() == len
        }
        _ => false,
    }
}

/// A request of a job, from its enqueueing until it is done.
#[derive(Debug)]
pub(super) struct LoadRequest {
    /// The position of the job among those of the thread.
    pub(super) job: usize,
    pub(super) fiber: u32,
    pub(super) op: Op,
    /// Where it begins, from the beginning of the job's data; for an unlink the number of the file.
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) intended: Time,
    pub(super) enqueued: Time,
    /// For how long the last of its operations waited for the disk: what comes after is the disk's
    /// time alone.
    pub(super) queue_nanos: u64,
    /// Operations that are not done: there are several where one has not enough segments.
    pub(super) operations_left: u64,
    pub(super) ok: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_file_is_doubled_from_the_hint_on() {
        let mut growth = Growth { hint: 1 << 20, size: 0 };
        let mut lengths = Vec::new();
        for end in (1..=4096).map(|block| block * 4096) {
            if let Some(len) = growth.ahead_of(end) {
                lengths.push(len >> 20);
                growth.size = len;
            }
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16]);
        assert_eq!(growth.ahead_of(1 << 30), Some(1 << 30), "no less than is written");
    }
}
