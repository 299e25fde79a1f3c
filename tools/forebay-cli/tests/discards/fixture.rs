//! XFS with `discard`, on a disk whose data are in memory.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::UnmountFlags;
use tempfile::TempDir;

use crate::serving::Serving;

pub(crate) const MIB: u64 = 1 << 20;
/// XFS is not made smaller than 300 MiB.
const CAPACITY: &str = "512M";
const SERVED: &str = "kind: ideal\nchannels: 8\nread_latency: 40us\nwrite_latency: 60us\n\
                      bandwidth: 1G\ncapacity: 512MB\n";

/// A file system, mounted.
pub(crate) struct Bed {
    pub(crate) point: PathBuf,
    pub(crate) device: String,
    image: PathBuf,
    serving: Option<Serving>,
    memory: TempDir,
    _point: TempDir,
}

impl Bed {
    /// On a loop device over a file.
    pub(crate) fn on_a_file(options: &str) -> Self {
        Self::with_blocks(4096, options)
    }

    /// The same with blocks of this size.
    pub(crate) fn with_blocks(bytes: u64, options: &str) -> Self {
        let memory = memory();
        let image = memory.path().join("image");
        system("truncate", &["-s", CAPACITY, text(&image)]);
        let device = system("losetup", &["--find", "--show", text(&image)]);
        Self::mounted(memory, image, device, None, bytes, options)
    }

    /// On a loop device over a simulated disk.
    pub(crate) fn on_a_served_disk(options: &str) -> Self {
        let memory = memory();
        let image = memory.path().join("image");
        let mut serving = Serving::start(SERVED, &["--loop", "--backing", text(&image)]);
        let line = serving.says("block device:");
        let device = line.trim().trim_start_matches("block device: ").to_owned();
        Self::mounted(memory, image, device, Some(serving), 4096, options)
    }

    fn mounted(
        memory: TempDir,
        image: PathBuf,
        device: String,
        serving: Option<Serving>,
        block_bytes: u64,
        options: &str,
    ) -> Self {
        let point = TempDir::new().unwrap();
        let bed =
            Self { point: point.path().to_owned(), device, image, serving, memory, _point: point };
        let block = format!("size={block_bytes}");
        system("mkfs.xfs", &["-q", "-f", "-b", &block, &bed.device]);
        system("mount", &["-o", options, &bed.device, text(&bed.point)]);
        bed
    }

    /// A directory with this many files of this many MiB, on the disk.
    pub(crate) fn files(&self, name: &str, count: u64, mib: u64) -> PathBuf {
        let dir = self.point.join(name);
        fs::create_dir(&dir).unwrap();
        for n in 0..count {
            let file = File::create_new(dir.join(n.to_string())).unwrap();
            for at in 0..mib {
                file.write_all_at(&vec![7; MIB as usize], at * MIB).unwrap();
            }
            file.sync_all().unwrap();
        }
        dir
    }

    /// A file of this many extents of this many bytes: behind each is a hole of one block.
    pub(crate) fn extents(&self, name: &str, count: u64, len: u64) -> PathBuf {
        const HOLE: u64 = 4096;
        let path = self.point.join(name);
        let file = File::create_new(&path).unwrap();
        for n in 0..count {
            file.write_all_at(&vec![7; (len + HOLE) as usize], n * (len + HOLE)).unwrap();
        }
        // of data that are on the disk, or nothing would be there to be punched
        file.sync_all().unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for n in 0..count {
            fallocate(&file, punch, n * (len + HOLE) + len, HOLE).unwrap();
        }
        // and their discards are none of those that are counted later
        file.sync_all().unwrap();
        system("sync", &["-f", text(&path)]);
        path
    }

    /// What the data of the disk take.
    pub(crate) fn held(&self) -> u64 {
        fs::metadata(&self.image).unwrap().blocks() * 512
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        unmount(&self.point);
        // the program that serves the disk detaches its device itself
        if self.serving.is_none() {
            let _ = Command::new("losetup").args(["--detach", &self.device]).output();
        }
        drop(self.serving.take());
        unmount(self.memory.path());
    }
}

fn memory() -> TempDir {
    let dir = TempDir::new().unwrap();
    system("mount", &["-t", "tmpfs", "-o", "size=600m", "none", text(dir.path())]);
    dir
}

/// Unmounts it; what is written back, or a loop device that is let go, keeps it busy for a while.
pub(crate) fn unmount(point: &Path) {
    let began = Instant::now();
    while rustix::mount::unmount(point, UnmountFlags::empty()) == Err(rustix::io::Errno::BUSY)
        && began.elapsed() < Duration::from_secs(20)
    {
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a command of the system that has to succeed, and returns what it prints.
pub(crate) fn system(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The program.
pub(crate) fn forebay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(arguments);
    command
}

/// What it said on stderr; it must have ended with this code.
pub(crate) fn said(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}
