//! A served disk with a file system on it, by a loop device.

use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_serve::{ServeConfig, Served};
use forebay_sim::disk::SimDisk;
use forebay_sim::spec::DiskSpec;
use tempfile::TempDir;

use crate::loop_mount::{mount, system, unmount};

/// Such a disk. What is mounted is unmounted before it ends.
pub(crate) struct ServedFileSystem {
    pub(crate) point: PathBuf,
    device: String,
    sector: String,
    kind: &'static str,
    served: Option<Served>,
    _dirs: [TempDir; 2],
}

impl ServedFileSystem {
    /// With ext4; `None` where this system cannot serve it.
    pub(crate) fn new(
        disk: Box<dyn SimDisk>,
        config: &ServeConfig,
        mkfs: &[&str],
        options: &str,
    ) -> Option<Self> {
        let mkfs = [mkfs, &["-E", "lazy_itable_init=0"]].concat();
        Self::of("ext4", disk, config, &mkfs, options)
    }

    /// With this kind of file system; `None` where this system cannot serve it.
    pub(crate) fn of(
        kind: &'static str,
        disk: Box<dyn SimDisk>,
        config: &ServeConfig,
        mkfs: &[&str],
        options: &str,
    ) -> Option<Self> {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let served = Served::mount(disk, config, dirs[0].path());
        let served = served.inspect_err(|error| eprintln!("skipped: {error}")).ok()?;
        let sector = config.sector.to_string();
        let device = attach(served.path(), &sector);
        system(&format!("mkfs.{kind}"), &[mkfs, &["-q", &device]].concat());
        let point = dirs[1].path().to_owned();
        mount(&["-t", kind, "-o", options, &device], &point);
        Some(Self { point, device, sector, kind, served: Some(served), _dirs: dirs })
    }

    pub(crate) fn disk(&self) -> &Served {
        self.served.as_ref().unwrap()
    }

    /// After a power cut: what a machine does that starts again. False if the file system is no
    /// more.
    pub(crate) fn start_again(&mut self, options: &str) -> bool {
        assert!(self.disk().write_cache().unwrap().is_off);
        unmount(&self.point);
        system("losetup", &["--detach", &self.device]);
        self.disk().restore_power().unwrap();
        self.device = attach(self.disk().path(), &self.sector);
        let mut mount = Command::new("mount");
        mount.args(["-t", self.kind, "-o", options, &self.device]).arg(&self.point);
        mount.output().unwrap().status.success()
    }

    /// Has the file system checked, once it is not mounted any more.
    pub(crate) fn check(self) {
        unmount(&self.point);
        match self.kind {
            "xfs" => system("xfs_repair", &["-n", &self.device]),
            _ => system("e2fsck", &["-f", "-n", &self.device]),
        };
    }
}

/// Does eight requests at a time, soon.
pub(crate) fn fast_disk() -> Box<dyn SimDisk> {
    let disk = "kind: ideal\nchannels: 8\nread_latency: 40us\nwrite_latency: 60us\n\
                bandwidth: 1G\n";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("disk.yaml");
    std::fs::write(&file, disk).unwrap();
    DiskSpec::resolve(file.to_str().unwrap()).unwrap().build(1)
}

/// A loop device past the page cache, with the disk's sectors.
pub(crate) fn attach(disk: &Path, sector: &str) -> String {
    let arguments = ["--find", "--show", "--direct-io=on", "--sector-size", sector];
    system("losetup", &[&arguments[..], &[disk.to_str().unwrap()]].concat())
}

impl Drop for ServedFileSystem {
    /// A process that ends before its disk is unmounted would wait for itself.
    fn drop(&mut self) {
        if !unmount(&self.point) {
            self.served = None;
            unmount(&self.point);
        }
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}
