//! Which disk holds a path.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::DiskProperties;

/// The number of a block device, as the kernel counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device(u64);

impl Device {
    /// The device that `path` lies on or, when it is a block device, the one that it is.
    ///
    /// # Errors
    /// `path` does not exist or cannot be looked up.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::in_metadata(&std::fs::metadata(path)?))
    }

    /// The device that an open file lies on or, when it is a block device, the one that it is.
    ///
    /// # Errors
    /// The file cannot be looked up.
    pub fn of_file(file: impl AsFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        Ok(Self(if is_device { stat.st_rdev } else { stat.st_dev }))
    }

    fn in_metadata(metadata: &Metadata) -> Self {
        let is_device = metadata.file_type().is_block_device();
        Self(if is_device { metadata.rdev() } else { metadata.dev() })
    }
}

/// `MAJOR:MINOR`, as in `lsblk` and `/proc/self/mountinfo`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", rustix::fs::major(self.0), rustix::fs::minor(self.0))
    }
}

/// Why the properties do not say what the disk of a directory can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PropertiesError {
    /// The directory cannot be looked up.
    #[error("cannot look up `{dir}`: {source}; create it, or name a directory that exists")]
    Directory {
        /// The directory asked for.
        dir: PathBuf,
        /// What the system says.
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
        /// What the system says.
        source: io::Error,
    },
    /// No mountpoint is on the device of the directory.
    #[error(
        "the io-properties do not cover `{dir}`: their mountpoints are {}; add an entry whose \
         mountpoint is on the same device as `{dir}` (device {device}{})",
        listed(mountpoints),
        mounted(mounted_at.as_deref())
    )]
    NotCovered {
        /// The directory asked for.
        dir: PathBuf,
        /// The device it lies on.
        device: Device,
        /// Where that device is mounted; `None` when the directory is a block device itself.
        mounted_at: Option<PathBuf>,
        /// The mountpoints of all disks.
        mountpoints: Vec<PathBuf>,
    },
    /// Mountpoints of two disks are on the same device.
    #[error(
        "the mountpoints {} of two disks in the io-properties are on the same device ({device}); \
         make one entry of the two",
        listed(mountpoints)
    )]
    CoveredTwice {
        /// The device.
        device: Device,
        /// One mountpoint of each of the two disks.
        mountpoints: [PathBuf; 2],
    },
}

fn listed(paths: &[PathBuf]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    quoted.join(", ")
}

fn mounted(at: Option<&Path>) -> String {
    at.map(|path| format!(", mounted at {}", path.display())).unwrap_or_default()
}

/// The one of `disks` that holds `dir`, where `device_of` looks up the device of a path.
pub(super) fn disk_for<'a>(
    disks: &'a [DiskProperties],
    dir: &Path,
    device_of: impl Fn(&Path) -> io::Result<Device>,
) -> Result<&'a DiskProperties, PropertiesError> {
    let device = device_of(dir)
        .map_err(|source| PropertiesError::Directory { dir: dir.to_owned(), source })?;
    let mut found: Option<(usize, &DiskProperties, &PathBuf)> = None;
    for (index, disk) in disks.iter().enumerate() {
        for mountpoint in &disk.mountpoints {
            let here = device_of(mountpoint).map_err(|source| PropertiesError::Mountpoint {
                mountpoint: mountpoint.clone(),
                source,
            })?;
            match found {
                _ if here != device => {}
                Some((other, _, first)) if other != index => {
                    let mountpoints = [first.clone(), mountpoint.clone()];
                    return Err(PropertiesError::CoveredTwice { device, mountpoints });
                }
                _ => found = Some((index, disk, mountpoint)),
            }
        }
    }
    found.map(|(_, disk, _)| disk).ok_or_else(|| PropertiesError::NotCovered {
        dir: dir.to_owned(),
        device,
        mounted_at: mounted_at(dir),
        mountpoints: disks.iter().flat_map(|disk| disk.mountpoints.iter().cloned()).collect(),
    })
}

/// Where the device that holds `dir` is mounted: its topmost directory above `dir`.
fn mounted_at(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    if std::fs::metadata(&dir).ok()?.file_type().is_block_device() {
        return None;
    }
    let device = Device::of(&dir).ok()?;
    dir.ancestors()
        .take_while(|path| Device::of(path).is_ok_and(|here| here == device))
        .last()
        .map(Path::to_owned)
}
