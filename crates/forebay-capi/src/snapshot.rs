//! The counters of a scheduler, as structures and as text.

use std::ffi::{c_char, c_int, c_void};

use forebay::metrics::{ClassSnapshot, DiskSnapshot, Distribution, Snapshot, open_metrics};
use forebay::{Op, Scheduler};

use crate::call::call_done;
use crate::code::{FOREBAY_E_NOT_FOUND, FOREBAY_E_TOO_SMALL};
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct, bytes_mut};
use crate::object::{Kind, Shared, get, insert};
use crate::scheduler::forebay_scheduler;

/// The values of all counters of a scheduler at one moment.
pub type forebay_snapshot = u64;

/// The size of a name in a structure, in bytes, with its NUL.
pub const FOREBAY_NAME_SIZE: usize = 64;

/// The counters of all disks together.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_snapshot_info {
    /// `sizeof(struct forebay_snapshot_info)`.
    pub size: usize,
    /// The time since the process first used forebay. Divide the growth of other counters by its growth to
    /// get rates.
    pub uptime_ns: u64,
    /// The number of disks, including the one for files that no entry covers.
    pub disks: u64,
    /// The number of classes, each of which is on all disks.
    pub classes: u64,
    /// The number of look-ups of files that no entry covers.
    pub unlisted_opens: u64,
    /// The number of broken invariants found in this process. Each is a bug in forebay.
    pub bugs: u64,
}

/// One disk.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_disk_stats {
    /// `sizeof(struct forebay_disk_stats)`.
    pub size: usize,
    /// Its name: the one that the program gave, or its first mountpoint. It is cut at
    /// `FOREBAY_NAME_SIZE`; `forebay_snapshot_disk_name` has all of it.
    pub name: [c_char; FOREBAY_NAME_SIZE],
    /// The length of the whole name in bytes.
    pub name_len: usize,
    /// The limit of the disk time of requests in the disk, in nanoseconds; 0 if there is none.
    pub effective_goal_ns: u64,
    /// The disk time of the requests in the disk now.
    pub in_flight_ns: u64,
    /// The disk's speed when requests last queued, in thousandths of its configured rates. `UINT64_MAX`
    /// before that was measured.
    pub speed_permille: u64,
    /// Bytes that the disk read without a permit.
    pub unscheduled_read: u64,
    /// Bytes that the disk wrote without a permit.
    pub unscheduled_written: u64,
}

/// One class on one disk. Arrays are by operation: `FOREBAY_READ` to `FOREBAY_FLUSH`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_class_stats {
    /// `sizeof(struct forebay_class_stats)`.
    pub size: usize,
    /// Its name, cut at `FOREBAY_NAME_SIZE`; `forebay_snapshot_class_name` has all of it.
    pub name: [c_char; FOREBAY_NAME_SIZE],
    /// The length of the whole name in bytes.
    pub name_len: usize,
    /// Its shares.
    pub shares: u32,
    /// Requests in the queue now.
    pub queued: u32,
    /// Requests in the disk now.
    pub in_disk: u32,
    /// Permits that have been held for far longer than the disk should take.
    pub held_long: u32,
    /// Requests that were completed without an error.
    pub operations: [u64; 4],
    /// The bytes of those requests.
    pub bytes: [u64; 4],
    /// Requests that were completed with an error.
    pub errors: u64,
    /// Requests that were cancelled in the queue.
    pub cancelled: u64,
    /// The disk time that it has used.
    pub consumption_ns: u64,
    /// The time for which its requests waited while none of them was in the disk.
    pub starved_ns: u64,
    /// The time for which an upper limit throttled it.
    pub limited_ns: u64,
    /// The median time in the queue.
    pub queue_p50_ns: u64,
    /// The 99th percentile of the time in the queue.
    pub queue_p99_ns: u64,
    /// The median time in the disk.
    pub disk_p50_ns: u64,
    /// The 99th percentile of the time in the disk.
    pub disk_p99_ns: u64,
}

// SAFETY: it begins with its size, and all other fields are numbers.
unsafe impl SizedStruct for forebay_snapshot_info {
    const SIZE_MIN: usize = 48;
}

// SAFETY: it begins with its size, and all other fields are numbers.
unsafe impl SizedStruct for forebay_disk_stats {
    const SIZE_MIN: usize = 120;
}

// SAFETY: it begins with its size, and all other fields are numbers.
unsafe impl SizedStruct for forebay_class_stats {
    const SIZE_MIN: usize = 232;
}

/// A snapshot as a handle stands for it.
pub(crate) struct SnapshotHandle(Snapshot);

impl Shared for SnapshotHandle {
    const KIND: Kind = Kind::Snapshot;
}

impl SnapshotHandle {
    fn disk(&self, index: u64) -> Result<&DiskSnapshot, Failure> {
        at(&self.0.disks, index, "disk")
    }

    fn class(&self, disk: u64, index: u64) -> Result<&ClassSnapshot, Failure> {
        at(&self.disk(disk)?.classes, index, "class")
    }
}

fn at<'a, T>(all: &'a [T], index: u64, what: &str) -> Result<&'a T, Failure> {
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    found.ok_or_else(|| {
        let text = format!("no {what} has the number {index}: there are {}", all.len());
        Failure::new(FOREBAY_E_NOT_FOUND, text)
    })
}

/// The beginning of a name that fits a structure, cut at the end of a character.
fn name_of(name: &str) -> [c_char; FOREBAY_NAME_SIZE] {
    let mut place = [0; FOREBAY_NAME_SIZE];
    let end = name.floor_char_boundary(FOREBAY_NAME_SIZE - 1);
    for (to, from) in place.iter_mut().zip(&name.as_bytes()[..end]) {
        *to = *from as c_char;
    }
    place
}

