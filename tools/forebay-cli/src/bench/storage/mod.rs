//! The files of a run, or what stands in for them.

mod data;
mod deleted;
mod device;
mod directory;
mod extent_hint;
mod fill;
mod target;

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use forebay::DirectFile;
use forebay::engine::BackendChoice;
use forebay_load::job_file::{Job, JobFile, JobKind};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use data::jobs_by_shard;
pub(super) use data::{BUFFER_ALIGNMENT, Data, Extent, JobData, Steps};
use directory::Directory;
pub(super) use directory::check_writable;
pub(super) use fill::fill_randomly;
pub(super) use target::{DevicePart, RunTarget};

/// The data of all jobs on all shards. What was made for it is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) data: Vec<JobData>,
    directory: Option<Directory>,
}

impl Storage {
    /// Whether the data of `jobs` can be made at `target`, as far as can be told without writing it.
    pub(super) fn check(target: &RunTarget, jobs: &JobFile) -> Result<(), Failure> {
        match target {
            RunTarget::Directory(path) => Directory::check(path, jobs),
            RunTarget::Device(path, part) => device::check(path, *part, jobs),
            RunTarget::Null => Ok(()),
        }
    }

    /// Makes the data of `jobs` at `target`, every byte of it written.
    pub(super) fn make(
        target: &RunTarget,
        jobs: &JobFile,
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        match target {
            RunTarget::Directory(path) => {
                let (directory, data) = Directory::make(path, jobs, backend, interrupt)?;
                Ok(Self { data, directory: Some(directory) })
            }
            RunTarget::Device(path, part) => {
                let data = device::divide(path, *part, jobs, backend, interrupt)?;
                Ok(Self { data, directory: None })
            }
            RunTarget::Null => Ok(Self { data: nowhere(jobs)?, directory: None }),
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

/// Data for an engine that does nothing.
fn nowhere(jobs: &JobFile) -> Result<Vec<JobData>, Failure> {
    if let Some(job) = jobs.jobs.iter().find(|job| job.kind == JobKind::Delete) {
        let name = &job.name;
        let message = "deletes files in steps, but /dev/null has none; name a directory";
        return Err(Failure::Input(format!("job `{name}` {message}")));
    }
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
    Ok(jobs_by_shard(jobs)
        .map(|(index, job, shard)| JobData { shard, job: index, data: nowhere(job) })
        .collect())
}
