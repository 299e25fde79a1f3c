//! `forebay disk serve` at work, and what it leaves.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program, serving a disk.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    mountpoint: TempDir,
    pub(crate) files: TempDir,
    /// The first that it said.
    pub(crate) banner: String,
}

/// Four reads or writes at a time, at once.
pub(crate) const DISK: &str = "kind: ideal\nchannels: 4\nread_latency: 50us\nwrite_latency: 50us\n\
                               bandwidth: 1G\ncapacity: 64MB\n";

impl Serving {
    /// Serves the disk that the text of a disk file describes.
    pub(crate) fn start(disk: &str, arguments: &[&str]) -> Self {
        let (files, mountpoint) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let file = files.path().join("disk.yaml");
        fs::write(&file, disk).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(["disk", "serve", "--no-realtime", "--disk"]).arg(file).args(arguments);
        command.arg(mountpoint.path()).current_dir(files.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let banner = String::new();
        let mut serving = Self { child, stdout, stderr, mountpoint, files, banner };
        serving.banner = serving.says("serving ");
        serving.says("real-time priority:");
        serving
    }

    /// The line with which the program says `words`.
    pub(crate) fn says(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "`{words}` never came");
        }
        line
    }

    /// The file that is the disk.
    pub(crate) fn disk(&self) -> PathBuf {
        self.mountpoint.path().join("disk")
    }

    /// The disk, opened as programs open a disk: past the page cache.
    pub(crate) fn open(&self) -> File {
        let direct = OFlags::DIRECT.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(direct).open(self.disk()).unwrap()
    }

    pub(crate) fn mountpoint(&self) -> &Path {
        self.mountpoint.path()
    }

    /// What the program has counted so far under this name: requests, bytes, failures.
    pub(crate) fn counted(&mut self, name: &str) -> Vec<u64> {
        self.signal(Signal::USR1);
        let mut summary = String::new();
        while !summary.contains("lateness") {
            assert_ne!(self.stdout.read_line(&mut summary).unwrap(), 0, "{summary}");
        }
        figures(&summary, name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the program to end with success, leaving nothing; what it said to stdout.
    pub(crate) fn end(mut self) -> String {
        let mut summary = String::new();
        self.stdout.read_to_string(&mut summary).unwrap();
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        assert!(!self.is_mounted());
        assert_eq!(self.mountpoint().read_dir().unwrap().count(), 0);
        summary
    }

    fn is_mounted(&self) -> bool {
        let path = self.mountpoint().canonicalize().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.lines().any(|line| line.contains(path.to_str().unwrap()))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// The numbers in the line of a summary that begins with `name`.
pub(crate) fn figures(summary: &str, name: &str) -> Vec<u64> {
    let line = summary.lines().find(|line| line.starts_with(name));
    let words = line.unwrap_or_else(|| panic!("no {name} in {summary}")).split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}
