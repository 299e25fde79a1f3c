//! Which disk holds a path.

use std::io;
use std::path::{Path, PathBuf};

use forebay_block::{DeviceNumber as Device, Machine, Stack};

use super::DiskProperties;
use super::coverage::Coverage;

/// Why the properties have no entry for the disk of a directory.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PropertiesError {
    /// The directory cannot be looked up.
    #[error("cannot look up `{dir}`: {source}; create it, or name a directory that exists")]
    Directory {
        /// The given directory.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A mountpoint of the properties cannot be looked up.
    #[error(
        "cannot look up the mountpoint `{mountpoint}` of the io-properties: {source}; mount it, \
         or remove it from the file"
    )]
    Mountpoint {
        /// The mountpoint.
        mountpoint: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// No mountpoint is on the device of the directory.
    #[error(
        "the io-properties do not cover `{dir}`: their mountpoints are {}; add an entry whose \
         mountpoint is on the same device as `{dir}` (device {device}{})",
        joined(mountpoints),
        mounted(mounted_at.as_deref())
    )]
    NotCovered {
        /// The given directory.
        dir: PathBuf,
        /// The device of the directory.
        device: Device,
        /// The mountpoint of that device; `None` if the directory is a block device itself.
        mounted_at: Option<PathBuf>,
        /// The mountpoints of all disks.
        mountpoints: Vec<PathBuf>,
    },
    /// Mountpoints of two disks are on the same device.
    #[error(
        "the mountpoints {} of two disks in the io-properties are on the same device ({device}); \
         make one entry of the two",
        joined(mountpoints)
    )]
    CoveredTwice {
        /// The device.
        device: Device,
        /// One mountpoint of each of the two disks.
        mountpoints: [PathBuf; 2],
    },
}

forebay_core::debug_as_display!(PropertiesError);

fn joined(paths: &[PathBuf]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    quoted.join(", ")
}

fn mounted(at: Option<&Path>) -> String {
    at.map(|path| format!(", mounted at {}", path.display())).unwrap_or_default()
}

/// The disk of `disks` that holds `dir` on this machine.
pub(super) fn disk_for<'a>(
    disks: &'a [DiskProperties],
    dir: &Path,
    machine: &Machine,
) -> Result<&'a DiskProperties, PropertiesError> {
    let stack = Stack::of_path(machine, dir)
        .map_err(|source| PropertiesError::Directory { dir: dir.to_owned(), source })?;
    let mut coverage: Coverage<(usize, &PathBuf)> = Coverage::default();
    for (index, disk) in disks.iter().enumerate() {
        for mountpoint in &disk.mountpoints {
            let covered = Stack::of_path(machine, mountpoint).map_err(|source| {
                PropertiesError::Mountpoint { mountpoint: mountpoint.clone(), source }
            })?;
            if covered.number == stack.number
                && let Some(&(other, first)) = coverage.by_device(stack.number)
                && other != index
            {
                let mountpoints = [first.clone(), mountpoint.clone()];
                return Err(PropertiesError::CoveredTwice { device: stack.number, mountpoints });
            }
            coverage.add(&covered, &(index, mountpoint));
        }
    }
    coverage.of(&stack).map(|&(index, _)| &disks[index]).ok_or_else(|| {
        PropertiesError::NotCovered {
            dir: dir.to_owned(),
            device: stack.number,
            mounted_at: stack.mount.map(|mount| mount.point),
            mountpoints: disks.iter().flat_map(|disk| disk.mountpoints.iter().cloned()).collect(),
        }
    })
}
