//! On real filesystems on a loop device. Only root can make these.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::system::{skipped, system};
use super::{check, findings, of};

/// XFS is not made smaller.
const SIZE: u64 = 512 << 20;

/// XFS on a loop device, mounted.
struct Mounted {
    device: String,
    point: PathBuf,
    _dir: TempDir,
}

impl Mounted {
    /// XFS with blocks of this many bytes; none, after saying why, where it cannot be had.
    fn new(block: u32) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            skipped("only root can mount a loop device");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        let point = dir.path().join("mounted");
        fs::create_dir(&point).unwrap();
        let device = system("losetup", &["--find", "--show", path(&image)])?;
        let mounted = Self { device, point, _dir: dir };
        system("mkfs.xfs", &["-f", "-b", &format!("size={block}"), &mounted.device])?;
        system("mount", &[&mounted.device, path(&mounted.point)])?;
        Some(mounted)
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
fn blocks_of_1_kib_are_found_with_the_line_that_fixes_them() {
    let Some(mounted) = Mounted::new(1024) else { return };
    let (findings, code) = findings(&mut check(&mounted.point));
    assert_eq!(code, 1, "{findings:?}");
    let said = of(&findings, "block-size")[0];
    assert_eq!(said["level"], "warning");
    assert!(said["what"].as_str().unwrap().contains("xfs has blocks of 1024 bytes"));
    let fix = said["fix"].as_str().unwrap();
    assert!(fix.contains(&format!("mkfs.xfs -f -b size=4096 {}", mounted.device)), "{fix}");
}

#[test]
fn blocks_of_4_kib_are_fine() {
    let Some(mounted) = Mounted::new(4096) else { return };
    let (findings, _) = findings(&mut check(&mounted.point));
    assert_eq!(of(&findings, "block-size")[0]["level"], "fine");
    let said = of(&findings, "filesystem");
    assert!(said.iter().any(|said| said["what"].as_str().unwrap().contains("not a disk")));
}
