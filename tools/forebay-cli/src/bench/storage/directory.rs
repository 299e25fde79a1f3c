//! The private directory of a run, and the files made in it.

use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Once};

use forebay::DirectFile;
use forebay::engine::BackendChoice;
use forebay_load::job_file::{Job, JobFile, JobKind};
use indicatif::HumanBytes;
use rustix::fs::FallocateFlags;
use tempfile::TempDir;

use super::data::{Data, Extent, JobData, Steps, check_alignments, jobs_by_shard};
use super::deleted;
use super::extent_hint;
use super::fill::{UnwrittenExtent, fill};
use crate::console::note;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::whole_file;

/// A probe and a run make files in one directory.
static WARNED: Once = Once::new();

/// What `statfs` calls a filesystem that lives in memory.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// A private directory, removed with all that is in it when it is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    parent: PathBuf,
    private: TempDir,
}

impl Directory {
    /// Makes the files of `jobs` below `parent`.
    ///
    /// Files keep no name, so that nothing is left of them however the program ends; those that
    /// the run itself removes do.
    pub(super) fn make(
        parent: &Path,
        jobs: &JobFile,
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<(Self, Vec<JobData>), Failure> {
        check_space(parent, jobs)?;
        let private = private_in(parent)?;
        let directory = Self { parent: parent.to_owned(), private };
        let mut data = Vec::new();
        for (index, job, shard) in jobs_by_shard(jobs) {
            let job_data = match job.kind {
                JobKind::Cpu => Data::Nothing,
                JobKind::Unlink => Data::Files(directory.names(job, shard)?),
                JobKind::Delete => {
                    let names = directory.names(job, shard)?;
                    Data::Steps(Steps { names, size: job.file_size })
                }
                _ => Data::Extent(directory.extent(job, shard)?),
            };
            data.push(JobData { shard, job: index, data: job_data });
        }
        warn_of_memory(parent, &data);
        let extents = data.iter().filter_map(|data| unwritten_extent(jobs, data)).map(Ok);
        let bytes = jobs_by_shard(jobs).filter(|(_, job, _)| !job.kind.deletes());
        fill(extents, bytes.map(|(_, job, _)| job.file_size).sum(), backend, interrupt)?;
        flush(&data)?;
        check_alignments(jobs, &data)?;
        directory.make_files_to_remove(jobs, &data, backend, interrupt)?;
        if !jobs.jobs.iter().any(|job| job.kind.deletes()) {
            // Not empty on a filesystem that keeps a name for every open file: then it goes later.
            let _ = fs::remove_dir(directory.private.path());
        }
        Ok((directory, data))
    }

    /// Whether there is room below `parent`, and files can be made there.
    pub(super) fn check(parent: &Path, jobs: &JobFile) -> Result<(), Failure> {
        check_space(parent, jobs)?;
        check_writable(parent)
    }

    /// Creates removed files again, and cuts grown ones to their first size.
    pub(super) fn restore(
        &self,
        jobs: &JobFile,
        data: &[JobData],
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        for JobData { job, data, .. } in data {
            if let Data::Steps(steps) = data {
                deleted::remove(steps)?;
            }
            let Some(job) = jobs.jobs.get(*job).filter(|job| job.kind == JobKind::Append) else {
                continue;
            };
            if let Data::Extent(Extent { file, name, .. }) = data {
                rustix::fs::ftruncate(file, job.file_size)
                    .map_err(|error| cannot("shorten", name, &error.into()))?;
            }
        }
        self.make_files_to_remove(jobs, data, backend, interrupt)
    }

    /// The open, nameless and still empty file of `job` on `shard`.
    fn extent(&self, job: &Job, shard: u32) -> Result<Extent, Failure> {
        let path = self.path(job, shard, None);
        let name = self.said(job, shard);
        let failed = |error: io::Error| cannot("make", &name, &error);
        let plain = create(&path).map_err(failed)?;
        let file = if job.options.dsync {
            DirectFile::options().read(true).write(true).dsync(true).open(&path).map_err(failed)?
        } else {
            plain
        };
        fs::remove_file(&path).map_err(failed)?;
        let hint = job.options.extent_allocation_size_hint.unwrap_or(job.file_size);
        if hint > 0 {
            // Only a hint, and most filesystems know none.
            let _ = extent_hint::set(&file, hint);
        }
        if job.options.fallocate && job.file_size > 0 {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, job.file_size)
                .map_err(|error| cannot("allocate", &name, &error.into()))?;
        }
        Ok(Extent { file, start: 0, name: name.into() })
    }

    /// The names of the files that `job` removes on `shard`.
    fn names(&self, job: &Job, shard: u32) -> Result<Arc<[CString]>, Failure> {
        let name = |number| {
            let path = self.path(job, shard, Some(number));
            CString::new(path.as_os_str().as_bytes())
                .map_err(|error| cannot("name", &self.said(job, shard), &error.into()))
        };
        (0..job.files_count).map(name).collect()
    }

