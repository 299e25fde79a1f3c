//! Resolves a path as the kernel does, and asks nothing of a mount that may not answer.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::mount_table::MountTable;
use crate::{Backing, DeviceNumber, Machine, Mount};

/// As many links as the kernel follows.
const LINKS_MAX: u32 = 40;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct ResolvedPath<'a> {
    /// The full path, without links; what is below a mount that may not answer is as it was given.
    pub(crate) path: PathBuf,
    /// The mount that holds it; none where the table does not have it.
    pub(crate) mount: Option<&'a Mount>,
    /// Its number, if it is a block device.
    pub(crate) device: Option<DeviceNumber>,
}

/// Resolves `path`, which is absolute.
///
/// # Errors
/// There is nothing there, as far as that can be seen without asking a mount that may not answer.
pub(crate) fn resolve<'a>(
    machine: &Machine,
    table: &'a MountTable,
    path: &Path,
) -> io::Result<ResolvedPath<'a>> {
    let mut rest = Vec::new();
    push_steps(&mut rest, path);
    let root = ResolvedPath {
        path: PathBuf::from("/"),
        mount: table.at(None, Path::new("/")),
        device: None,
    };
    // where it came through, so that `..` finds its mount
    let mut visited = vec![root];
    let mut links = 0;
    while let (Some(step), Some(here)) = (rest.pop(), visited.last()) {
        let name = match step {
            PathStep::Root => {
                visited.truncate(1);
                continue;
            }
            PathStep::Up => {
                visited.truncate((visited.len() - 1).max(1));
                continue;
            }
            PathStep::Down(name) => name,
        };
        let (path, holder) = (here.path.join(name), here.mount);
        let mount = table.at(holder, &path);
        let is_crossed = mount.map(|mount| mount.id) != holder.map(|mount| mount.id);
        let is_silent = mount.is_some_and(Mount::may_not_answer);
        let mut device = None;
        if is_crossed && mount.is_some_and(|mount| Backing::of(&mount.kind) == Backing::Memory) {
            // A container has devices that are mounted one by one.
            device = machine.metadata(&path).ok().and_then(|metadata| device_of(&metadata));
        } else if !is_crossed && !is_silent {
            let metadata = machine.metadata(&path)?;
            if metadata.is_symlink() {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                push_steps(&mut rest, &machine.link(&path)?);
                continue;
            }
            device = device_of(&metadata);
        }
        visited.push(ResolvedPath { path, mount, device });
    }
    visited.pop().ok_or_else(|| Errno::NOENT.into())
}

/// The number of a block device; nothing for other files.
fn device_of(metadata: &Metadata) -> Option<DeviceNumber> {
    let is_device = metadata.file_type().is_block_device();
    is_device.then(|| DeviceNumber::of_dev(metadata.rdev()))
}

/// One step of a path.
enum PathStep {
    Root,
    Up,
    Down(OsString),
}

/// Puts the steps of `path` before all others, the first of them last.
fn push_steps(rest: &mut Vec<PathStep>, path: &Path) {
    rest.extend(path.components().rev().filter_map(|part| match part {
        Component::RootDir => Some(PathStep::Root),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    }));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const TABLE: &str = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                         21 20 0:50 / /net/home rw - nfs4 nas:/home rw\n\
                         22 20 8:2 / /data rw - xfs /dev/sda2 rw\n";

    /// Where `path` leads: the full path, and the number of the mount.
    fn resolved(path: &str) -> io::Result<(String, u64)> {
        let dir = tempfile::tempdir()?;
        let root = dir.path();
        fs::create_dir_all(root.join("data/store"))?;
        fs::create_dir_all(root.join("srv"))?;
        fs::create_dir_all(root.join("net"))?;
        symlink("/data/store", root.join("srv/store"))?;
        symlink("../srv/store/..", root.join("srv/up"))?;
        symlink("round", root.join("srv/round"))?;
        let machine = Machine::new(root.canonicalize()?);
        let table = MountTable::new(TABLE);
        let resolved = resolve(&machine, &table, Path::new(path))?;
        Ok((resolved.path.display().to_string(), resolved.mount.map_or(0, |mount| mount.id)))
    }

    #[test]
    fn links_lead_from_mount_to_mount() {
        assert_eq!(resolved("/srv/store").unwrap(), ("/data/store".into(), 22));
        assert_eq!(resolved("/srv/./up/store").unwrap(), ("/data/store".into(), 22));
        assert_eq!(resolved("/srv/up/../srv").unwrap(), ("/srv".into(), 20));
        assert_eq!(resolved("/../..").unwrap(), ("/".into(), 20));
    }

    #[test]
    fn a_missing_path_is_an_error() {
        let code = |path| resolved(path).unwrap_err().raw_os_error();
        assert_eq!(code("/srv/absent"), Some(Errno::NOENT.raw_os_error()));
        assert_eq!(code("/srv/round"), Some(Errno::LOOP.raw_os_error()));
    }

    #[test]
    fn a_device_that_is_mounted_alone_is_a_device() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("dev")).unwrap();
        let (kind, mode) = (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::RUSR);
        let number = rustix::fs::makedev(7, 3);
        let node = root.join("dev/disk");
        if let Err(errno) = rustix::fs::mknodat(rustix::fs::CWD, &node, kind, mode, number) {
            return eprintln!("skipped: this user may not make devices: {errno}");
        }
        let table = MountTable::new(
            "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             21 20 0:90 / /dev rw - tmpfs tmpfs rw\n\
             22 21 0:6 /sdb /dev/disk rw - devtmpfs devtmpfs rw\n",
        );
        let resolved = resolve(&Machine::new(root), &table, Path::new("/dev/disk")).unwrap();
        assert_eq!(resolved.mount.map(|mount| mount.id), Some(22));
        assert_eq!(resolved.device, "7:3".parse().ok());
    }

    #[test]
    fn nothing_is_asked_of_a_network() {
        // the caller would learn that these are not there
        assert_eq!(resolved("/net/home").unwrap(), ("/net/home".into(), 21));
        assert_eq!(resolved("/net/home/me/../you").unwrap(), ("/net/home/you".into(), 21));
    }
}
