//! Removed files, and where they are.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use forebay_core::Time;
use rustix::fs::fstatvfs;
use rustix::io::Errno;

use super::deletion::Target;
use super::directory::Directory;
use super::entry::Entry;
use super::error::{DeleteErrorCause, DeleteOperation, During};
use super::flusher::Flusher;
use super::trash::Trash;
use crate::Class;

/// A removed file that is not freed yet.
pub(super) struct Item {
    pub(super) target: Arc<Target>,
    pub(super) place: Place,
    /// Its allocated size, in bytes.
    pub(super) bytes: u64,
    pub(super) since: Time,
}

/// Where a removed file is.
pub(super) enum Place {
    /// In a trash.
    Trash(Entry),
    /// It has no name, and is open in a descriptor.
    Held(Held),
}

/// A file that is unlinked and open.
pub(super) struct Held {
    pub(super) fd: OwnedFd,
    pub(super) directory: Arc<Directory>,
}

impl Place {
    /// The class, on the disk of the file.
    pub(super) fn class(&self) -> &Class {
        match self {
            Self::Trash(entry) => &entry.trash.directory.class,
            Self::Held(held) => &held.directory.class,
        }
    }

    /// The free bytes and all bytes of its file system.
    pub(super) fn free_space(&self) -> Option<(u64, u64)> {
        let stat = match self {
            Self::Trash(entry) => fstatvfs(&entry.trash.fd),
            Self::Held(held) => fstatvfs(&held.fd),
        };
        let stat = stat.ok()?;
        Some((
            stat.f_bavail.saturating_mul(stat.f_frsize),
            stat.f_blocks.saturating_mul(stat.f_frsize),
        ))
    }

    /// Removes its name in the trash, if it has one.
    pub(super) fn unlink(&self) -> Result<(), DeleteErrorCause> {
        match self {
            Self::Trash(entry) => entry.unlink().during(DeleteOperation::Unlink),
            Self::Held(_) => Ok(()),
        }
    }

    /// Makes the file system commit its pending changes.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        match self {
            Self::Trash(entry) => entry.trash.flush(),
            Self::Held(held) => held.directory.flush(),
        }
    }

    /// The file that is flushed in its place.
    pub(super) fn flusher(&self) -> Result<Flusher, Errno> {
        match self {
            Self::Trash(entry) => Flusher::open(&entry.trash.fd),
            Self::Held(held) => Flusher::open(&held.directory.fd),
        }
    }

    /// Whether one flush covers both.
    pub(super) fn is_same_directory(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trash(one), Self::Trash(other)) => Arc::ptr_eq(&one.trash, &other.trash),
            (Self::Held(one), Self::Held(other)) => Arc::ptr_eq(&one.directory, &other.directory),
            _ => false,
        }
    }

    /// Its entry, if it is in this trash, even if that was opened by another path.
    pub(super) fn entry_in(&self, trash: &Trash) -> Option<&Entry> {
        match self {
            Self::Trash(entry) if entry.is_in(trash) => Some(entry),
            _ => None,
        }
    }
}
