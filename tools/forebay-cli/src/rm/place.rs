//! Whether a directory allows deletes in it, and whether they become discards.

use std::os::fd::AsFd;

use forebay_block::{BlockDevice, Machine, Stack};
use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

/// Refuses as the system would refuse to delete in this directory: by its mode or its mount.
pub(super) fn may_delete_in(dir: impl AsFd) -> Result<(), Errno> {
    accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
}

/// Why a discard is no result of deleting there; `None` where it is.
pub(super) fn no_discards(file: impl AsFd) -> Option<String> {
    let machine = Machine::this();
    let Ok(stack) = Stack::of_file(&machine, file) else {
        return Some("its mount is unknown".to_owned());
    };
    let Some(mount) = &stack.mount else { return Some("its mount is unknown".to_owned()) };
    if !mount.discards() {
        return Some(format!("{} is mounted without `discard`", mount.point.display()));
    }
    let device = stack.block_device().and_then(|number| BlockDevice::find(&machine, number));
    let takes = |device: &BlockDevice| device.queue_number(&machine, "discard_max_bytes");
    match device.as_ref().and_then(takes) {
        Some(most) if most > 0 => None,
        _ => Some(format!("the device of {} takes no discards", mount.point.display())),
    }
}
