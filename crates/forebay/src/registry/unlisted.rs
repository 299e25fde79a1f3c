//! Files on disks without an entry.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_block::{DeviceNumber, Stack};

use super::disk::DiskRecord;
use crate::messages;
use crate::sys::lock::Lock;

/// The most devices that are reported. If containers come and go, new device numbers appear without
/// end.
const REPORTED_MAX: usize = 1024;

/// The treatment of files on disks without an entry; see
/// [`SchedulerBuilder::unlisted`](crate::SchedulerBuilder::unlisted).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unlisted {
    /// They belong to the disk [`default`](crate::DEFAULT_DISK), which has no limit.
    #[default]
    Default,
    /// Looking them up and opening them is an error, an [`UnlistedError`].
    Error,
    /// They belong to the disk of this name.
    Disk(String),
}

/// A file is on a disk that no entry covers.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is on device {device}, which is in no entry of the io-properties: {}",
    path.display(), advice(mountpoint.as_deref())
)]
pub struct UnlistedError {
    /// The file.
    pub path: PathBuf,
    /// The device or file system that it is on.
    pub device: DeviceNumber,
    /// The mountpoint of the device, if it is known.
    pub mountpoint: Option<PathBuf>,
}

forebay_core::debug_as_display!(UnlistedError);

/// The remedy.
fn advice(mountpoint: Option<&Path>) -> String {
    match mountpoint {
        Some(point) => format!("add one with `mountpoint: {}`", point.display()),
        None => String::from("add one for it"),
    }
}

/// The treatment of files without an entry, and the number of such files.
#[derive(Debug)]
pub(crate) struct UnlistedRule {
    /// The disk of these files; `None` if they are refused.
    disk: Option<Arc<DiskRecord>>,
    opens: AtomicU64,
    reported: Lock<HashSet<DeviceNumber>>,
}

impl UnlistedRule {
    pub(crate) fn new(disk: Option<Arc<DiskRecord>>) -> Self {
        Self { disk, opens: AtomicU64::new(0), reported: Lock::default() }
    }

    /// The number of files without an entry that were looked up or opened.
    pub(crate) fn opens(&self) -> u64 {
        self.opens.load(Ordering::Relaxed)
    }

    /// The disk of another file of a reported mount that no entry covers. `None` if such files are
    /// refused.
    pub(crate) fn disk_again(&self) -> Option<&Arc<DiskRecord>> {
        let disk = self.disk.as_ref()?;
        self.opens.fetch_add(1, Ordering::Relaxed);
        Some(disk)
    }

    /// The disk of the file `path` on `stack`, which no entry covers. The first file of each device
    /// is logged.
    pub(crate) fn disk_of(&self, path: PathBuf, stack: Stack) -> io::Result<Arc<DiskRecord>> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        let device = stack.number;
        let error =
            UnlistedError { path, device, mountpoint: stack.mount.map(|mount| mount.point) };
        let Some(disk) = &self.disk else { return Err(io::Error::other(error)) };
        let mut reported = self.reported.lock();
        let is_first = reported.len() < REPORTED_MAX && reported.insert(device);
        drop(reported);
        if is_first {
            let limited = if disk.rates().is_none() { ", which nothing limits" } else { "" };
            let name = &disk.name;
            messages::warn(format!(
                "{error}. Until then its files belong to the disk `{name}`{limited}"
            ));
        }
        Ok(Arc::clone(disk))
    }
}
