//! A directory with files, and a deleter.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use forebay::{Deleted, DeletedHow, Deleter, DeleterOptions, Scheduler};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) struct Bed {
    dir: TempDir,
    pub(crate) scheduler: Scheduler,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let scheduler = Scheduler::builder().build().unwrap();
        scheduler.add_class("deletes", 100).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), scheduler }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A new file of this many bytes that are on the disk.
    pub(crate) fn file(&self, name: &str, len: u64) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, vec![7; len as usize]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        path
    }

    /// Deletes in steps also here.
    pub(crate) fn deleter(&self) -> Deleter {
        self.deleter_with(DeleterOptions::new().always_in_steps(true))
    }

    pub(crate) fn deleter_with(&self, options: DeleterOptions) -> Deleter {
        let options = options.free_bytes_min(Some(0));
        Deleter::new(&self.scheduler.class("deletes").unwrap(), options).unwrap()
    }

    /// Names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Whether this file system says who has a file open: otherwise all are only unlinked.
    pub(crate) fn has_leases(&self) -> bool {
        let path = self.path("lease");
        let file = File::create_new(&path).unwrap();
        // SAFETY: it takes numbers, and the lease ends with the file below.
        let lease = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
        drop(file);
        fs::remove_file(path).unwrap();
        lease == 0
    }

    /// Asserts that it was freed in steps, where that can be.
    pub(crate) fn assert_in_steps(&self, deleted: Deleted, len: u64) {
        if self.has_leases() {
            let unlinked = matches!(deleted.how, DeletedHow::Unlinked(_));
            assert!(!unlinked && deleted.bytes >= len && deleted.steps > 0, "{deleted:?}");
        }
    }
}
