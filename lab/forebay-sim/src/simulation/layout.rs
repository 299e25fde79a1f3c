//! Where on the disk the files of a run are: one after the other.

use forebay_core::Op;
use forebay_load::job_file::{Job, JobFile, JobKind};

use super::error::SimulationError;
use crate::file_system::{Area, Areas};

/// Files begin at multiples of this.
const ALIGNMENT: u64 = 1 << 20;
/// A growing file has so much room unless the disk is smaller; then it begins again.
const GROWTH_MAX: u64 = 1 << 40;

/// The files of one job on one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    start: u64,
    /// Bytes after which the offsets of a growing file begin again.
    len: u64,
    /// Bytes of each of several files.
    pub(super) file_size: u64,
    /// Bytes of each extent of the files; 0 if each is one.
    extent_size: u64,
}

impl Extent {
    /// The first byte of a request on the disk, which has this place in the files.
    pub(super) fn offset(&self, op: Op, place: u64) -> u64 {
        if op == Op::Flush { 0 } else { self.start + place % self.len }
    }

    /// How many discards a range of the files is.
    pub(super) fn commands(&self, place: u64, len: u64) -> u32 {
        let extent = if self.extent_size == 0 { self.file_size } else { self.extent_size };
        let (first, behind) = (place / extent.max(1), (place + len).div_ceil(extent.max(1)));
        u32::try_from(behind - first).unwrap_or(u32::MAX).max(1)
    }

    /// As a file system knows it.
    fn area(&self) -> Area {
        let Self { start, len, file_size, extent_size } = *self;
        Area { start, end: start.saturating_add(len), file_size, extent_size }
    }
}

/// Where the file system finds the extents of what is deleted.
pub(super) fn areas(extents: &[Vec<Extent>]) -> Areas {
    Areas::new(extents.iter().flatten().map(Extent::area).collect())
}

/// Where the files of each job are, on each of its shards in their order.
pub(super) fn lay_out(
    file: &JobFile,
    capacity: Option<u64>,
) -> Result<Vec<Vec<Extent>>, SimulationError> {
    let growing: u64 =
        file.jobs.iter().filter(|job| is_growing(job)).map(|job| job.shards.len() as u64).sum();
    let fixed = file.jobs.iter().map(|job| fixed_len(job).saturating_mul(job.shards.len() as u64));
    let fixed = fixed.fold(0, u64::saturating_add);
    let room = capacity.map_or(GROWTH_MAX, |capacity| {
        capacity.saturating_sub(fixed).checked_div(growing).unwrap_or(0).min(GROWTH_MAX)
    });
    let mut end = 0_u64;
    let extents = |job: &Job| {
        let len = len(job, room);
        let place = |_: &u32| {
            let start = end;
            end = end.saturating_add(rounded_up(len));
            match capacity.filter(|&capacity| start.saturating_add(len) > capacity) {
                Some(capacity) => {
                    let needed = start.saturating_add(len);
                    Err(SimulationError::Capacity { job: job.name.clone(), needed, capacity })
                }
                None => Ok(Extent {
                    start,
                    len: len.max(1),
                    file_size: job.file_size,
                    extent_size: (job.options.extent_size)
                        .or(job.options.extent_allocation_size_hint)
                        .unwrap_or(0),
                }),
            }
        };
        job.shards.iter().map(place).collect()
    };
    file.jobs.iter().map(extents).collect()
}

fn is_growing(job: &Job) -> bool {
    job.kind == JobKind::Append
}

/// Bytes of a job's files on one shard, as far as known in advance.
fn fixed_len(job: &Job) -> u64 {
    let len = job.file_size.saturating_mul(job.files_count.max(1));
    if is_growing(job) { 0 } else { rounded_up(len) }
}

/// The room that `len` bytes take.
fn rounded_up(len: u64) -> u64 {
    len.checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
}

fn len(job: &Job, room: u64) -> u64 {
    if !is_growing(job) {
        return job.file_size.saturating_mul(job.files_count.max(1));
    }
    // Whole requests, so that none crosses the end.
    let reqsize = u64::from(job.reqsize);
    let aligned = room / ALIGNMENT * ALIGNMENT;
    (aligned / reqsize * reqsize).max(reqsize)
}

#[cfg(test)]
mod tests {
    use forebay_config::Source;

    use super::*;

    #[test]
    fn files_that_end_beyond_the_last_number_do_not_fit() {
        let text = format!(
            "- {{name: a, type: randread, shards: all, data_size: {}, shard_info: {{parallelism: \
             1}}}}",
            u64::MAX
        );
        for shards in [1, 2] {
            let file = JobFile::parse(&Source::new("jobs.yaml", &text), None, shards).unwrap();
            let refused = lay_out(&file, Some(1 << 39));
            assert!(matches!(refused, Err(SimulationError::Capacity { .. })), "{refused:?}");
        }
    }
}
