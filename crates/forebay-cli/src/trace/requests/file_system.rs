//! The file systems on devices, as far as requests are shaped by them.

use forebay_block::{DeviceNumber, Machine, Mount};
use rustix::fs::statvfs;

/// The smallest block of those that are mounted from one of these devices; `None` where none is
/// that says so.
pub(super) fn block_bytes(machine: &Machine, numbers: &[DeviceNumber]) -> Option<u64> {
    let mountinfo = machine.mountinfo();
    let mounts = Mount::all(&mountinfo);
    let on_device = mounts.filter(|mount| numbers.contains(&mount.device));
    let blocks = on_device.filter_map(|mount| statvfs(&mount.point).ok());
    blocks.map(|space| space.f_frsize).filter(|&bytes| bytes > 0).min()
}
