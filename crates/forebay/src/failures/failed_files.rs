//! The files of a disk that are open for writing or have failed bytes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};

use super::file_failures::FileFailures;
use crate::page_cache::{HeldFile, disk_number};
use crate::sys::fork::Process;
use crate::sys::lock::Lock;

/// The most failed files without a writer that are remembered. Beyond that, the one whose last
/// writer was dropped first is forgotten.
const UNHELD_MAX: usize = 1024;

/// The files of one disk.
#[derive(Debug, Default)]
pub(crate) struct FailedFiles(Lock<Files>);

#[derive(Debug, Default)]
struct Files {
    known: HashMap<FileId, Known>,
    /// The files that nobody has open, in the order in which they were closed.
    unheld: VecDeque<FileId>,
}

#[derive(Debug)]
struct Known {
    failures: Arc<FileFailures>,
    holders: usize,
}

/// The identity of a file, which never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FileId {
    /// The device, the inode, and the time of birth if the file system has it. A new file may get
    /// the inode of a deleted one.
    Inode((u32, u32), u64, (i64, u32)),
    /// The number of the device, because it has several names, and the number of its disk, because
    /// another disk may get the same device number.
    BlockDevice((u32, u32), u64),
}

/// The failures of an open file.
pub(crate) struct OpenFailures {
    process: Process,
    files: Arc<FailedFiles>,
    id: FileId,
    failures: Arc<FileFailures>,
}

impl FailedFiles {
    /// The failures of an open file. `None` if it is neither a file nor a block device.
    ///
    /// # Errors
    /// Those of `statx(2)`.
    pub(crate) fn open(self: &Arc<Self>, file: BorrowedFd<'_>) -> io::Result<Option<OpenFailures>> {
        let Some(id) = FileId::of(file)? else { return Ok(None) };
        let mut files = self.0.lock();
        let known = files.known.entry(id);
        let known = known.or_insert_with(|| Known { failures: Arc::default(), holders: 0 });
        known.holders += 1;
        let failures = Arc::clone(&known.failures);
        files.unheld.retain(|unheld| *unheld != id);
        drop(files);
        Ok(Some(OpenFailures {
            process: Process::current(),
            files: Arc::clone(self),
            id,
            failures,
        }))
    }
}

impl Files {
    fn close(&mut self, id: FileId) {
        let Some(known) = self.known.get_mut(&id) else { return };
        known.holders -= 1;
        if known.holders > 0 {
            return;
        }
        if !known.failures.is_needed() {
            self.known.remove(&id);
            return;
        }
        self.unheld.push_back(id);
        if self.unheld.len() > UNHELD_MAX {
            self.forget_one();
        }
    }

    /// Forgets the oldest file without failed bytes, because only this list knows of failed bytes.
    /// If all files have some, it forgets the oldest one.
    fn forget_one(&mut self) {
        let is_failed =
            |id: &FileId| self.known.get(id).is_some_and(|known| known.failures.is_failed());
        let at = self.unheld.iter().position(|id| !is_failed(id)).unwrap_or(0);
        if let Some(id) = self.unheld.remove(at) {
            self.known.remove(&id);
        }
    }
}

impl FileId {
    fn of(file: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let fields = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(file, "", flags, fields)?;
        Ok(match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::RegularFile => {
                let device = (stat.stx_dev_major, stat.stx_dev_minor);
                Some(Self::Inode(device, stat.stx_ino, birth(&stat)))
            }
            FileType::BlockDevice => {
                let device = (stat.stx_rdev_major, stat.stx_rdev_minor);
                Some(Self::BlockDevice(device, disk_number(file)))
            }
            _ => None,
        })
    }
}

fn birth(stat: &Statx) -> (i64, u32) {
    let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    if has_birth { (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec) } else { (0, 0) }
}

impl OpenFailures {
    /// [`Self`], for a writer that has the file open.
    pub(crate) fn of_writer(self, file: &Arc<HeldFile>) -> Self {
        self.failures.add_file(file);
        self
    }
}

impl Deref for OpenFailures {
    type Target = FileFailures;

    fn deref(&self) -> &FileFailures {
        &self.failures
    }
}

impl Drop for OpenFailures {
    fn drop(&mut self) {
        if self.process.is_here() {
            self.files.0.lock().close(self.id);
        }
    }
}

impl fmt::Debug for OpenFailures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFailures").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn failed(files: &Arc<FailedFiles>, file: &std::fs::File) -> OpenFailures {
        let open = files.open(file.as_fd()).unwrap().unwrap();
        open.wrote(&(0..10), open.errors());
        open.begin_flush().end(&Err(io::Error::from_raw_os_error(libc::EIO)));
        open
    }

    #[test]
    fn a_file_is_known_while_it_is_open_or_failed() {
        let files = Arc::<FailedFiles>::default();
        let file = tempfile::tempfile().unwrap();
        let open = || files.open(file.as_fd()).unwrap().unwrap();
        drop(open());
        assert_eq!(files.0.lock().known.len(), 0);
        drop(failed(&files, &file));
        assert_eq!(files.0.lock().known.len(), 1);
        let again = open();
        assert!(again.check(10).is_err(), "by whom ever it is opened");
        again.wrote(&(0..10), again.errors());
        again.begin_flush().end(&Ok(Some(true)));
        again.check(10).unwrap();
        drop(again);
        assert_eq!(files.0.lock().known.len(), 0);
        let (reader, _writer) = io::pipe().unwrap();
        assert!(files.open(reader.as_fd()).unwrap().is_none());
    }

    #[test]
    fn of_failed_files_that_nobody_has_open_the_oldest_is_forgotten() {
        let files = Arc::<FailedFiles>::default();
        let many: Vec<_> = (0..=UNHELD_MAX + 2).map(|_| tempfile::tempfile().unwrap()).collect();
        let open = failed(&files, &many[0]);
        many[1..].iter().for_each(|file| drop(failed(&files, file)));
        assert_eq!(files.0.lock().known.len(), UNHELD_MAX + 1);
        let is_failed = |n: usize| files.open(many[n].as_fd()).unwrap().unwrap().check(10).is_err();
        assert!(!is_failed(1) && is_failed(3) && is_failed(UNHELD_MAX + 2));
        drop(open);
        assert!(is_failed(0));
    }

    #[test]
    fn files_that_were_only_written_push_no_failed_file_out() {
        let files = Arc::<FailedFiles>::default();
        let many: Vec<_> = (0..=UNHELD_MAX + 2).map(|_| tempfile::tempfile().unwrap()).collect();
        drop(failed(&files, &many[0]));
        for file in &many[1..] {
            let open = files.open(file.as_fd()).unwrap().unwrap();
            open.wrote(&(0..10), open.errors());
        }
        assert_eq!(files.0.lock().known.len(), UNHELD_MAX);
        assert!(files.open(many[0].as_fd()).unwrap().unwrap().check(10).is_err());
    }
}
