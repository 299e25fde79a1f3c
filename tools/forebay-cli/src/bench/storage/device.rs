//! A block device whose content may be destroyed, divided among the jobs.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use forebay::DirectFile;
use forebay::engine::BackendChoice;
use forebay_load::job_file::{JobFile, JobKind};
use indicatif::HumanBytes;
use rustix::fs::{FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::data::{Data, Extent, JobData, MIB, check_alignments, jobs_by_shard};
use super::fill::{UnwrittenExtent, fill};
use super::target::DevicePart;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Cuts the device at `path`, or `part` of it, into one area for each shard, all of the same size, lays the data of
/// the shard's jobs one after another inside, and writes all of it.
pub(super) fn divide(
    path: &Path,
    part: Option<DevicePart>,
    jobs: &JobFile,
    backend: BackendChoice,
    interrupt: &Interrupt,
) -> Result<Vec<JobData>, Failure> {
    let Layout { data, extents } = Layout::of(path, part, jobs)?;
    let bytes = extents.iter().map(|extent| extent.len).sum();
    fill(extents.into_iter().map(Ok), bytes, backend, interrupt)?;
    check_alignments(jobs, &data)?;
    Ok(data)
}

/// Whether the device at `path` is free and has room for the jobs; nothing is written.
pub(super) fn check(path: &Path, part: Option<DevicePart>, jobs: &JobFile) -> Result<(), Failure> {
    Layout::of(path, part, jobs).map(drop)
}

/// Where the data of jobs is on a device, and what of it is to be written.
struct Layout {
    data: Vec<JobData>,
    extents: Vec<UnwrittenExtent>,
}

impl Layout {
    fn of(path: &Path, part: Option<DevicePart>, jobs: &JobFile) -> Result<Self, Failure> {
        let no_files = |kind: JobKind| kind == JobKind::Append || kind.deletes();
        if let Some(job) = jobs.jobs.iter().find(|job| no_files(job.kind)) {
            let name = &job.name;
            let message = "grows or removes files, but a block device has none; name a directory";
            return Err(Failure::Input(format!("job `{name}` {message}")));
        }
        let (file, size) = open(path, part.is_some())?;
        let part = part.unwrap_or(DevicePart { index: 0, count: 1 });
        let size = size / part.count / MIB * MIB;
        let first = size * part.index;
        let name: Arc<Path> = path.into();
        let shard_count = jobs_by_shard(jobs).map(|(_, _, shard)| shard + 1).max().unwrap_or(1);
        let area = size / u64::from(shard_count) / MIB * MIB;
        let mut used = vec![0; shard_count as usize];
        let mut layout = Self { data: Vec::new(), extents: Vec::new() };
        for (index, job, shard) in jobs_by_shard(jobs) {
            if job.kind == JobKind::Cpu {
                layout.data.push(JobData { shard, job: index, data: Data::Nothing });
                continue;
            }
            let Some(used) = used.get_mut(shard as usize) else { continue };
            let start = first + area * u64::from(shard) + *used;
            *used += job.file_size;
            if *used > area {
                return Err(no_room(path, area, shard_count));
            }
            let (file, len) = (file.clone(), job.file_size);
            let extent = Extent { file: file.clone(), start, name: Arc::clone(&name) };
            layout.extents.push(UnwrittenExtent { file, start, len, name: Arc::clone(&name) });
            layout.data.push(JobData { shard, job: index, data: Data::Extent(extent) });
        }
        Ok(layout)
    }
}

/// Opens a device that nobody has mounted: the file, and the bytes it has. Nobody else can open it in
/// this way at the same time, unless it `is_shared`.
fn open(path: &Path, is_shared: bool) -> Result<(DirectFile, u64), Failure> {
    let shown = path.display();
    // For a device, EXCL means that it is not mounted.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT | OFlags::EXCL;
    let open = |flags| rustix::fs::open(path, flags, Mode::empty());
    let fd = if is_shared { open_shared(open, flags) } else { open(flags) };
    let fd = fd.map_err(|error| match error {
        Errno::BUSY => Failure::Input(format!("`{shown}` is in use; unmount it")),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Failure::Input(format!(
            "cannot open `{shown}`: {error}; run as a user that may write to it, or name another"
        )),
        _ => Failure::Run(format!("cannot open `{shown}`: {error}")),
    })?;
    let cannot = |error: io::Error| Failure::Run(format!("cannot use `{shown}`: {error}"));
    let size = rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(|error| cannot(error.into()))?;
    Ok((DirectFile::from_fd(fd).map_err(cannot)?, size))
}

/// Opens a device for several processes, each of which opens it alone for a moment, one after the other:
/// that fails while it is mounted, or part of another device.
fn open_shared(
    open: impl Fn(OFlags) -> rustix::io::Result<OwnedFd>,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let shared = open(flags - OFlags::EXCL)?;
    rustix::fs::flock(&shared, FlockOperation::LockExclusive)?;
    drop(open(flags)?);
    rustix::fs::flock(&shared, FlockOperation::Unlock)?;
    Ok(shared)
}

fn no_room(path: &Path, area: u64, shard_count: u32) -> Failure {
    Failure::Input(format!(
        "the jobs of a shard need more than the {} of `{}` that each of {shard_count} shards has; \
         lower `data_size`, or run with fewer shards",
        HumanBytes(area),
        path.display()
    ))
}