/// Takes a snapshot of all counters. `info` may be null. It takes some locks, so do not call it for each
/// request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_take(
    scheduler: forebay_scheduler,
    info: *mut forebay_snapshot_info,
    snapshot: *mut forebay_snapshot,
) -> c_int {
    call_done(|| {
        let scheduler = get::<Scheduler>(scheduler)?;
        // SAFETY: the caller's.
        let out = unsafe { Out::new(snapshot, "snapshot")? };
        let snapshot = scheduler.snapshot();
        if !info.is_null() {
            // SAFETY: the caller's.
            let info = unsafe { OutStruct::new(info, "info")? };
            info.set(&forebay_snapshot_info {
                size: 0,
                uptime_ns: snapshot.uptime_nanos,
                disks: snapshot.disks.len() as u64,
                classes: snapshot.page_cache.len() as u64,
                unlisted_opens: snapshot.unlisted_opens,
                bugs: snapshot.bugs,
            });
        }
        out.fill(insert(SnapshotHandle(snapshot)))
    })
}

/// Gets the disk of that number, counted from 0. Returns `FOREBAY_E_NOT_FOUND` after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_disk(
    snapshot: forebay_snapshot,
    disk: u64,
    stats: *mut forebay_disk_stats,
) -> c_int {
    call_done(|| {
        let snapshot = get::<SnapshotHandle>(snapshot)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(stats, "stats")? };
        let disk = snapshot.disk(disk)?;
        out.set(&forebay_disk_stats {
            size: 0,
            name: name_of(&disk.name),
            name_len: disk.name.len(),
            effective_goal_ns: disk.effective_goal_nanos.unwrap_or(0),
            in_flight_ns: disk.in_flight_nanos,
            speed_permille: disk.load.speed_permille.unwrap_or(u64::MAX),
            unscheduled_read: disk.traffic.read.unscheduled,
            unscheduled_written: disk.traffic.written.unscheduled,
        });
        Ok(())
    })
}

/// Gets the class of that number on a disk, both counted from 0. Classes are in the order in which they
/// were added. Returns `FOREBAY_E_NOT_FOUND` after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_class(
    snapshot: forebay_snapshot,
    disk: u64,
    class: u64,
    stats: *mut forebay_class_stats,
) -> c_int {
    call_done(|| {
        let snapshot = get::<SnapshotHandle>(snapshot)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(stats, "stats")? };
        out.set(&stats_of(snapshot.class(disk, class)?));
        Ok(())
    })
}

fn stats_of(class: &ClassSnapshot) -> forebay_class_stats {
    let counters = &class.counters;
    let percentile = |of: &Distribution, permille| of.percentile_nanos(permille).unwrap_or(0);
    forebay_class_stats {
        size: 0,
        name: name_of(&class.name),
        name_len: class.name.len(),
        shares: class.shares,
        queued: counters.queued,
        in_disk: counters.in_disk,
        held_long: class.stuck_requests,
        operations: Op::ALL.map(|op| counters.operations[op.index()]),
        bytes: Op::ALL.map(|op| counters.bytes[op.index()]),
        errors: counters.errors,
        cancelled: counters.cancelled,
        consumption_ns: counters.consumption.as_nanos_ceil(),
        starved_ns: counters.starved_nanos,
        limited_ns: counters.limited_nanos,
        queue_p50_ns: percentile(&class.in_queue, 500),
        queue_p99_ns: percentile(&class.in_queue, 990),
        disk_p50_ns: percentile(&class.in_disk, 500),
        disk_p99_ns: percentile(&class.in_disk, 990),
    }
}

/// Writes the whole name of the disk of that number to `text`, which has `size` bytes, without a NUL at the
/// end. `len` receives its length in bytes. If it does not fit, `text` is not written and
/// `FOREBAY_E_TOO_SMALL` is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_disk_name(
    snapshot: forebay_snapshot,
    disk: u64,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> c_int {
    call_done(|| {
        let snapshot = get::<SnapshotHandle>(snapshot)?;
        // SAFETY: the caller's.
        unsafe { write_text(&snapshot.disk(disk)?.name, text, size, len) }
    })
}

/// Writes the whole name of the class of that number on a disk, as `forebay_snapshot_disk_name` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_class_name(
    snapshot: forebay_snapshot,
    disk: u64,
    class: u64,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> c_int {
    call_done(|| {
        let snapshot = get::<SnapshotHandle>(snapshot)?;
        // SAFETY: the caller's.
        unsafe { write_text(&snapshot.class(disk, class)?.name, text, size, len) }
    })
}

/// Writes all metrics as OpenMetrics text to `text`, which has `size` bytes, without a NUL at the end.
/// `len` receives the length of the text in bytes. If it does not fit, `text` is not written and
/// `FOREBAY_E_TOO_SMALL` is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_openmetrics(
    scheduler: forebay_scheduler,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> c_int {
    call_done(|| {
        let scheduler = get::<Scheduler>(scheduler)?;
        // SAFETY: the caller's.
        unsafe { write_text(&open_metrics(scheduler.snapshot()), text, size, len) }
    })
}

/// Writes `from` to `text`, which has `size` bytes, and its length to `len`.
///
/// # Safety
/// Both places are null or may be written.
unsafe fn write_text(
    from: &str,
    text: *mut c_char,
    size: usize,
    len: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: the caller's.
    let (out, place) =
        unsafe { (Out::new(len, "len")?, bytes_mut(text.cast::<c_void>(), size, "text")?) };
    out.set(from.len());
    let Some(place) = place.get_mut(..from.len()) else {
        let text = format!("`text` has {size} bytes, and {} are needed", from.len());
        return Err(Failure::new(FOREBAY_E_TOO_SMALL, text));
    };
    place.copy_from_slice(from.as_bytes());
    Ok(())
}
