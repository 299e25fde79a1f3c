//! Claims on a trash and on its entries. They end with the process that holds them.
//!
//! A claim is a record lock of an open file description (OFD) on one byte of the trash directory.
//! The kernel drops it when the process ends, in whatever way, and it also works between
//! containers. The bytes are never read or written, so each byte can stand for a deleter or an
//! entry. A directory cannot be opened for writing, so only read locks are possible, and these do
//! not exclude each other. So a deleter places its lock, then looks for another one on the byte,
//! and takes its own back if there is one.

use std::io;
use std::os::fd::BorrowedFd;

use super::entry_name::EntryName;
use crate::sys::record_lock;

/// Bytes below this one stand for deleters that use the trash. The others stand for entries.
const ENTRIES: i64 = 1 << 62;
/// The most other deleters of one trash that a deleter remembers.
const OTHERS_MAX: usize = 256;

/// The claims of one open trash directory.
pub(super) struct Claims<'a>(pub(super) BorrowedFd<'a>);

/// The byte that a deleter claims while it uses the trash. It owns all entries with its number
/// meanwhile.
const fn byte_of_owner(owner: u64) -> i64 {
    (owner >> 2) as i64
}

/// The byte that a deleter claims while it deletes an entry which another deleter left.
const fn byte_of_entry(name: EntryName) -> i64 {
    ENTRIES + (name.owner.wrapping_add(name.number) as i64 & (ENTRIES - 1))
}

impl Claims<'_> {
    /// Marks the trash as used by `owner`. Has no effect on a file system without locks.
    pub(super) fn enter(&self, owner: u64) {
        let _ = self.set(libc::F_RDLCK, byte_of_owner(owner));
    }

    pub(super) fn leave(&self, owner: u64) {
        let _ = self.set(libc::F_UNLCK, byte_of_owner(owner));
    }

    /// Whether another deleter with the number `owner` uses the trash.
    pub(super) fn has(&self, owner: u64) -> bool {
        self.of_another(byte_of_owner(owner), 1).is_some()
    }

    /// The bytes of all deleters that use the trash, except `owner`.
    pub(super) fn others(&self, owner: u64) -> Vec<i64> {
        let (mut found, mut ranges) = (Vec::new(), vec![(0, ENTRIES)]);
        while let Some((start, end)) = ranges.pop() {
            if start >= end || found.len() >= OTHERS_MAX {
                continue;
            }
            // The byte may be that of any lock in the range, not only of the first.
            let Some(byte) = self.of_another(start, end - start) else { continue };
            if byte != byte_of_owner(owner) {
                found.push(byte);
            }
            ranges.extend([(start, byte), (byte + 1, end)]);
        }
        found
    }

    /// Claims an entry. Returns whether no other deleter has it. If two do this at once, both may
    /// fail.
    pub(super) fn place_alone(&self, name: EntryName) -> bool {
        let byte = byte_of_entry(name);
        // Without locks, other deleters cannot be found.
        if self.set(libc::F_RDLCK, byte).is_err() {
            return true;
        }
        let is_alone = self.of_another(byte, 1).is_none();
        if !is_alone {
            self.take_back(name);
        }
        is_alone
    }

    pub(super) fn take_back(&self, name: EntryName) {
        let _ = self.set(libc::F_UNLCK, byte_of_entry(name));
    }

    fn set(&self, kind: libc::c_int, byte: i64) -> io::Result<()> {
        record_lock::ask(self.0, libc::F_OFD_SETLK, kind, (byte, 1)).map(drop)
    }

    /// A byte that another open file has claimed, within `len` bytes from `start`.
    fn of_another(&self, start: i64, len: i64) -> Option<i64> {
        record_lock::of_another(self.0, (start, len))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_claim_excludes_others_and_ends_with_its_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = [0; 2].map(|_| File::open(dir.path()).unwrap());
        let (a, b) = (Claims(one.as_fd()), Claims(two.as_fd()));
        let name = |number| EntryName { owner: 0xab << 8, number };
        assert!(a.place_alone(name(1)) && a.place_alone(name(2)));
        assert!(!b.place_alone(name(1)) && b.place_alone(name(3)));
        a.take_back(name(1));
        assert!(b.place_alone(name(1)) && !b.place_alone(name(2)));
        drop(one);
        assert!(b.place_alone(name(2)));
    }

    #[test]
    fn all_others_that_use_a_trash_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let (here, others) = (open(), (0..9).map(|_| open()).collect::<Vec<_>>());
        let owner = |n: u64| n.wrapping_mul(0x1234_5678_9abc_def1);
        Claims(here.as_fd()).enter(1 << 40);
        for (n, other) in (0..).zip(&others) {
            Claims(other.as_fd()).enter(owner(n));
        }
        let mut found = Claims(here.as_fd()).others(1 << 40);
        found.sort_unstable();
        let mut expected: Vec<i64> = (0..9).map(|n| byte_of_owner(owner(n))).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(Claims(here.as_fd()).has(owner(3)));
        drop(others);
        assert_eq!(Claims(here.as_fd()).others(1 << 40), []);
    }
}
