//! Deletion of files in small steps, scheduled in a class.

use std::ffi::{c_char, c_int};

use forebay::{Deleted, DeletedHow, Deleter, DeleterOptions, Deletion, DeletionState};

use crate::call::call_done;
use crate::class::forebay_class;
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct, path, read};
use crate::object::{call_with_class, get, insert};

/// Deletes files in small steps, scheduled in a class.
pub type forebay_deleter = u64;
/// A deletion that was requested. It continues after its handle is freed.
pub type forebay_deletion = u64;

/// Unlinks files at once and frees their blocks through descriptors, instead of moving them to a trash.
pub const FOREBAY_DELETE_IN_PLACE: u32 = 1;
/// Deletes in steps even on disks where deleting sends no discards.
pub const FOREBAY_DELETE_ALWAYS_IN_STEPS: u32 = 2;

/// The file is still at its path.
pub const FOREBAY_DELETION_WAITING: u32 = 0;
/// The file is being removed from its path, and the deletion can no longer be cancelled.
pub const FOREBAY_DELETION_REMOVING: u32 = 1;
/// The file is durably removed from its path.
pub const FOREBAY_DELETION_REMOVED: u32 = 2;
/// The deletion has ended, with or without an error.
pub const FOREBAY_DELETION_ENDED: u32 = 3;

/// The options of a deleter. All fields but the size may be 0, which gives the defaults.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_deleter_options {
    /// `sizeof(struct forebay_deleter_options)`.
    pub size: usize,
    /// The most bytes freed per second; 0 for no limit but the scheduling of the class.
    pub rate: u64,
    /// The most extents discarded per second; 0 for no limit.
    pub commands_per_second: u64,
    /// The directory in which the trash for all files is; null for a trash in the directory of each file.
    pub trash_in: *const c_char,
    /// The length of `trash_in` in bytes.
    pub trash_in_len: usize,
    /// The most files that may wait; 0 for 1,048,576.
    pub files_max: u64,
    /// A sum of `FOREBAY_DELETE_...`.
    pub flags: u32,
}

// SAFETY: it begins with its size, and zeros are numbers and a null pointer.
unsafe impl SizedStruct for forebay_deleter_options {
    const SIZE_MIN: usize = 56;
}

/// The progress or result of a deletion.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_deleted {
    /// `sizeof(struct forebay_deleted)`.
    pub size: usize,
    /// The number of deleted files: 1, or all files of a trash. 0 before the deletion has ended.
    pub files: u64,
    /// The bytes freed in steps so far.
    pub bytes: u64,
    /// The size in bytes when the file was removed from its path; 0 in the result of `forebay_deletion_wait`.
    pub bytes_total: u64,
    /// The number of steps so far.
    pub steps: u64,
    /// `FOREBAY_DELETION_WAITING` to `FOREBAY_DELETION_ENDED`.
    pub state: u32,
    /// Whether the last file was unlinked at once instead of being freed in steps.
    pub unlinked: u32,
}

// SAFETY: it begins with its size, and is of numbers.
unsafe impl SizedStruct for forebay_deleted {
    const SIZE_MIN: usize = 48;
}

impl From<Deleted> for forebay_deleted {
    fn from(deleted: Deleted) -> Self {
        let Deleted { how, files, bytes, steps, .. } = deleted;
        let unlinked = u32::from(matches!(how, DeletedHow::Unlinked(_)));
        let state = FOREBAY_DELETION_ENDED;
        Self { size: 0, files, bytes, bytes_total: 0, steps, state, unlinked }
    }
}

/// Makes a deleter in `class`, for files on all disks. `options` may be null. The deleter raises the
/// shares of the class as its backlog nears the maximum, so give it a class of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_deleter_new(
    class: forebay_class,
    options: *const forebay_deleter_options,
    deleter: *mut forebay_deleter,
) -> c_int {
    call_with_class(class, |class| {
        // SAFETY: the caller's.
        let out = unsafe { Out::new(deleter, "deleter")? };
        let options = if options.is_null() {
            DeleterOptions::new()
        } else {
            // SAFETY: the caller's.
            unsafe { options_of(&read(options, "options")?)? }
        };
        out.fill(insert(Deleter::new(class, options)?))
    })
}

