//! Files whose length is increased before the writes beyond their end.
//!
//! Decision: `docs/decisions/0040-growing-files.md`.

use std::io;

use forebay_driver::Command;
use rustix::process::{Resource, getrlimit};

use crate::DirectFile;
use crate::engine::Operation;
use crate::page_cache::file_len;
use crate::sys::lock::Lock;

/// The known length of a growing file. All requests of the file pass here.
#[derive(Debug)]
pub(super) struct Growth {
    hint: u64,
    lengths: Lock<Lengths>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    /// The length of the file in bytes, as far as it is known.
    made: u64,
    /// The end of the last byte that was to be written.
    used: u64,
    /// The value of `used` before truncations whose outcome is unknown.
    uncut: u64,
}

impl Growth {
    /// The state of a file that was just opened.
    pub(super) fn of(file: &DirectFile, hint: u64) -> io::Result<Self> {
        let len = file_len(file)?;
        Ok(Self { hint, lengths: Lock::new(Lengths { made: len, used: len, uncut: 0 }) })
    }

    /// Makes the file long enough for `operation`, which is about to be sent.
    ///
    /// The lock is held during the change. Otherwise the file could be set to a length that was
    /// computed before another write grew it further, and would lose that write.
    pub(super) fn make_room_for(&self, operation: &Operation) -> io::Result<()> {
        let end = |offset: &u64| offset.saturating_add(operation.bytes());
        let mut lengths = self.lengths.lock();
        match operation {
            Operation::Write { file, offset, .. }
            | Operation::WriteVectored { file, offset, .. } => {
                let end = end(offset);
                if lengths.made < end {
                    lengths.look(file_len(file)?);
                }
                if let Some(len) = lengths.ahead_of(end, self.hint) {
                    // No longer than the limit: that would be a signal, not an error alone.
                    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
                    lengths.made = set_len(file, len.min(limit).max(end))
                        .or_else(|_| set_len(file, end))
                        .map_err(|errno| too_long(&errno.into(), end))?;
                }
                lengths.used = lengths.used.max(end);
            }
            Operation::Truncate { len, .. } => {
                let uncut = lengths.used.max(lengths.uncut);
                *lengths = Lengths { made: *len, used: *len, uncut };
            }
            Operation::Allocate { offset, len, .. } => {
                lengths.made = lengths.made.max(offset.saturating_add(*len));
            }
            _ => {}
        }
        Ok(())
    }

    /// The end of the bytes that were written to `file`.
    pub(super) fn used(&self, file: &DirectFile) -> io::Result<u64> {
        let mut lengths = self.lengths.lock();
        let len = file_len(file)?;
        lengths.look(len);
        // A truncation that lengthens the file may have failed.
        Ok(lengths.used.min(len))
    }
}

impl Lengths {
    /// Takes the present length of the file into account. If it is longer than expected, a truncation
    /// was cancelled or has failed, and the bytes that it would have cut off are still there.
    fn look(&mut self, len: u64) {
        let uncut = std::mem::take(&mut self.uncut);
        if len > self.made {
            self.made = len;
            self.used = self.used.max(uncut.min(len));
        }
    }

    /// The new length for a write that ends at `end`, if the file is too short. It is twice the old
    /// length, so that changes are rare.
    fn ahead_of(self, end: u64, hint: u64) -> Option<u64> {
        (self.made < end).then(|| end.max(hint).max(self.made.saturating_mul(2)))
    }
}

/// Makes the file `len` bytes long, and returns `len`.
fn set_len(file: &DirectFile, len: u64) -> rustix::io::Result<u64> {
    rustix::fs::ftruncate(file, len).map(|()| len)
}

fn too_long(error: &io::Error, len: u64) -> io::Error {
    io::Error::new(error.kind(), format!("cannot make the file {len} bytes long: {error}"))
}

#[cfg(test)]
mod tests {
    use rustix::process::{Rlimit, setrlimit};

    use super::*;

    #[test]
    fn a_growing_file_is_doubled_from_the_hint_on() {
        let mut lengths = Lengths::default();
        let mut made = Vec::new();
        for end in (1..=4096).map(|block| block * 4096) {
            if let Some(len) = lengths.ahead_of(end, 1 << 20) {
                made.push(len >> 20);
                lengths.made = len;
            }
        }
        assert_eq!(made, [1, 2, 4, 8, 16]);
        assert_eq!(lengths.ahead_of(1 << 30, 0), Some(1 << 30), "no less than is written");
        assert_eq!(Lengths::default().ahead_of(4096, 0), Some(4096), "no hint");
    }

    #[test]
    fn room_is_made_for_all_of_a_write_that_linux_cuts_short() {
        const LEN: usize = 3 << 30;
        let dir = tempfile::tempdir().unwrap();
        let options = DirectFile::options().write(true).create(true).direct(false);
        let file = options.open(dir.path().join("data")).unwrap();
        let growth = Growth::of(&file, 0).unwrap();
        // The allocator gives zeros that nobody has accessed.
        let write = Operation::write(file.clone(), 4096, vec![0u8; LEN]);
        growth.make_room_for(&write).unwrap();
        assert_eq!(file_len(&file).unwrap(), 4096 + LEN as u64);
        assert_eq!(growth.used(&file).unwrap(), 4096 + LEN as u64);
    }

    #[test]
    fn a_write_below_the_longest_length_grows_a_file_that_cannot_be_doubled() {
        const TIB: u64 = 1 << 40;
        let dir = tempfile::tempdir().unwrap();
        let options = DirectFile::options().write(true).create(true).direct(false);
        let file = options.open(dir.path().join("data")).unwrap();
        let made = |hint: u64| {
            let write = Operation::write(file.clone(), TIB, vec![0u8; 4096]);
            rustix::fs::ftruncate(&file, TIB).unwrap();
            Growth::of(&file, hint).unwrap().make_room_for(&write).unwrap();
            file_len(&file).unwrap()
        };
        // No file system has such a length.
        assert_eq!(made(u64::MAX), TIB + 4096);
        // No other test makes a file of this length.
        let before = getrlimit(Resource::Fsize);
        let limit = Rlimit { current: Some(TIB + 8192), ..before };
        setrlimit(Resource::Fsize, limit).unwrap();
        assert_eq!(made(0), TIB + 8192);
        setrlimit(Resource::Fsize, before).unwrap();
    }

    #[test]
    fn what_a_failed_truncation_left_is_still_used() {
        let dir = tempfile::tempdir().unwrap();
        let options = DirectFile::options().write(true).create(true).direct(false);
        let file = options.open(dir.path().join("data")).unwrap();
        rustix::fs::ftruncate(&file, 100).unwrap();
        let growth = Growth::of(&file, 0).unwrap();
        let truncate = |len| Operation::Truncate { file: file.clone(), len };
        for len in [10, 0, 1 << 50] {
            growth.make_room_for(&truncate(len)).unwrap();
            assert_eq!(growth.used(&file).unwrap(), 100, "{len}");
        }
        growth.make_room_for(&truncate(10)).unwrap();
        rustix::fs::ftruncate(&file, 10).unwrap();
        assert_eq!(growth.used(&file).unwrap(), 10, "it has happened");
    }
}
