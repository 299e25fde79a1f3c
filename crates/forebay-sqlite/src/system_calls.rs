//! Replacements of the system calls with which SQLite's own VFS reads and writes.
//!
//! They apply to the whole process. A call is scheduled while its thread is within a method of a
//! scheduled file. Otherwise it is passed to the original system call.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libsqlite3_sys::{SQLITE_OK, sqlite3_syscall_ptr, sqlite3_vfs};

use crate::scheduled::ScheduledFile;

type Read = unsafe extern "C" fn(c_int, *mut c_void, usize) -> isize;
type ReadAt = unsafe extern "C" fn(c_int, *mut c_void, usize, i64) -> isize;
type Write = unsafe extern "C" fn(c_int, *const c_void, usize) -> isize;
type WriteAt = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;

/// The file whose method the thread is executing.
struct Scope {
    file: *const ScheduledFile,
    /// The method has made a replaced system call.
    reached: Cell<bool>,
}

thread_local! {
    static SCOPE: Cell<*const Scope> = const { Cell::new(ptr::null()) };
}

/// Calls `call`, and schedules its reads and writes as those of `file`. Also returns whether there
/// were any.
pub(crate) fn within<R>(file: &ScheduledFile, call: impl FnOnce() -> R) -> (R, bool) {
    struct Restore(*const Scope);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPE.set(self.0);
        }
    }
    let scope = Scope { file, reached: Cell::new(false) };
    let restore = Restore(SCOPE.replace(&raw const scope));
    let result = call();
    drop(restore);
    (result, scope.reached.get())
}

/// Applies `call` to the file whose method the thread is executing. `None` if the original system call
/// has to do the I/O. System calls within `call` are not scheduled.
fn scheduled(call: impl FnOnce(&ScheduledFile) -> Option<io::Result<usize>>) -> Option<isize> {
    let current = SCOPE.replace(ptr::null());
    // SAFETY: the pointer is to the stack frame of `within`, which is still running on this thread.
    let scope = unsafe { current.as_ref() }?;
    scope.reached.set(true);
    // SAFETY: `within` borrows it.
    let result = call(unsafe { &*scope.file });
    SCOPE.set(current);
    let number = match result? {
        Ok(done) => return isize::try_from(done).ok(),
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    // SAFETY: `errno` belongs to this thread.
    unsafe { *libc::__errno_location() = number };
    Some(-1)
}

/// The position of a descriptor in bytes, at which `read` and `write` continue.
fn position(fd: c_int) -> Option<u64> {
    // SAFETY: it changes nothing.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }).ok()
}

fn read_at(fd: c_int, buffer: *mut c_void, len: usize, offset: Option<u64>) -> Option<isize> {
    scheduled(|file| {
        // SAFETY: SQLite hands over a buffer of this length.
        let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast(), len) };
        file.read(fd, buffer, offset?)
    })
}

fn write_at(fd: c_int, bytes: *const c_void, len: usize, offset: Option<u64>) -> Option<isize> {
    scheduled(|file| {
        // SAFETY: SQLite hands over bytes of this length.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast(), len) };
        file.write(fd, bytes, offset?)
    })
}

/// Defines a replacement, and the static that holds the original system call.
macro_rules! system_call {
    ($name:ident, $before:ident, $kind:ty, ($($argument:ident: $type:ty),*), $scheduled:expr) => {
        static $before: AtomicUsize = AtomicUsize::new(0);
        unsafe extern "C" fn $name(fd: c_int $(, $argument: $type)*) -> isize {
            let system = || {
                // SAFETY: `replace` stored a function of this type before it installed the replacement.
                unsafe {
                    let call = std::mem::transmute::<usize, $kind>($before.load(Relaxed));
                    call(fd $(, $argument)*)
                }
            };
            let scheduled: fn(c_int $(, $type)*) -> Option<isize> = $scheduled;
            scheduled(fd $(, $argument)*).unwrap_or_else(system)
        }
    };
}

system_call!(read, READ, Read, (p: *mut c_void, n: usize), |fd, p, n| {
    if SCOPE.get().is_null() { None } else { read_at(fd, p, n, position(fd)) }
});
system_call!(pread, PREAD, ReadAt, (p: *mut c_void, n: usize, at: i64), |fd, p, n, at| {
    read_at(fd, p, n, u64::try_from(at).ok())
});
system_call!(pread64, PREAD64, ReadAt, (p: *mut c_void, n: usize, at: i64), |fd, p, n, at| {
    read_at(fd, p, n, u64::try_from(at).ok())
});
system_call!(write, WRITE, Write, (p: *const c_void, n: usize), |fd, p, n| {
    if SCOPE.get().is_null() { None } else { write_at(fd, p, n, position(fd)) }
});
system_call!(pwrite, PWRITE, WriteAt, (p: *const c_void, n: usize, at: i64), |fd, p, n, at| {
    write_at(fd, p, n, u64::try_from(at).ok())
});
system_call!(pwrite64, PWRITE64, WriteAt, (p: *const c_void, n: usize, at: i64), |fd, p, n, at| {
    write_at(fd, p, n, u64::try_from(at).ok())
});

/// Replaces the system calls of SQLite's VFS `unix`, or only the one called `name` if that is not null.
/// Calls that are already replaced are left alone.
///
/// # Safety
/// `unix` is SQLite's VFS of that name.
pub(crate) unsafe fn replace(unix: *mut sqlite3_vfs, name: *const c_char) {
    let calls: [(&CStr, usize, &AtomicUsize); 6] = [
        (c"read", read as *const () as usize, &READ),
        (c"pread", pread as *const () as usize, &PREAD),
        (c"pread64", pread64 as *const () as usize, &PREAD64),
        (c"write", write as *const () as usize, &WRITE),
        (c"pwrite", pwrite as *const () as usize, &PWRITE),
        (c"pwrite64", pwrite64 as *const () as usize, &PWRITE64),
    ];
    // SAFETY: as the caller says; the names live for ever, and the calls are of the types that SQLite
    // calls them as.
    unsafe {
        let (Some(get), Some(set)) = ((*unix).xGetSystemCall, (*unix).xSetSystemCall) else {
            return;
        };
        for (call, ours, before) in calls {
            if !name.is_null() && CStr::from_ptr(name) != call {
                continue;
            }
            let Some(now) = get(unix, call.as_ptr()) else { continue };
            let now = now as *const () as usize;
            if now == ours {
                continue;
            }
            before.store(now, Relaxed);
            let ours = std::mem::transmute::<usize, sqlite3_syscall_ptr>(ours);
            if set(unix, call.as_ptr(), ours) != SQLITE_OK {
                crate::unscheduled::warn(
                    0,
                    &format!("{} cannot be scheduled", call.to_string_lossy()),
                );
            }
        }
    }
}
