//! `forebay trim`: the discards of free space, and refused requests.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::process::{run, run_and_at};
use crate::system::{skipped, system};

/// XFS is not made smaller.
const SIZE: u64 = 512 << 20;
const FILE: usize = 64 << 20;
/// Bytes of a block of each file system.
const BLOCK: u64 = 4096;

/// What a test needs is not to be had, although it runs as root: in CI it fails.
fn lacks(reason: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    let is_root = rustix::process::geteuid().is_root();
    assert!(!(in_ci && is_root), "skipped for root in CI: {reason}");
    skipped(reason);
}

fn trim(point: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("trim").arg(point).args(options);
    command
}

/// A file system on a loop device, mounted without online discard.
struct Mounted {
    device: String,
    image: PathBuf,
    point: PathBuf,
    _dir: TempDir,
}

impl Mounted {
    /// None, after saying why, where it cannot be had.
    fn new(kind: &str) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            skipped("needs root, to mount a loop device");
            return None;
        }
        let made = Self::make(kind);
        if made.is_none() {
            lacks("needs a loop device, mkfs and mount");
        }
        made
    }

    fn make(kind: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        let point = dir.path().join("mounted");
        fs::create_dir(&point).unwrap();
        let device = system("losetup", &["--find", "--show", path(&image)])?;
        let mounted = Self { device, image, point, _dir: dir };
        let force = if kind == "xfs" { "-f" } else { "-F" };
        system(&format!("mkfs.{kind}"), &["-q", force, &mounted.device])?;
        system("mount", &["-o", "nodiscard", &mounted.device, path(&mounted.point)])?;
        Some(mounted)
    }

    /// Bytes that the image takes of the file system that it is on.
    fn allocated(&self) -> u64 {
        system("sync", &["-f", path(&self.point)]);
        fs::metadata(&self.image).unwrap().blocks() * 512
    }

    /// Removes a file and waits until its blocks are free: XFS frees them in the background, and
    /// a trim passes over them until then.
    fn remove(&self, name: &str) {
        let free = || rustix::fs::statvfs(&self.point).unwrap().f_bfree;
        system("sync", &["-f", path(&self.point)]);
        let before = free();
        let file = self.point.join(name);
        let blocks = fs::metadata(&file).unwrap().blocks() * 512 / BLOCK;
        fs::remove_file(&file).unwrap();
        let patience = Instant::now();
        while free() + blocks / 100 < before + blocks {
            assert!(patience.elapsed() < Duration::from_secs(60), "{name} keeps its blocks");
            thread::sleep(Duration::from_millis(10));
        }
        system("sync", &["-f", path(&self.point)]);
    }

    fn takes_discards(&self) -> bool {
        let name = self.device.trim_start_matches("/dev/");
        let max = fs::read_to_string(format!("/sys/block/{name}/queue/discard_max_bytes"));
        max.is_ok_and(|max| max.trim() != "0")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        system("umount", &[path(&self.point)]);
        system("losetup", &["--detach", &self.device]);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn deleted_space_is_freed_and_other_files_stay() {
    for kind in ["ext4", "xfs"] {
        let Some(mounted) = Mounted::new(kind) else { return };
        if !mounted.takes_discards() {
            run(&mut trim(&mounted.point, &[])).complains(2, &["which takes no discards"]);
            lacks("needs a loop device that takes discards");
            return;
        }
        let data: Vec<u8> = (0..FILE).map(|at| (at / 4096 + at) as u8 | 1).collect();
        fs::write(mounted.point.join("stays"), &data).unwrap();
        fs::write(mounted.point.join("goes"), &data).unwrap();
        let full = mounted.allocated();
        mounted.remove("goes");
        let before = mounted.allocated();
        assert!(before + (FILE as u64) / 2 > full, "{kind}: discarded without a trim");
        let planned = run(&mut trim(&mounted.point, &["--dry-run"]));
        assert!(planned.stdout.contains("would trim"), "{kind}: {planned:?}");
        assert!(mounted.allocated() + (FILE as u64) / 2 > before, "{kind}: a dry run discards");
        // as fast as it goes: what is tested is that it ends
        let ended = run(&mut trim(&mounted.point, &["--disk-share", "100%"]));
        assert_eq!(ended.code, Some(0), "{kind}: {}", ended.stderr);
        assert!(ended.stdout.contains(" discarded in "), "{kind}: {}", ended.stdout);
        assert!(ended.stdout.contains(" discards of "), "{kind}: {}", ended.stdout);
        let after = mounted.allocated();
        assert!(after + (FILE as u64) / 2 < full, "{kind}: {full} {before} {after}");
        assert!(fs::read(mounted.point.join("stays")).unwrap() == data, "{kind}");
    }
}

#[test]
fn a_signal_ends_it_and_it_says_how_far_it_came() {
    let Some(mounted) = Mounted::new("ext4") else { return };
    if !mounted.takes_discards() {
        lacks("needs a loop device that takes discards");
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        // some eight minutes
        let mut command = trim(&mounted.point, &["--rate", "1MB"]);
        let ended = run_and_at(&mut command, "trimming", |child| {
            kill_process(Pid::from_child(child), signal).unwrap();
        });
        ended.complains(130, &["interrupted: ", "not examined"]);
    }
}

#[test]
fn untrimmable_mounts_are_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let cases: [(&Path, &[&str], &str); 6] = [
        (dir.path(), &[], "is not a mountpoint"),
        (&file, &[], "is not a mountpoint"),
        (Path::new("/proc"), &[], "is proc, which cannot be trimmed in parts"),
        (Path::new("/nowhere/at/all"), &[], "No such file"),
        (Path::new("/proc"), &["--rate", "0"], "--rate 0 would never end"),
        (Path::new("/proc"), &["--disk-share", "0%"], "expected 0.1% to 100%"),
    ];
    for (place, options, expected) in cases {
        run(&mut trim(place, options)).complains(2, &[expected]);
    }
}