    /// Makes those of the files to be removed that are not there.
    fn make_files_to_remove(
        &self,
        jobs: &JobFile,
        data: &[JobData],
        backend: BackendChoice,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let mut missing = Vec::new();
        for JobData { job, shard, data } in data {
            if let (Data::Files(_) | Data::Steps(_), Some(job)) = (data, jobs.jobs.get(*job)) {
                let paths = (0..job.files_count).map(|file| self.path(job, *shard, Some(file)));
                let paths = paths.filter(|path| !path.exists());
                missing.extend(paths.map(|path| (path, self.said(job, *shard), job)));
            }
        }
        let bytes = missing.iter().map(|(_, _, job)| job.file_size).sum();
        let extents = missing.iter().map(|(path, name, job)| {
            let file = create(path).map_err(|error| cannot("make", name, &error))?;
            deleted::allocate(&file, job).map_err(|error| cannot("allocate", name, &error))?;
            Ok(UnwrittenExtent { file, start: 0, len: job.file_size, name: name.as_path().into() })
        });
        fill(extents, bytes, backend, interrupt)?;
        for (path, name, job) in &missing {
            interrupt.check()?;
            deleted::lay_out(path, job).map_err(|error| cannot("lay out", name, &error))?;
        }
        Ok(())
    }

    /// What a file is called in messages: the private directory is nobody's business.
    fn said(&self, job: &Job, shard: u32) -> PathBuf {
        self.parent.join(format!("{}-{shard}", job.name))
    }

    fn path(&self, job: &Job, shard: u32, number: Option<u64>) -> PathBuf {
        let name = &job.name;
        self.private.path().join(match number {
            None => format!("{name}-{shard}"),
            Some(number) => format!("{name}-{shard}-{number}"),
        })
    }
}

fn create(path: &Path) -> io::Result<DirectFile> {
    DirectFile::options().read(true).write(true).create_new(true).open(path)
}

/// What of a job's data is to be written before the run.
fn unwritten_extent(jobs: &JobFile, data: &JobData) -> Option<UnwrittenExtent> {
    let Data::Extent(Extent { file, start, name }) = &data.data else { return None };
    let len = jobs.jobs.get(data.job)?.file_size;
    Some(UnwrittenExtent { file: file.clone(), start: *start, len, name: Arc::clone(name) })
}

/// Waits until the disk has what was written, or its cache would be part of the measurement.
fn flush(data: &[JobData]) -> Result<(), Failure> {
    for data in data {
        if let Data::Extent(Extent { file, name, .. }) = &data.data {
            rustix::fs::fsync(file).map_err(|error| cannot("flush", name, &error.into()))?;
        }
    }
    Ok(())
}

fn check_space(parent: &Path, jobs: &JobFile) -> Result<(), Failure> {
    let size = |(_, job, _): (usize, &Job, u32)| job.file_size.saturating_mul(job.files_count);
    let needed = jobs_by_shard(jobs).map(size).fold(0, u64::saturating_add);
    let space = rustix::fs::statvfs(parent)
        .map_err(|error| cannot("look up the free space of", parent, &error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    // A filesystem that does not say how large it is says nothing of its free space either.
    if needed <= free || space.f_blocks == 0 {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "the files need {}, and `{}` has {} free; free some space, name another directory \
         with --dir, or lower `data_size` of the jobs",
        HumanBytes(needed),
        parent.display(),
        HumanBytes(free)
    )))
}

/// Says so where not the disk is measured but memory.
fn warn_of_memory(parent: &Path, data: &[JobData]) {
    let shown = parent.display();
    let file = data.iter().find_map(|data| match &data.data {
        Data::Extent(extent) => Some(&extent.file),
        _ => None,
    });
    let warn = |text| WARNED.call_once(|| note(text));
    if file.is_some_and(|file| !file.is_direct()) {
        warn(format_args!(
            "warning: the filesystem of `{shown}` does no direct I/O; the speed of the page cache \
             is measured, not that of the disk"
        ));
    } else if file.is_some_and(is_in_memory) {
        note(format_args!(
            "warning: the filesystem of `{shown}` is in memory; no disk is measured"
        ));
    }
}

fn is_in_memory(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| IN_MEMORY.contains(&fs.f_type))
}

/// Whether files can be made in the directory `parent`, which is there.
pub(in crate::bench) fn check_writable(parent: &Path) -> Result<(), Failure> {
    private_in(parent).map(drop)
}

fn private_in(parent: &Path) -> Result<TempDir, Failure> {
    let private = tempfile::Builder::new()
        .prefix(&format!(".forebay-bench-{}-", process::id()))
        .tempdir_in(parent);
    private.map_err(|error| {
        let why = match error.kind() {
            // the directory is there: that was looked up
            ErrorKind::NotFound => String::from("its file system takes no new files"),
            _ => whole_file::nameless(error).to_string(),
        };
        let parent = parent.display();
        Failure::Input(format!(
            "cannot make files in `{parent}`: {why}; name another directory with --dir"
        ))
    })
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("cannot {what} `{}`: {error}", path.display()))
}
