//! An entry of a trash, and who may delete it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::Stat;
use rustix::io::Errno;

use super::trash::Trash;

/// What the names of all entries begin with: nothing else in a trash is touched.
const PREFIX: &str = "forebay-";
/// Hexadecimal digits of an owner, and the most that a number has.
const DIGITS: usize = 16;
/// Set in the owner of entries that their discarder could not delete and left to others.
const GIVEN_UP: u64 = 1 << 63;

/// The name of an entry: which discarder moved it there, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntryName {
    pub(super) owner: u64,
    pub(super) number: u64,
}

/// Names that no other discarder gives.
pub(super) struct EntryNames {
    owner: u64,
    next: u64,
}

/// An entry that a discarder has yet to delete.
pub(super) struct Entry {
    pub(super) trash: Arc<Trash>,
    pub(super) name: EntryName,
    is_claimed: bool,
}

/// What came of a claim.
pub(super) enum Claimed {
    /// It is this discarder's from the beginning, or since an earlier claim.
    Before,
    /// Now: what it is by now.
    Now(Stat),
    /// Another discarder is at it.
    ByAnother,
    /// Another discarder has deleted it.
    Gone,
}

impl EntryName {
    /// `None` if it is the name of no entry.
    pub(super) fn parse(name: &OsStr) -> Option<Self> {
        let rest = name.to_str()?.strip_prefix(PREFIX)?;
        let (owner, number) = rest.split_once('-')?;
        let of_hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let parsed = Self { owner: of_hex(owner)?, number: of_hex(number)? };
        // As it is written, and in no other way.
        (parsed.to_os() == name && owner.len() == DIGITS).then_some(parsed)
    }

    pub(super) fn to_os(self) -> OsString {
        format!("{PREFIX}{:016x}-{:x}", self.owner, self.number).into()
    }

    /// Its name once its discarder has left it to others.
    fn given_up(self) -> Self {
        Self { owner: self.owner | GIVEN_UP, ..self }
    }
}

impl EntryNames {
    pub(super) const fn new(owner: u64) -> Self {
        Self { owner: owner & !GIVEN_UP, next: 0 }
    }

    pub(super) const fn owner(&self) -> u64 {
        self.owner
    }

    pub(super) fn next(&mut self) -> EntryName {
        self.next += 1;
        EntryName { owner: self.owner, number: self.next }
    }
}

impl Entry {
    pub(super) fn new(trash: &Arc<Trash>, name: EntryName) -> Self {
        Self { trash: Arc::clone(trash), name, is_claimed: false }
    }

    /// Whether another discarder moved it there, or gave it up.
    pub(super) fn is_left(&self) -> bool {
        self.name.owner != self.trash.owner
    }

    /// Whether it is in that trash, by whichever path either was opened.
    pub(super) fn is_in(&self, trash: &Trash) -> bool {
        self.trash.is_same(trash)
    }

    /// Sees to it that no other discarder deletes it, as long as this is there.
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

    /// Leaves it to other discarders: this one has failed to delete it.
    pub(super) fn give_up(&self) {
        if !self.is_left() {
            // Where it cannot be renamed it is left to others when this process ends.
            let _ = self.trash.rename(self.name, self.name.given_up());
        }
    }

    /// Opens it to free it.
    pub(super) fn open(&self) -> Result<OwnedFd, Errno> {
        self.trash.open_entry(self.name)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_by_their_names_alone() {
        let mut names = EntryNames::new(0xabc);
        let one = names.next();
        assert_eq!(one.to_os(), "forebay-0000000000000abc-1");
        assert_ne!(one, names.next());
        assert_eq!(EntryName::parse(&one.to_os()), Some(one));
        assert_eq!(EntryName::parse(&one.given_up().to_os()), Some(one.given_up()));
        for other in [
            "",
            "forebay-",
            "forebay-abc-1",
            "forebay-0000000000000abc-",
            "forebay-0000000000000abc",
            "forebay-0000000000000ABC-1",
            "forebay-0000000000000abc-1x",
            "forebay-0000000000000abc-01",
            "xforebay-0000000000000abc-1",
            "forebay-+000000000000abc-1",
            "forebay-0000000000000abc-1-2",
        ] {
            assert_eq!(EntryName::parse(OsStr::new(other)), None, "{other}");
        }
    }
}
