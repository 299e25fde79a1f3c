//! Entries of a trash, and which deleter may delete them.

use std::sync::Arc;

use rustix::fs::Stat;
use rustix::io::Errno;

use super::entry_name::EntryName;
use super::trash::Trash;

/// An entry that a deleter still has to delete.
pub(super) struct Entry {
    pub(super) trash: Arc<Trash>,
    pub(super) name: EntryName,
    is_claimed: bool,
}

/// The result of a claim.
pub(super) enum Claimed {
    /// The deleter has always owned the entry, or has claimed it before.
    Before,
    /// The deleter has claimed the entry now. This is its present status.
    Now(Stat),
    /// Another deleter is deleting it.
    ByAnother,
    /// Another deleter has deleted it.
    Gone,
}

impl Entry {
    pub(super) fn new(trash: &Arc<Trash>, name: EntryName) -> Self {
        Self { trash: Arc::clone(trash), name, is_claimed: false }
    }

    /// Whether another deleter moved it there, or gave it up.
    pub(super) fn is_left(&self) -> bool {
        self.name.owner != self.trash.owner
    }

    /// Whether it is in this trash, even if that was opened by another path.
    pub(super) fn is_in(&self, trash: &Trash) -> bool {
        self.trash.is_same(trash)
    }

    /// Claims the entry, so that no other deleter deletes it as long as this value exists.
    pub(super) fn claim(&mut self) -> Result<Claimed, Errno> {
        if self.is_claimed || !self.is_left() {
            return Ok(Claimed::Before);
        }
        self.is_claimed = self.trash.claims().place_alone(self.name);
        if !self.is_claimed {
            return Ok(Claimed::ByAnother);
        }
        match self.trash.stat_entry(self.name) {
            Ok(stat) => Ok(Claimed::Now(stat)),
            Err(Errno::NOENT) => Ok(Claimed::Gone),
            Err(errno) => Err(errno),
        }
    }

    /// Leaves the entry to other deleters, because this one has failed to delete it.
    pub(super) fn give_up(&self) {
        if !self.is_left() {
            // If it cannot be renamed, other deleters take it over when this process ends.
            let _ = self.trash.rename(self.name, self.name.given_up());
        }
    }

    /// Removes its name. It has no effect if the name is gone.
    pub(super) fn unlink(&self) -> Result<(), Errno> {
        self.trash.unlink(self.name)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.is_claimed {
            self.trash.claims().take_back(self.name);
        }
    }
}
