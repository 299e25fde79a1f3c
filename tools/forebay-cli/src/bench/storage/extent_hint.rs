//! Asks a filesystem to allocate a file in large extents.

use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

/// `FS_XFLAG_EXTSIZE`: the extent size of the file is the one given.
const EXTENT_SIZE: u32 = 0x0000_0800;

/// The kernel's `struct fsxattr`.
#[repr(C)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copy_on_write_extent_size: u32,
    padding: [u8; 8],
}

/// The ioctls that read and write [`Attributes`].
const GET: Opcode = opcode::read::<Attributes>(b'X', 31);
const SET: Opcode = opcode::write::<Attributes>(b'X', 32);

/// Asks for extents of `bytes`.
///
/// # Errors
/// The filesystem knows no such hint, or not this size.
pub(super) fn set(file: impl AsFd, bytes: u64) -> Result<()> {
    let mut attributes = get(&file)?;
    attributes.flags |= EXTENT_SIZE;
    attributes.extent_size = u32::try_from(bytes).unwrap_or(u32::MAX);
    // SAFETY: the ioctl reads a `struct fsxattr`, which `Attributes` is laid out as.
    unsafe { ioctl(file, Setter::<SET, Attributes>::new(attributes)) }
}

fn get(file: impl AsFd) -> Result<Attributes> {
    // SAFETY: the ioctl writes a `struct fsxattr`, which `Attributes` is laid out as; any bytes are valid.
    unsafe { ioctl(file, Getter::<GET, Attributes>::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the filesystem takes the hint or not, nothing else may happen.
    #[test]
    fn the_hint_is_taken_or_refused() {
        assert_eq!(size_of::<Attributes>(), 28);
        let file = tempfile::tempfile().unwrap();
        match set(&file, 1 << 20) {
            // Some take it and forget it.
            Ok(()) => assert!([0, 1 << 20].contains(&get(&file).unwrap().extent_size)),
            Err(error) => eprintln!("the filesystem takes no hint: {error}"),
        }
        let _ = get(&file);
    }
}
