//! What a scheduler has counted, as structures and as text.

use std::ffi::{c_char, c_int, c_void};

use forebay::metrics::{ClassSnapshot, DiskSnapshot, Distribution, Snapshot, open_metrics};
use forebay::{Op, Scheduler};

use crate::call::call_done;
use crate::code::{FOREBAY_E_NOT_FOUND, FOREBAY_E_TOO_SMALL};
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct, bytes_mut};
use crate::object::{Kind, Shared, get, insert};
use crate::scheduler::forebay_scheduler;

/// Everything that a scheduler had counted at one moment.
pub type forebay_snapshot = u64;

/// Bytes of a name that structures have room for, with a NUL.
pub const FOREBAY_NAME_SIZE: usize = 64;

/// What was counted of all disks.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_snapshot_info {
    /// `sizeof(struct forebay_snapshot_info)`.
    pub size: usize,
    /// For how long the process had used forebay: rates are by what this grew.
    pub uptime_ns: u64,
    /// Disks, the one of files that no entry covers among them.
    pub disks: u64,
    /// Classes, which are on each disk.
    pub classes: u64,
    /// Files that were looked up and that no entry covers.
    pub unlisted_opens: u64,
    /// Impossible states that were met in this process: each is a bug in forebay.
    pub bugs: u64,
}

/// One disk.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_disk_stats {
    /// `sizeof(struct forebay_disk_stats)`.
    pub size: usize,
    /// Its name: the first mountpoint, or what it was given; cut at `FOREBAY_NAME_SIZE`.
    pub name: [c_char; FOREBAY_NAME_SIZE],
    /// Bytes of the whole name.
    pub name_len: usize,
    /// How much may wait in the disk, in nanoseconds of its time; 0 if nothing binds.
    pub effective_goal_ns: u64,
    /// Disk time of what is in the disk now.
    pub in_flight_ns: u64,
    /// Thousandths of what its figures say that it did when work last waited; `UINT64_MAX` before.
    pub speed_permille: u64,
    /// Bytes that the disk read, and for which there was no permit.
    pub unscheduled_read: u64,
    /// Bytes that the disk wrote, and for which there was no permit.
    pub unscheduled_written: u64,
}

/// One class on one disk. Arrays are by operation: `FOREBAY_READ` to `FOREBAY_FLUSH`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_class_stats {
    /// `sizeof(struct forebay_class_stats)`.
    pub size: usize,
    /// Its name, cut at `FOREBAY_NAME_SIZE`.
    pub name: [c_char; FOREBAY_NAME_SIZE],
    /// Bytes of the whole name.
    pub name_len: usize,
    /// Its shares.
    pub shares: u32,
    /// Requests that wait now.
    pub queued: u32,
    /// Requests in the disk now.
    pub in_disk: u32,
    /// Permits that are held for far longer than the disk should take.
    pub held_long: u32,
    /// Requests that were completed without an error.
    pub operations: [u64; 4],
    /// Bytes of those.
    pub bytes: [u64; 4],
    /// Requests that were completed with an error.
    pub errors: u64,
    /// Requests that were cancelled while they waited.
    pub cancelled: u64,
    /// Disk time that it had, in nanoseconds.
    pub consumption_ns: u64,
    /// Time for which requests waited and none of the class was in the disk.
    pub starved_ns: u64,
    /// Time for which an upper limit kept it back.
    pub limited_ns: u64,
    /// Half of the requests waited no longer.
    pub queue_p50_ns: u64,
    /// 99 of 100 requests waited no longer.
    pub queue_p99_ns: u64,
    /// Half of the requests were in the disk no longer.
    pub disk_p50_ns: u64,
    /// 99 of 100 requests were in the disk no longer.
    pub disk_p99_ns: u64,
}

// SAFETY: it begins with its size, and is of numbers.
unsafe impl SizedStruct for forebay_snapshot_info {
    const SIZE_MIN: usize = 48;
}

// SAFETY: it begins with its size, and is of numbers.
unsafe impl SizedStruct for forebay_disk_stats {
    const SIZE_MIN: usize = 120;
}

// SAFETY: it begins with its size, and is of numbers.
unsafe impl SizedStruct for forebay_class_stats {
    const SIZE_MIN: usize = 232;
}

/// What a snapshot has.
pub(crate) struct Counted(Snapshot);

impl Shared for Counted {
    const KIND: Kind = Kind::Snapshot;
}

impl Counted {
    fn disk(&self, index: u64) -> Result<&DiskSnapshot, Failure> {
        at(&self.0.disks, index, "disk")
    }
}

fn at<'a, T>(all: &'a [T], index: u64, what: &str) -> Result<&'a T, Failure> {
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    found.ok_or_else(|| {
        let text = format!("there is no {what} {index}: there are {}", all.len());
        Failure::new(FOREBAY_E_NOT_FOUND, text)
    })
}

/// What there is room for of a name, up to the end of a character.
fn name_of(name: &str) -> [c_char; FOREBAY_NAME_SIZE] {
    let mut place = [0; FOREBAY_NAME_SIZE];
    let end = name.floor_char_boundary(FOREBAY_NAME_SIZE - 1);
    for (to, from) in place.iter_mut().zip(&name.as_bytes()[..end]) {
        *to = *from as c_char;
    }
    place
}

/// Counts everything now; `info` may be null. It takes some locks: not for the hot path.
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
        let counted = scheduler.snapshot();
        if !info.is_null() {
            // SAFETY: the caller's.
            let info = unsafe { OutStruct::new(info, "info")? };
            info.set(&forebay_snapshot_info {
                size: 0,
                uptime_ns: counted.uptime_nanos,
                disks: counted.disks.len() as u64,
                classes: counted.page_cache.len() as u64,
                unlisted_opens: counted.unlisted_opens,
                bugs: counted.bugs,
            });
        }
        out.fill(insert(Counted(counted)))
    })
}

/// The disk of that number, from 0; `FOREBAY_E_NOT_FOUND` behind the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_disk(
    snapshot: forebay_snapshot,
    disk: u64,
    stats: *mut forebay_disk_stats,
) -> c_int {
    call_done(|| {
        let counted = get::<Counted>(snapshot)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(stats, "stats")? };
        let disk = counted.disk(disk)?;
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

/// The class of that number on a disk, both from 0, in the order in which classes were added;
/// `FOREBAY_E_NOT_FOUND` behind the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_snapshot_class(
    snapshot: forebay_snapshot,
    disk: u64,
    class: u64,
    stats: *mut forebay_class_stats,
) -> c_int {
    call_done(|| {
        let counted = get::<Counted>(snapshot)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(stats, "stats")? };
        out.set(&stats_of(at(&counted.disk(disk)?.classes, class, "class")?));
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
        held_long: class.held_long,
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

/// What was counted as OpenMetrics text, in `text` of `size` bytes; no NUL ends it. `len` is how many
/// there are, also of `FOREBAY_E_TOO_SMALL`: then `text` has none of them.
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
        let (out, place) =
            unsafe { (Out::new(len, "len")?, bytes_mut(text.cast::<c_void>(), size, "text")?) };
        let counted = open_metrics(scheduler.snapshot());
        out.set(counted.len());
        let Some(place) = place.get_mut(..counted.len()) else {
            let text = format!("{size} bytes; the text has {}", counted.len());
            return Err(Failure::new(FOREBAY_E_TOO_SMALL, text));
        };
        place.copy_from_slice(counted.as_bytes());
        Ok(())
    })
}