/// A service under systemd's `ProtectSystem=strict` sees every file system through such a mount.
#[test]
fn behind_a_read_only_bind_mount_it_trims_what_fstrim_trims() {
    for kind in ["ext4", "xfs"] {
        let Some(mounted) = Mounted::new(kind) else { return };
        if !mounted.takes_discards() {
            lacks("needs a loop device that takes discards");
            return;
        }
        let trim = format!("{} trim --disk-share 100% POINT", env!("CARGO_BIN_EXE_forebay"));
        // The tools count differently, so what the device gives back is compared.
        let [by_trim, by_fstrim] = [trim.as_str(), "fstrim POINT"].map(|command| {
            fs::write(mounted.point.join("goes"), vec![7; FILE]).unwrap();
            let full = mounted.allocated();
            mounted.remove("goes");
            run_behind_read_only_bind(&mounted.point, command);
            full.saturating_sub(mounted.allocated())
        });
        assert!(by_fstrim > FILE as u64 / 2, "{kind}: fstrim gave back {by_fstrim} bytes");
        let is_near = by_trim.abs_diff(by_fstrim) < by_fstrim / 20;
        assert!(is_near, "{kind}: {by_trim} bytes given back, {by_fstrim} by fstrim");
    }
}

/// Runs a shell command in a mount namespace of its own, where `point` is bound to itself and
/// read-only; `POINT` stands for it.
fn run_behind_read_only_bind(point: &Path, command: &str) {
    let script = format!("mount --bind POINT POINT && mount -o remount,bind,ro POINT && {command}");
    let script = script.replace("POINT", path(point));
    let ended = Command::new("unshare").args(["-m", "sh", "-ec", &script]).output().unwrap();
    assert!(ended.status.success(), "{command}: {ended:?}");
}

#[test]
fn a_file_system_that_is_read_only_is_refused() {
    let Some(mounted) = Mounted::new("ext4") else { return };
    if system("mount", &["-o", "remount,ro", path(&mounted.point)]).is_some() {
        run(&mut trim(&mounted.point, &[])).complains(2, &["mounted read-only"]);
    }
}
