//! Has a file system discard what is free in a range of it.

use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// The kernel's `struct fstrim_range`, in bytes.
#[repr(C)]
struct FstrimRange {
    start: u64,
    len: u64,
    min_len: u64,
}

/// The ioctl that reads a range, and answers how much of it was discarded in place of its length.
const FITRIM: Opcode = opcode::read_write::<FstrimRange>(b'X', 121);

/// Discards what is free of the `len` bytes from `start` on of the file system that `dir` is in,
/// and lies in extents of at least `min_len` bytes: how many bytes those were.
///
/// # Errors
/// Those of the ioctl: `PERM` without root, `OPNOTSUPP` where the device takes no discards,
/// `NOTTY` where the file system has no such call, `INVAL` behind its end.
pub(super) fn trim(dir: impl AsFd, start: u64, len: u64, min_len: u64) -> Result<u64> {
    let mut range = FstrimRange { start, len, min_len };
    // SAFETY: FITRIM reads and writes a `struct fstrim_range`, which `FstrimRange` is laid out as.
    unsafe { ioctl(dir, Updater::<FITRIM, FstrimRange>::new(&mut range)) }.map(|()| range.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A range without bytes is refused by whichever check comes first, and nothing is trimmed.
    #[test]
    fn the_kernel_knows_the_call_or_not_and_nothing_is_trimmed() {
        assert_eq!(size_of::<FstrimRange>(), 24);
        let dir = tempfile::tempdir().unwrap();
        let dir = std::fs::File::open(dir.path()).unwrap();
        let trimmed = trim(&dir, u64::MAX, 0, u64::MAX);
        assert!(trimmed.is_err() || trimmed == Ok(0), "{trimmed:?}");
    }
}
