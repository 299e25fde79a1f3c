//! Files deleted a step at a time, in the turn of a class.

use std::ffi::{c_char, c_int};

use forebay::{Deleted, DeletedHow, Deleter, DeleterOptions, Deletion, DeletionState};

use crate::call::call_done;
use crate::class::forebay_class;
use crate::failure::Failure;
use crate::memory::{Out, OutStruct, SizedStruct, path, read};
use crate::object::{call_with_class, get, insert};

/// Deletes files at the pace of a class.
pub type forebay_deleter = u64;
/// What was asked to be deleted. It goes on when the handle is freed.
pub type forebay_deletion = u64;

/// Files are unlinked at once and freed by their descriptors, instead of being moved into a trash.
pub const FOREBAY_DELETE_IN_PLACE: u32 = 1;
/// In steps also where nothing is discarded.
pub const FOREBAY_DELETE_ALWAYS_IN_STEPS: u32 = 2;

/// The file is where it was.
pub const FOREBAY_DELETION_WAITING: u32 = 0;
/// It is being moved away, and cannot be cancelled any more.
pub const FOREBAY_DELETION_REMOVING: u32 = 1;
/// It is gone from its path, durably.
pub const FOREBAY_DELETION_REMOVED: u32 = 2;
/// It is over, well or not.
pub const FOREBAY_DELETION_ENDED: u32 = 3;

/// How a deleter deletes; all zeros but the size is the usual way.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_deleter_options {
    /// `sizeof(struct forebay_deleter_options)`.
    pub size: usize,
    /// Bytes that are freed per second at most; 0 for what the class lets through.
    pub rate: u64,
    /// Extents that are discarded per second at most; 0 for no limit.
    pub commands_per_second: u64,
    /// The directory of the trash of all files; null for a trash in the directory of each file.
    pub trash_in: *const c_char,
    /// Bytes of that.
    pub trash_in_len: usize,
    /// Files that may wait; 0 for 1,048,576.
    pub files_max: u64,
    /// A sum of `FOREBAY_DELETE_...`.
    pub flags: u32,
}

// SAFETY: it begins with its size, and zeros are numbers and a null pointer.
unsafe impl SizedStruct for forebay_deleter_options {
    const SIZE_MIN: usize = 56;
}

/// How far a deletion is, or what came of it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct forebay_deleted {
    /// `sizeof(struct forebay_deleted)`.
    pub size: usize,
    /// Files: 1, or what was found in a trash; 0 before it ended.
    pub files: u64,
    /// Bytes that were freed in steps.
    pub bytes: u64,
    /// Bytes that it had when it was removed from its path; 0 of what has ended.
    pub bytes_total: u64,
    /// Steps that it took.
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

/// A deleter in the turn of `class`, on whichever disk each file is. `options` may be null. The
/// class's shares rise as the backlog nears a ceiling: give it a class of its own.
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
/// The path is the caller's.
unsafe fn options_of(given: &forebay_deleter_options) -> Result<DeleterOptions, Failure> {
    let flags = given.flags;
    if flags & !(FOREBAY_DELETE_IN_PLACE | FOREBAY_DELETE_ALWAYS_IN_STEPS) != 0 {
        let text = format!(
            "flags of {flags:#x}: there are FOREBAY_DELETE_IN_PLACE and \
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

/// Deletes the file at `path`. Returns at once; `forebay_deletion_wait` reports what failed.
/// `deletion` may be null.
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

/// Deletes what earlier processes left in the trash directory in `dir`: for when a program starts.
/// `deletion` may be null.
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

/// Waits until nothing waits for the deleter any more: for when a program ends.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deleter_drain(deleter: forebay_deleter) -> c_int {
    call_done(|| {
        get::<Deleter>(deleter)?.drain().wait()?;
        Ok(())
    })
}

/// # Safety
/// `place` is null or a place of the caller's.
unsafe fn give(deletion: Deletion, place: *mut forebay_deletion) -> Result<(), Failure> {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: as the caller says.
    let out = unsafe { Out::new(place, "deletion")? };
    out.fill(insert(deletion))
}

/// Waits until the file is deleted and its blocks are free. `deleted` may be null.
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

/// Waits until the file is gone from its path, durably: it does not come back, and its blocks are
/// freed sooner or later.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deletion_wait_removed(deletion: forebay_deletion) -> c_int {
    call_done(|| Ok(get::<Deletion>(deletion)?.wait_removed()?))
}

/// How far it is.
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

/// Keeps the file, if nothing was done with it yet; else `FOREBAY_E_BUSY`. What was cancelled ends
/// with `FOREBAY_E_CANCELLED`.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_deletion_cancel(deletion: forebay_deletion) -> c_int {
    call_done(|| {
        if get::<Deletion>(deletion)?.cancel() {
            return Ok(());
        }
        Err(Failure::new(crate::code::FOREBAY_E_BUSY, "the deletion has begun, or has ended"))
    })
}
