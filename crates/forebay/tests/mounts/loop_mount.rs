//! File systems on loop devices, in a mount namespace of this process: what is mounted there goes
//! with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Control, DiskConfig, DiskRates, FileOptions, Scheduler, SchedulerBuilder};
use forebay_serve::{ServeConfig, Served};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

use crate::served::{attach, fast_disk};

pub(crate) const RATES: DiskRates = DiskRates {
    read_iops: 100_000,
    write_iops: 100_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 1_000_000_000,
};

/// Takes this process, which has one thread, out of the mount namespace of all others.
pub(crate) fn own_namespace() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err(String::from("needs root"));
    }
    // SAFETY: no descriptors are unshared, and there is no other thread yet.
    let own = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    own.and_then(|()| mount_change("/", flags))
        .map_err(|error| format!("needs a mount namespace of its own: {error}"))
}

/// Runs a command of the system that has to succeed, and returns what it prints.
pub(crate) fn system(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A directory with a disk in it: a loop device.
pub(crate) struct Lab {
    pub(crate) device: String,
    served: Option<Served>,
    dir: TempDir,
}

impl Lab {
    /// A disk of this many bytes. Its partitions go with it.
    pub(crate) fn new(size: u64) -> Self {
        Self::in_dir(tempfile::tempdir().unwrap(), size)
    }

    /// A disk of this many bytes that lies in memory.
    pub(crate) fn in_memory(size: u64) -> Self {
        Self::in_dir(dir_in_memory(size), size)
    }

    /// A disk of this many bytes that has room for `held` of them, and fails what does not fit. (A
    /// loop device on a file that has no room takes a write for done of which the file took a
    /// part.) What is mounted on it is to be unmounted before it ends. `None` where this system
    /// cannot serve it.
    pub(crate) fn thin(size: u64, held: u64) -> Option<Self> {
        let dir = dir_in_memory(held);
        let backing = Some(dir.path().join("image"));
        let config = ServeConfig { backing, realtime: false, ..ServeConfig::new(size) };
        let point = dir.path().join("served");
        fs::create_dir(&point).unwrap();
        let served = Served::mount(fast_disk(), &config, &point);
        let served = served.inspect_err(|error| eprintln!("skipped: {error}")).ok()?;
        let device = attach(served.path(), "512");
        Some(Self { device, served: Some(served), dir })
    }

    /// A [thin](Self::thin) disk has room for this many bytes from now on.
    pub(crate) fn make_room(&self, held: u64) {
        mount(&["-o", &format!("remount,size={held}")], self.dir.path());
    }

    /// A [thin](Self::thin) disk has room for what it holds, and no more.
    pub(crate) fn take_room(&self) {
        let stat = rustix::fs::statvfs(self.dir.path()).unwrap();
        self.make_room((stat.f_blocks - stat.f_bfree) * stat.f_frsize);
    }

    fn in_dir(dir: TempDir, size: u64) -> Self {
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(size).unwrap();
        let image = image.to_str().unwrap();
        let device = system("losetup", &["--find", "--show", "--partscan", image]);
        Self { device, served: None, dir }
    }

    /// A new directory.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Where `device`, with a new file system of this kind, is mounted.
    pub(crate) fn mounted(&self, kind: &str, device: &str, name: &str) -> PathBuf {
        system(&format!("mkfs.{kind}"), &["-q", device]);
        let point = self.dir(name);
        mount(&["-t", kind, device], &point);
        point
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // the device goes when nothing of it is mounted any more
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
        self.served = None;
        // if it is in memory
        unmount(self.dir.path());
    }
}

fn dir_in_memory(held: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    mount(&["-t", "tmpfs", "-o", &format!("size={held}"), "none"], dir.path());
    dir
}

/// `mount(8)`, at `point`.
pub(crate) fn mount(arguments: &[&str], point: &Path) {
    system("mount", &[arguments, &[point.to_str().unwrap()]].concat());
}

/// Unmounts what is at `point`, if that is possible: what was written is written back a while
/// longer, and keeps its file open.
pub(crate) fn unmount(point: &Path) -> bool {
    let begin = Instant::now();
    while let Err(error) = rustix::mount::unmount(point, UnmountFlags::empty()) {
        if error != rustix::io::Errno::BUSY || begin.elapsed() > Duration::from_secs(10) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// A scheduler with one disk, `disk`, at this mountpoint.
pub(crate) fn listing(mountpoint: impl Into<PathBuf>) -> SchedulerBuilder {
    // at the pace of the figures, so that the kernel has time for what it does meanwhile
    let disk = DiskConfig::new("disk", RATES).mountpoint(mountpoint).control(Control::Rates);
    Scheduler::builder().disk(disk)
}

/// The name of the disk that a file is found to be on by its path and when it is opened.
pub(crate) fn disk_of(scheduler: &Scheduler, path: &Path) -> String {
    let options = FileOptions::new().read(true).write(true).create(true).direct(false);
    let file = scheduler.open(path, &options).unwrap();
    let by_path = scheduler.disk_of(path).unwrap();
    assert_eq!(file.disk().name(), by_path.name(), "{}", path.display());
    by_path.name().to_owned()
}
