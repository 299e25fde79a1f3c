//! The program, and a directory to try it in.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Short, so that the tests are.
pub(crate) const TIMES: [&str; 4] = ["--duration", "300ms", "--warmup", "50ms"];

/// Small reads beside large writes.
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

/// How the program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
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

impl Ended {
    /// The results; the program must have succeeded.
    pub(crate) fn results(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The program must have ended with this code, and said all of this.
    pub(crate) fn complains(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        for words in words {
            assert!(self.stderr.contains(words), "`{words}` is not in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

/// Runs the command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Starts the command, waits until it says `words`, does `act` to it, and waits for its end.
pub(crate) fn run_and_at(command: &mut Command, words: &str, act: impl FnOnce(&Child)) -> Ended {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let mut stderr = String::new();
    while !stderr.contains(words) {
        assert_ne!(reader.read_line(&mut stderr).unwrap(), 0, "`{words}` never came: {stderr}");
    }
    act(&child);
    reader.read_to_string(&mut stderr).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    Ended { code: output.status.code(), stdout, stderr }
}

/// Runs a command of the system; `None`, after saying why, where it is not to be had or fails.
pub(crate) fn system(command: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            eprintln!("skipped: {command}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("skipped: {command}: {error}");
            None
        }
    }
}
