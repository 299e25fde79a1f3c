//! The files of a run, or what stands in for them.

mod device;
mod directory;
mod extent_hint;
mod fill;
mod place;

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use forebay::engine::BackendChoice;
use forebay::{AlignedBuf, DirectFile};
use forebay_load::job_file::{Job, JobFile, JobKind};
use rustix::fs::FileType;

use super::interrupt::Interrupt;
use crate::failure::Failure;
use directory::Directory;
pub(super) use fill::fill_randomly;
pub(super) use place::Place;

const MIB: u64 = 1 << 20;
/// Buffers start at page boundaries, so that no disk copies and 4 KiB stay within a page.
pub(super) const BUFFER_ALIGNMENT: usize = 4096;

/// Where the requests of one job on one shard go.
#[derive(Clone, Debug)]
pub(super) enum Data {
    /// A file, or a part of a device.
    Extent(Extent),
    /// The files to remove.
    Files(Arc<[CString]>),
    /// Nowhere.
    Nothing,
}

impl Data {
    /// Whether it has a length that can be changed: devices have not.
    pub(super) fn can_grow(&self) -> bool {
        let Self::Extent(Extent { file, .. }) = self else { return false };
        rustix::fs::fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }
}

/// A file, or a part of a device.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) file: DirectFile,
    /// Where in the file it begins.
    pub(super) start: u64,
    /// What messages call it.
    pub(super) name: Arc<Path>,
}

/// The data of one job on one shard.
#[derive(Clone, Debug)]
pub(super) struct JobData {
    pub(super) shard: u32,
    /// The index of the job in its file.
    pub(super) job: usize,
    pub(super) data: Data,
}

/// The data of all jobs on all shards. What was made for it is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) data: Vec<JobData>,
    directory: Option<Directory>,
}

impl Storage {
    /// Makes the data of `jobs` at `place`, every byte of it written.
    pub(super) fn make(
        place: &Place,
        jobs: &JobFile,
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        match place {
            Place::Directory(path) => {
                let (directory, data) = Directory::make(path, jobs, backend, interrupt)?;
                Ok(Self { data, directory: Some(directory) })
            }
            Place::Device(path) => {
                let data = device::divide(path, jobs, backend, interrupt)?;
                Ok(Self { data, directory: None })
            }
            Place::Null => Ok(Self { data: nowhere(jobs)?, directory: None }),
        }
    }

    /// Restores what a run has changed of files: their number and their sizes.
    pub(super) fn restore(
        &self,
        jobs: &JobFile,
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        match &self.directory {
            Some(directory) => directory.restore(jobs, &self.data, backend, interrupt),
            None => Ok(()),
        }
    }
}

/// The jobs of each shard, job by job.
fn seats(jobs: &JobFile) -> impl Iterator<Item = (usize, &Job, u32)> {
    jobs.jobs
        .iter()
        .enumerate()
        .flat_map(|(index, job)| job.shards.iter().map(move |&shard| (index, job, shard)))
}

/// Checks that the data, which have been written, take requests of the sizes that the jobs make.
fn check_alignments(jobs: &JobFile, data: &[JobData]) -> Result<(), Failure> {
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

/// Data for an engine that does nothing.
fn nowhere(jobs: &JobFile) -> Result<Vec<JobData>, Failure> {
    let path: Arc<Path> = Path::new("/dev/null").into();
    let file = DirectFile::options()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| Failure::Run(format!("cannot open /dev/null: {error}")))?;
    let nowhere = |job: &Job| match job.kind {
        JobKind::Cpu => Data::Nothing,
        JobKind::Unlink => Data::Files((0..job.files_count).map(|_| CString::default()).collect()),
        _ => Data::Extent(Extent { file: file.clone(), start: 0, name: Arc::clone(&path) }),
    };
    Ok(seats(jobs)
        .map(|(index, job, shard)| JobData { shard, job: index, data: nowhere(job) })
        .collect())
}
