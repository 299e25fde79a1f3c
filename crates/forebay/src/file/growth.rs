//! Files that are made longer ahead of the writes behind their end.
//!
//! Decision: `docs/decisions/0040-growing-files.md`.

use std::io;

use crate::DirectFile;
use crate::engine::Operation;
use crate::sys::lock::Lock;

/// What is known of the length of a growing file, all of whose requests come
/// by here.
#[derive(Debug)]
pub(super) struct Growth {
    hint: u64,
    lengths: Lock<Lengths>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    /// That of the file.
    made: u64,
    /// Where the last byte ends that was to be written.
    used: u64,
}

impl Growth {
    /// Of a file that was just opened.
    pub(super) fn of(file: &DirectFile, hint: u64) -> io::Result<Self> {
        let len = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
        Ok(Self { hint, lengths: Lock::new(Lengths { made: len, used: len }) })
    }

    /// Makes the file long enough for `operation`, which is about to be sent.
    ///
    /// The lock is held meanwhile: cut to a length that was worked out before
    /// another write grew it further, the file would lose that.
    pub(super) fn make_room_for(&self, operation: &Operation) -> io::Result<()> {
        let end = |offset: &u64| offset.saturating_add(operation.transfer_len() as u64);
        let mut lengths = self.lengths.lock();
        match operation {
            Operation::Write { file, offset, .. }
            | Operation::WriteVectored { file, offset, .. } => {
                let end = end(offset);
                if let Some(len) = lengths.ahead_of(end, self.hint) {
                    rustix::fs::ftruncate(file, len)
                        .map_err(|errno| too_long(&errno.into(), len))?;
                    lengths.made = len;
                }
                lengths.used = lengths.used.max(end);
            }
            Operation::Truncate { len, .. } => *lengths = Lengths { made: *len, used: *len },
            Operation::Allocate { offset, len, .. } => {
                lengths.made = lengths.made.max(offset.saturating_add(*len));
            }
            _ => {}
        }
        Ok(())
    }

    /// Where what was written ends.
    pub(super) fn used(&self) -> u64 {
        self.lengths.lock().used
    }
}

impl Lengths {
    /// How long to make the file for a write that ends at `end`, if it is too
    /// short: twice as long, so that it is seldom done.
    fn ahead_of(self, end: u64, hint: u64) -> Option<u64> {
        (self.made < end).then(|| end.max(hint).max(self.made.saturating_mul(2)))
    }
}

fn too_long(error: &io::Error, len: u64) -> io::Error {
    io::Error::new(error.kind(), format!("cannot make the file {len} bytes long: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_file_is_doubled_from_the_hint_on() {
        let mut lengths = Lengths { made: 0, used: 0 };
        let mut made = Vec::new();
        for end in (1..=4096).map(|block| block * 4096) {
            if let Some(len) = lengths.ahead_of(end, 1 << 20) {
                made.push(len >> 20);
                lengths.made = len;
            }
        }
        assert_eq!(made, [1, 2, 4, 8, 16]);
        assert_eq!(lengths.ahead_of(1 << 30, 0), Some(1 << 30), "no less than is written");
        assert_eq!(Lengths { made: 0, used: 0 }.ahead_of(4096, 0), Some(4096), "no hint");
    }
}
