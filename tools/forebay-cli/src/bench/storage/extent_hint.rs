//! Asks a filesystem to allocate a file in large extents.

use std::ffi::c_void;
use std::os::fd::AsFd;

use rustix::io::Result;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

/// `FS_XFLAG_EXTSIZE`: the extent size of the file is the one given.
const EXTENT_SIZE: u32 = 0x0000_0800;

/// The kernel's `struct fsxattr`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copy_on_write_extent_size: u32,
    padding: [u8; 8],
}

/// An ioctl that reads or writes [`Attributes`].
struct Exchange<const OPCODE: Opcode>(Attributes);

const GET: Opcode = opcode::read::<Attributes>(b'X', 31);
const SET: Opcode = opcode::write::<Attributes>(b'X', 32);

// SAFETY: both opcodes take a pointer to `struct fsxattr`, which `Attributes` is laid out as; the
// kernel writes no more than that, and any bytes are valid `Attributes`.
unsafe impl<const OPCODE: Opcode> Ioctl for Exchange<OPCODE> {
    type Output = Attributes;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        OPCODE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    // SAFETY: the contract is that of `Ioctl::output_from_ptr`.
    unsafe fn output_from_ptr(_: IoctlOutput, attributes: *mut c_void) -> Result<Attributes> {
        // SAFETY: this is the pointer that `as_ptr` returned, to `Attributes` that live on.
        Ok(unsafe { attributes.cast::<Attributes>().read() })
    }
}

/// Asks for extents of `bytes`.
///
/// # Errors
/// The filesystem knows no such hint, or not this size.
pub(super) fn set(file: impl AsFd, bytes: u64) -> Result<()> {
    let mut attributes = get(&file)?;
    attributes.flags |= EXTENT_SIZE;
    attributes.extent_size = u32::try_from(bytes).unwrap_or(u32::MAX);
    // SAFETY: `Exchange` describes FS_IOC_FSSETXATTR truthfully.
    unsafe { ioctl(file, Exchange::<SET>(attributes)) }.map(drop)
}

fn get(file: impl AsFd) -> Result<Attributes> {
    // SAFETY: `Exchange` describes FS_IOC_FSGETXATTR truthfully.
    unsafe { ioctl(file, Exchange::<GET>(Attributes::default())) }
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
