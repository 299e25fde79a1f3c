//! The file systems on devices, as far as requests are shaped by them.

use forebay_block::{DeviceNumber, Machine, Mount};
use forebay_trace::FileSystem;
use rustix::fs::statvfs;

/// Of those that are mounted from one of these devices the one of the smallest blocks; `None` where
/// none says how large its blocks are.
pub(super) fn mounted_from(machine: &Machine, numbers: &[DeviceNumber]) -> Option<FileSystem> {
    let mountinfo = machine.mountinfo();
    let mounts = Mount::all(&mountinfo);
    let on_device = mounts.filter(|mount| numbers.contains(&mount.device));
    let described = on_device.filter_map(|mount| {
        let block_bytes = statvfs(&mount.point).ok()?.f_frsize;
        (block_bytes > 0).then_some(FileSystem { kind: mount.kind, block_bytes })
    });
    described.min_by_key(|file_system| file_system.block_bytes)
}
