//! Has a file system discard what is free in a range of it.

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// The kernel's `struct fstrim_range`, in bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct FstrimRange {
    start: u64,
    len: u64,
    min_len: u64,
}

/// The ioctl that reads a range, and answers how much of it was discarded in place of its length.
struct Fitrim(FstrimRange);

const FITRIM: Opcode = opcode::read_write::<FstrimRange>(b'X', 121);

// SAFETY: FITRIM takes a pointer to `struct fstrim_range`, which `FstrimRange` is laid out as; the
// kernel writes no more than that, and any bytes are a valid `FstrimRange`.
unsafe impl Ioctl for Fitrim {
    type Output = FstrimRange;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        FITRIM
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    // SAFETY: the contract is that of `Ioctl::output_from_ptr`.
    unsafe fn output_from_ptr(_: IoctlOutput, range: *mut c_void) -> Result<FstrimRange> {
        // SAFETY: this is the pointer that `as_ptr` returned, to a range that lives on.
        Ok(unsafe { range.cast::<FstrimRange>().read() })
    }
}

/// Discards what is free of the `len` bytes from `start` on of the file system that `dir` is in,
/// and lies in extents of at least `min_len` bytes: how many bytes those were.
///
/// # Errors
/// Those of the ioctl: `PERM` without root, `OPNOTSUPP` where the device takes no discards,
/// `NOTTY` where the file system has no such call, `INVAL` behind its end.
pub(super) fn trim(dir: impl AsFd, start: u64, len: u64, min_len: u64) -> Result<u64> {
    // SAFETY: `Fitrim` describes FITRIM truthfully.
    unsafe { ioctl(dir, Fitrim(FstrimRange { start, len, min_len })) }.map(|range| range.len)
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