/// # Safety
/// `trash_in` is null or has `trash_in_len` bytes.
unsafe fn options_of(given: &forebay_deleter_options) -> Result<DeleterOptions, Failure> {
    let flags = given.flags;
    if flags & !(FOREBAY_DELETE_IN_PLACE | FOREBAY_DELETE_ALWAYS_IN_STEPS) != 0 {
        let text = format!(
            "unknown flags {flags:#x}: use FOREBAY_DELETE_IN_PLACE and \
             FOREBAY_DELETE_ALWAYS_IN_STEPS"
        );
        return Err(Failure::invalid(text));
    }
    // SAFETY: as the caller says.
    let trash_in = unsafe { path(given.trash_in, given.trash_in_len, "trash_in")? };
    let mut options = DeleterOptions::new()
        .in_place(flags & FOREBAY_DELETE_IN_PLACE != 0)
        .always_in_steps(flags & FOREBAY_DELETE_ALWAYS_IN_STEPS != 0);
    if given.rate > 0 {
        options = options.rate(given.rate);
    }
    if given.commands_per_second > 0 {
        options = options.commands_per_second(given.commands_per_second);
    }
    if given.files_max > 0 {
        options = options.files_max(usize::try_from(given.files_max).unwrap_or(usize::MAX));
    }
    Ok(if trash_in.as_os_str().is_empty() { options } else { options.trash_in(trash_in) })
}

/// Deletes the file at `path`. Returns at once; `forebay_deletion_wait` reports errors. `deletion` may be
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_delete(
    deleter: forebay_deleter,
    path: *const c_char,
    path_len: usize,
    deletion: *mut forebay_deletion,
) -> c_int {
    call_done(|| {
        let deleter = get::<Deleter>(deleter)?;
        // SAFETY: the caller's.
        let path = unsafe { self::path(path, path_len, "path")? };
        // SAFETY: the caller's.
        unsafe { give(deleter.delete(path), deletion) }
    })
}

/// Deletes files that earlier processes left in the trash of the directory `dir`. Call it when the
/// program starts. `deletion` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_deleter_empty_trash(
    deleter: forebay_deleter,
    dir: *const c_char,
    dir_len: usize,
    deletion: *mut forebay_deletion,
) -> c_int {
    call_done(|| {
        let deleter = get::<Deleter>(deleter)?;
        // SAFETY: the caller's.
        let dir = unsafe { path(dir, dir_len, "dir")? };
        // SAFETY: the caller's.
        unsafe { give(deleter.empty_trash(dir), deletion) }
    })
}

/// Waits until all requested deletions have ended. Call it when the program ends.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deleter_drain(deleter: forebay_deleter) -> c_int {
    call_done(|| {
        get::<Deleter>(deleter)?.drain().wait()?;
        Ok(())
    })
}

/// # Safety
/// `place` is null, or the caller may write a handle to it.
unsafe fn give(deletion: Deletion, place: *mut forebay_deletion) -> Result<(), Failure> {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: as the caller says.
    let out = unsafe { Out::new(place, "deletion")? };
    out.fill(insert(deletion))
}

/// Waits until the file is deleted and its blocks are freed. `deleted` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_deletion_wait(
    deletion: forebay_deletion,
    deleted: *mut forebay_deleted,
) -> c_int {
    call_done(|| {
        let deletion = get::<Deletion>(deletion)?;
        if deleted.is_null() {
            deletion.wait()?;
            return Ok(());
        }
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(deleted, "deleted")? };
        out.set(&deletion.wait()?.into());
        Ok(())
    })
}

/// Waits until the file is durably removed from its path: it does not come back. Its blocks are freed
/// later.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deletion_wait_removed(deletion: forebay_deletion) -> c_int {
    call_done(|| Ok(get::<Deletion>(deletion)?.wait_removed()?))
}

/// Gets the progress of a deletion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_deletion_progress(
    deletion: forebay_deletion,
    progress: *mut forebay_deleted,
) -> c_int {
    call_done(|| {
        let deletion = get::<Deletion>(deletion)?;
        // SAFETY: the caller's.
        let out = unsafe { OutStruct::new(progress, "progress")? };
        let progress = deletion.progress();
        let state = match progress.state {
            DeletionState::Waiting => FOREBAY_DELETION_WAITING,
            DeletionState::Removing => FOREBAY_DELETION_REMOVING,
            DeletionState::Removed => FOREBAY_DELETION_REMOVED,
            _ => FOREBAY_DELETION_ENDED,
        };
        out.set(&forebay_deleted {
            size: 0,
            files: 0,
            bytes: progress.bytes_freed,
            bytes_total: progress.bytes_total,
            steps: progress.steps,
            state,
            unlinked: 0,
        });
        Ok(())
    })
}

/// Cancels the deletion if the file is still at its path; else returns `FOREBAY_E_BUSY`. A cancelled
/// deletion ends with `FOREBAY_E_CANCELLED`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deletion_cancel(deletion: forebay_deletion) -> c_int {
    call_done(|| {
        if get::<Deletion>(deletion)?.cancel() {
            return Ok(());
        }
        Err(Failure::new(crate::code::FOREBAY_E_BUSY, "the deletion has begun, or has ended"))
    })
}
