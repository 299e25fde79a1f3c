//! Creation of schedulers.

use std::ffi::{c_char, c_int};

use forebay::properties::Properties;
use forebay::{
    DiskConfig, DiskRates, Policy, Scheduler, SchedulerBuilder, SchedulerError, Unlisted,
};

use crate::call::call_done;
use crate::failure::Failure;
use crate::memory::{Out, SizedStruct, path, read, text};
use crate::object;

/// A scheduler: disks, each with its own budget, and the classes that share them. Functions that take a
/// class also take a scheduler, and then use the class that the calling thread has entered.
pub type forebay_scheduler = u64;

/// Refuses files on disks that no entry covers (`FOREBAY_E_UNLISTED`). Without it their I/O is not
/// limited.
pub const FOREBAY_STRICT: u32 = 1;
/// Counts requests but lets none wait. It is for comparisons.
pub const FOREBAY_UNLIMITED: u32 = 2;

/// A disk with its rates. The vendor's figures are enough to begin with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_disk {
    /// `sizeof(struct forebay_disk)`.
    pub size: usize,
    /// Its name, in UTF-8.
    pub name: *const c_char,
    /// The length of `name` in bytes.
    pub name_len: usize,
    /// A directory on it, or its block device. Null if no file has to be assigned to it by its path.
    pub mountpoint: *const c_char,
    /// The length of `mountpoint` in bytes.
    pub mountpoint_len: usize,
    /// Small reads per second.
    pub read_iops: u64,
    /// Small writes per second.
    pub write_iops: u64,
    /// Bytes read per second.
    pub read_bandwidth: u64,
    /// Bytes written per second.
    pub write_bandwidth: u64,
}

// SAFETY: it begins with its size, and zeros are null pointers and numbers.
unsafe impl SizedStruct for forebay_disk {
    const SIZE_MIN: usize = 72;
}

/// Makes a scheduler for the disks in the file of I/O properties at `path`, which `forebay tune` writes.
/// `flags` is a sum of `FOREBAY_STRICT` and `FOREBAY_UNLIMITED`, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_scheduler_from_file(
    path: *const c_char,
    path_len: usize,
    flags: u32,
    scheduler: *mut forebay_scheduler,
) -> c_int {
    call_done(|| {
        // SAFETY: the caller's.
        let (out, path) =
            unsafe { (Out::new(scheduler, "scheduler")?, self::path(path, path_len, "path")?) };
        let properties = Properties::load(path).map_err(SchedulerError::from)?;
        let disks = properties.disks.iter().map(DiskConfig::from_properties);
        out.fill(make(disks, flags))
    })
}

/// Makes a scheduler for `count` disks with the given rates. All structures have the `size` of the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_scheduler_from_rates(
    disks: *const forebay_disk,
    count: usize,
    flags: u32,
    scheduler: *mut forebay_scheduler,
) -> c_int {
    call_done(|| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(scheduler, "scheduler")? };
        let mut configs = Vec::new();
        for index in 0..count {
            // SAFETY: the caller has `count` contiguous structures.
            configs.push(unsafe {
                let stride = disks.cast::<usize>().as_ref().copied().unwrap_or(0);
                let disk = disks.cast::<u8>().wrapping_add(index * stride).cast::<forebay_disk>();
                if index > 0 && disk.cast::<usize>().read_unaligned() != stride {
                    let text = format!("`disks` has sizes other than the first's, {stride}");
                    return Err(Failure::invalid(text));
                }
                config(disk)?
            });
        }
        out.fill(make(configs, flags))
    })
}

/// Reloads the figures of the disks from the file of I/O properties at `path`, without stopping I/O.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_scheduler_reload(
    scheduler: forebay_scheduler,
    path: *const c_char,
    path_len: usize,
) -> c_int {
    call_done(|| {
        let scheduler = object::get::<Scheduler>(scheduler)?;
        // SAFETY: the caller's.
        let path = unsafe { self::path(path, path_len, "path")? };
        let properties = Properties::load(path).map_err(SchedulerError::from)?;
        Ok(scheduler.reload(&properties)?)
    })
}

/// # Safety
/// `disk` is null, or its size and lengths are right.
unsafe fn config(disk: *const forebay_disk) -> Result<DiskConfig, Failure> {
    // SAFETY: as the caller says.
    let (disk, name, mountpoint) = unsafe {
        let disk = read(disk, "disks")?;
        let name = text(disk.name, disk.name_len, "name")?;
        (disk, name, path(disk.mountpoint, disk.mountpoint_len, "mountpoint")?)
    };
    let rates = DiskRates {
        read_iops: disk.read_iops,
        write_iops: disk.write_iops,
        read_bandwidth: disk.read_bandwidth,
        write_bandwidth: disk.write_bandwidth,
    };
    let config = DiskConfig::new(name, rates);
    let has_mountpoint = !mountpoint.as_os_str().is_empty();
    Ok(if has_mountpoint { config.mountpoint(mountpoint) } else { config })
}

fn make(disks: impl IntoIterator<Item = DiskConfig>, flags: u32) -> Result<u64, Failure> {
    if flags & !(FOREBAY_STRICT | FOREBAY_UNLIMITED) != 0 {
        let text = format!("unknown flags {flags:#x}: use FOREBAY_STRICT and FOREBAY_UNLIMITED");
        return Err(Failure::invalid(text));
    }
    let is_unlimited = flags & FOREBAY_UNLIMITED != 0;
    let policy =
        |disk: DiskConfig| if is_unlimited { disk.policy(Policy::Unlimited) } else { disk };
    let builder = disks.into_iter().map(policy).fold(Scheduler::builder(), SchedulerBuilder::disk);
    let is_strict = flags & FOREBAY_STRICT != 0;
    let builder = if is_strict { builder.unlisted(Unlisted::Error) } else { builder };
    object::insert(builder.build()?)
}
