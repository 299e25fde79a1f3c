//! The files that a run deletes: in which extents they lie, and that they are whole again for the
//! next run.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_load::job_file::{HOLE, Job};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::data::Steps;
use crate::failure::Failure;

/// Has the file system take the whole file at once, so that its extents are those that
/// [`lay_out`] makes.
pub(super) fn allocate(file: impl AsFd, job: &Job) -> io::Result<()> {
    if job.options.extent_size.is_none() || job.file_size == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, job.file_size) {
        // then it lies as its writes leave it
        Err(Errno::OPNOTSUPP) => Ok(()),
        result => Ok(result?),
    }
}

/// Cuts a file that has been written into the extents that its job wants, and has all that is
/// given back for it told to the disk before the run.
pub(super) fn lay_out(path: &Path, job: &Job) -> io::Result<()> {
    let Some(extent) = job.options.extent_size else { return Ok(()) };
    let file = File::options().write(true).open(path)?;
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for end in (1..=job.file_size / extent).map(|number| number * extent) {
        rustix::fs::fallocate(&file, punch, end - HOLE, HOLE)?;
    }
    file.sync_all()
}

/// Removes what a run has left of files, so that they are created again.
pub(super) fn remove(steps: &Steps) -> Result<(), Failure> {
    for name in steps.names.iter() {
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::Run(format!("cannot remove `{}`: {error}", path.display())));
            }
            _ => {}
        }
    }
    Ok(())
}
