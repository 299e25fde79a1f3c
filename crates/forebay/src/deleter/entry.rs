//! An entry of a trash, and who may delete it.

use std::sync::Arc;

use rustix::fs::Stat;
use rustix::io::Errno;

use super::entry_name::EntryName;
use super::trash::Trash;

/// An entry that a deleter has yet to delete.
pub(super) struct Entry {
    pub(super) trash: Arc<Trash>,
    pub(super) name: EntryName,
    is_claimed: bool,
}

/// What came of a claim.
pub(super) enum Claimed {
    /// It is this deleter's from the beginning, or since an earlier claim.
    Before,
    /// Now: what it is by now.
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

    /// Whether it is in that trash, by whichever path either was opened.
    pub(super) fn is_in(&self, trash: &Trash) -> bool {
        self.trash.is_same(trash)
    }

    /// Sees to it that no other deleter deletes it, as long as this is there.
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

    /// Leaves it to other deleters: this one has failed to delete it.
    pub(super) fn give_up(&self) {
        if !self.is_left() {
            // Where it cannot be renamed it is left to others when this process ends.
            let _ = self.trash.rename(self.name, self.name.given_up());
        }
    }

    /// Removes its name; nothing if that is gone.
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
