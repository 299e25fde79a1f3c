//! What the requests of jobs go to.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use forebay::{AlignedBuf, DirectFile};
use forebay_load::job_file::{Job, JobFile};
use rustix::fs::FileType;

use crate::failure::Failure;

pub(super) const MIB: u64 = 1 << 20;
/// Buffers start at page boundaries, so that no disk copies and 4 KiB stay within a page.
pub(in crate::bench) const BUFFER_ALIGNMENT: usize = 4096;

/// Where the requests of one job on one shard go.
#[derive(Clone, Debug)]
pub(in crate::bench) enum Data {
    /// A file, or a part of a device.
    Extent(Extent),
    /// The files to remove.
    Files(Arc<[CString]>),
    /// The files to give back in steps.
    Steps(Steps),
    /// Nowhere.
    Nothing,
}

impl Data {
    /// Whether it has a length that can be changed: devices have not.
    pub(in crate::bench) fn can_grow(&self) -> bool {
        let Self::Extent(Extent { file, .. }) = self else { return false };
        rustix::fs::fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }
}

/// Files of the same size that are given back in steps.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Steps {
    pub(in crate::bench) names: Arc<[CString]>,
    /// Bytes of each.
    pub(in crate::bench) size: u64,
}

/// A file, or a part of a device.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Extent {
    pub(in crate::bench) file: DirectFile,
    /// Where in the file it begins.
    pub(in crate::bench) start: u64,
    /// What messages call it.
    pub(in crate::bench) name: Arc<Path>,
}

/// The data of one job on one shard.
#[derive(Clone, Debug)]
pub(in crate::bench) struct JobData {
    pub(in crate::bench) shard: u32,
    /// The index of the job in its file.
    pub(in crate::bench) job: usize,
    pub(in crate::bench) data: Data,
}

/// The jobs of each shard, job by job.
pub(super) fn jobs_by_shard(jobs: &JobFile) -> impl Iterator<Item = (usize, &Job, u32)> {
    jobs.jobs
        .iter()
        .enumerate()
        .flat_map(|(index, job)| job.shards.iter().map(move |&shard| (index, job, shard)))
}

/// Checks that the data, which have been written, take requests of the sizes that the jobs make.
pub(super) fn check_alignments(jobs: &JobFile, data: &[JobData]) -> Result<(), Failure> {
    data.iter().try_for_each(|data| match (&data.data, jobs.jobs.get(data.job)) {
        (Data::Extent(extent), Some(job)) => check_alignment(job, extent),
        _ => Ok(()),
    })
}

fn check_alignment(job: &Job, extent: &Extent) -> Result<(), Failure> {
    let Extent { file, start, .. } = extent;
    let alignment = file.offset_alignment();
    let segment = (job.reqsize / job.iov_count.max(1)) as usize;
    if !job.kind.transfers() || segment.is_multiple_of(alignment) {
        return Ok(());
    }
    // Some filesystems take more than they say.
    let mut buffer = AlignedBuf::new(segment, BUFFER_ALIGNMENT).map_err(|error| {
        Failure::Run(format!("no memory for a request of job `{}`: {error}", job.name))
    })?;
    if rustix::io::pread(file, &mut buffer[..], start + segment as u64) == Ok(segment) {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "job `{}`: the disk takes direct requests in multiples of {alignment} bytes, and \
         {segment} is not one; change `reqsize`, or `iov_count`",
        job.name
    )))
}
