//! A directory to try the program in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Short, so that the tests are.
pub(crate) const TIMES: [&str; 4] = ["--duration", "300ms", "--warmup", "50ms"];

/// Small reads alongside large writes.
pub(crate) const MIXED: &str = "
- name: reads
  type: randread
  shards: all
  data_size: 2MB
  shard_info: {parallelism: 2, reqsize: 4kB, shares: 100}
- name: bulk
  type: overwrite
  shards: all
  data_size: 2MB
  shard_info: {parallelism: 2, reqsize: 128kB, shares: 10}
";

/// Files that are removed one by one; more than a run removes.
pub(crate) const REMOVALS: &str = "
- name: removals
  type: unlink
  shards: all
  data_size: 16MB
  files_count: 16
  shard_info: {parallelism: 1, rps: 10}
";

/// A directory for files of the run, and one for the files that describe it.
pub(crate) struct Lab {
    pub(crate) dir: TempDir,
    files: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// A lab whose run makes its files on the filesystem of `parent`.
    pub(crate) fn within(parent: &Path) -> Self {
        Self { dir: TempDir::new_in(parent).unwrap(), files: TempDir::new().unwrap() }
    }

    /// Writes a file down that is no part of the run.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// An io-properties file for the disk of the lab.
    pub(crate) fn properties(&self) -> PathBuf {
        let dir = self.dir.path().display();
        let text = format!(
            "disks: [{{mountpoint: \"{dir}\", read_iops: 5000, write_iops: 5000, \
             read_bandwidth: 500000000, write_bandwidth: 500000000}}]"
        );
        self.file("io_properties.yaml", &text)
    }

    /// `forebay bench` with these jobs, in the directory of the lab and with its properties.
    pub(crate) fn bench(&self, jobs: &str) -> Command {
        let mut command = self.bare_bench(jobs);
        command.arg("--dir").arg(self.dir.path()).arg("--properties").arg(self.properties());
        command
    }

    /// `forebay bench` with these jobs and with times, and no more.
    pub(crate) fn bare_bench(&self, jobs: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.arg("bench").arg(self.file("jobs.yaml", jobs)).args(TIMES);
        command
    }

    /// The run must have removed all that it made.
    pub(crate) fn assert_nothing_left(&self) {
        let left = self.left_behind();
        assert!(left.is_empty(), "{left:?}");
    }

    /// What is in the directory of the lab.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}
