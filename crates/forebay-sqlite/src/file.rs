//! The methods of an open file, which call those of the wrapped VFS's file.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use libsqlite3_sys::{
    SQLITE_BUSY, SQLITE_ERROR, SQLITE_FCNTL_CKPT_DONE, SQLITE_FCNTL_CKPT_START,
    SQLITE_FCNTL_COMMIT_PHASETWO, SQLITE_FCNTL_MMAP_SIZE, SQLITE_FCNTL_OVERWRITE,
    SQLITE_FCNTL_PRAGMA, SQLITE_FCNTL_VFSNAME, SQLITE_IOERR_FSYNC, SQLITE_LOCK_RESERVED, SQLITE_OK,
    SQLITE_SHM_EXCLUSIVE, SQLITE_SHM_UNLOCK, sqlite3_file, sqlite3_free, sqlite3_io_methods,
    sqlite3_malloc,
};

use crate::scheduled::ScheduledFile;
use crate::system_calls::within;

/// A file as SQLite sees it. The wrapped VFS's file follows it in memory.
#[repr(C)]
pub(crate) struct File {
    pub(crate) base: sqlite3_file,
    /// `None` for a temporary file, which is not scheduled.
    pub(crate) scheduled: Option<Arc<ScheduledFile>>,
}

/// The offset in bytes of the wrapped VFS's file.
pub(crate) const OWN_LEN: usize = size_of::<File>().next_multiple_of(16);
/// The slot of the WAL's write lock.
const WRITE_LOCK: c_int = 0;

/// # Safety
/// `file` is one of ours.
pub(crate) unsafe fn wrapped(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: as the caller says, SQLite allocated it with `szOsFile` bytes of our VFS.
    unsafe { file.byte_add(OWN_LEN) }
}

/// # Safety
/// `file` is one of ours, and open.
unsafe fn scheduled<'a>(file: *mut sqlite3_file) -> Option<&'a Arc<ScheduledFile>> {
    // SAFETY: as the caller says.
    unsafe { (*file.cast::<File>()).scheduled.as_ref() }
}

/// Calls a method of the wrapped file. SQLite never calls one that its version lacks, because our methods
/// have the same version.
macro_rules! inner {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let inner = wrapped($file);
        match (*(*inner).pMethods).$method {
            Some(method) => method(inner $(, $argument)*),
            None => SQLITE_ERROR,
        }
    }};
}

/// Methods that are passed on as they are.
macro_rules! passed_on {
    ($($name:ident: $method:ident($($argument:ident: $type:ty),*);)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> c_int {
            // SAFETY: SQLite calls it with an open file of ours, and what the method takes.
            unsafe { inner!(file, $method $(, $argument)*) }
        })*
    };
}

passed_on! {
    truncate: xTruncate(size: i64);
    size: xFileSize(size: *mut i64);
    is_reserved: xCheckReservedLock(is: *mut c_int);
    sector_size: xSectorSize();
    characteristics: xDeviceCharacteristics();
    shm_map: xShmMap(page: c_int, len: c_int, extend: c_int, to: *mut *mut c_void);
    shm_unmap: xShmUnmap(deletes: c_int);
    unfetch: xUnfetch(offset: i64, page: *mut c_void);
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite calls it once, with an open file of ours.
    unsafe {
        if let Some(scheduled) = (*file.cast::<File>()).scheduled.take() {
            scheduled.close();
        }
        let code = inner!(file, xClose);
        (*file).pMethods = ptr::null();
        code
    }
}

/// Counts a read or write that made no replaced system call.
fn count_unscheduled(file: &ScheduledFile, code: c_int, reached: bool) {
    if code != SQLITE_OK || reached {
        return;
    }
    if file.is_mapped.load(Relaxed) {
        file.context.mapped.add(mapped);
    } else {
        file.past(|| "the wrapped VFS uses other system calls: its I/O is not scheduled".to_owned());
    }
}

fn mapped() -> String {
    "pages read through a memory mapping are not scheduled: set PRAGMA mmap_size = 0".to_owned()
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, n: c_int, at: i64) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours, and a buffer of `n` bytes.
    unsafe {
        let Some(scheduled) = scheduled(file) else { return inner!(file, xRead, to, n, at) };
        let (code, reached) = within(scheduled, || inner!(file, xRead, to, n, at));
        count_unscheduled(scheduled, code, reached);
        code
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    n: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours, and `n` bytes.
    unsafe {
        let Some(scheduled) = scheduled(file) else { return inner!(file, xWrite, from, n, at) };
        let (code, reached) = within(scheduled, || inner!(file, xWrite, from, n, at));
        count_unscheduled(scheduled, code, reached);
        code
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours.
    unsafe {
        match scheduled(file) {
            Some(scheduled) => scheduled.sync(SQLITE_IOERR_FSYNC, || inner!(file, xSync, flags)),
            None => inner!(file, xSync, flags),
        }
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours.
    unsafe {
        let code = inner!(file, xLock, level);
        if let Some(scheduled) = scheduled(file) {
            let connection = &scheduled.connection;
            match code & 0xff {
                SQLITE_OK => {
                    connection.set_lock_level(level);
                    connection.waits_no_more();
                }
                SQLITE_BUSY => connection.waits_for_lock(level),
                _ => {}
            }
        }
        code
    }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours.
    unsafe {
        let code = inner!(file, xUnlock, level);
        if let Some(scheduled) = scheduled(file) {
            scheduled.connection.set_lock_level(level);
        }
        code
    }
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite3_file,
    first: c_int,
    n: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours.
    unsafe {
        let code = inner!(file, xShmLock, first, n, flags);
        let is_write_lock = first == WRITE_LOCK && flags & SQLITE_SHM_EXCLUSIVE != 0;
        if let Some(scheduled) = scheduled(file)
            && is_write_lock
        {
            let (connection, unlocks) = (&scheduled.connection, flags & SQLITE_SHM_UNLOCK != 0);
            match code & 0xff {
                SQLITE_OK => {
                    connection.set_write_lock(!unlocks);
                    connection.waits_no_more();
                }
                SQLITE_BUSY => connection.waits_for_lock(SQLITE_LOCK_RESERVED),
                _ => {}
            }
        }
        code
    }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: SQLite calls it with an open file of ours.
    unsafe {
        let inner = wrapped(file);
        if let Some(barrier) = (*(*inner).pMethods).xShmBarrier {
            barrier(inner);
        }
    }
}

unsafe extern "C" fn fetch(
    file: *mut sqlite3_file,
    at: i64,
    n: c_int,
    to: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours, and where the page goes.
    unsafe {
        let code = inner!(file, xFetch, at, n, to);
        if let Some(scheduled) = scheduled(file)
            && !(*to).is_null()
        {
            scheduled.context.mapped.add(mapped);
        }
        code
    }
}

unsafe extern "C" fn control(file: *mut sqlite3_file, op: c_int, data: *mut c_void) -> c_int {
    // SAFETY: SQLite calls it with an open file of ours, and what the operation takes.
    unsafe {
        let Some(scheduled) = scheduled(file) else { return inner!(file, xFileControl, op, data) };
        let connection = &scheduled.connection;
        match op {
            SQLITE_FCNTL_PRAGMA => {
                if let Some(code) = pragma(scheduled, data.cast()) {
                    return code;
                }
            }
            SQLITE_FCNTL_CKPT_START => connection.checkpoints.store(true, Relaxed),
            SQLITE_FCNTL_CKPT_DONE => connection.checkpoints.store(false, Relaxed),
            SQLITE_FCNTL_OVERWRITE => connection.overwrites.store(true, Relaxed),
            SQLITE_FCNTL_COMMIT_PHASETWO => connection.overwrites.store(false, Relaxed),
            // A negative size only asks for the present one.
            SQLITE_FCNTL_MMAP_SIZE if *data.cast::<i64>() >= 0 => {
                scheduled.is_mapped.store(*data.cast::<i64>() > 0, Relaxed);
            }
            _ => {}
        }
        // `SQLITE_FCNTL_SIZE_HINT` may write to the file.
        let (code, _) = within(scheduled, || inner!(file, xFileControl, op, data));
        if op == SQLITE_FCNTL_VFSNAME && code == SQLITE_OK {
            add_name(scheduled, data.cast());
        }
        code
    }
}

/// `PRAGMA forebay_class`, and `PRAGMA forebay_class = CLASS`.
///
/// # Safety
/// `arguments` are those of `SQLITE_FCNTL_PRAGMA`.
unsafe fn pragma(file: &ScheduledFile, arguments: *mut *mut c_char) -> Option<c_int> {
    // SAFETY: as the caller says: a place for an answer, the name, and the value if there is one.
    unsafe {
        let name = CStr::from_ptr(*arguments.add(1));
        if !name.to_bytes().eq_ignore_ascii_case(b"forebay_class") {
            return None;
        }
        let value = *arguments.add(2);
        if !value.is_null() {
            match file.context.class(CStr::from_ptr(value)) {
                Ok(class) => file.connection.set_own_class(class),
                Err(error) => {
                    *arguments = text(&error);
                    return Some(SQLITE_ERROR);
                }
            }
        }
        // A null result gives a column without a name, which Python reports as out of memory.
        let class = file.connection.own_class();
        *arguments = text(class.as_ref().map_or("", |class| class.name()));
        Some(SQLITE_OK)
    }
}

/// Puts the VFS's name before that of the wrapped one.
///
/// # Safety
/// `name` is that of `SQLITE_FCNTL_VFSNAME`.
unsafe fn add_name(file: &ScheduledFile, name: *mut *mut c_char) {
    // SAFETY: as the caller says: null, or of SQLite's allocator.
    unsafe {
        let wrapped = if (*name).is_null() { c"" } else { CStr::from_ptr(*name) };
        let both = format!("{}/{}", file.context.name.to_string_lossy(), wrapped.to_string_lossy());
        let both = text(&both);
        sqlite3_free((*name).cast());
        *name = both;
    }
}

/// A copy of `text` in memory of SQLite's allocator. Null if there is no memory.
fn text(text: &str) -> *mut c_char {
    // SAFETY: `sqlite3_malloc` returns that many bytes, or null.
    unsafe { copy(text, |len| sqlite3_malloc(len)) }
}

/// A copy of `text` in memory from `allocate`. Null if there is none.
///
/// # Safety
/// `allocate` returns as many bytes as it is asked for, or null.
pub(crate) unsafe fn copy(text: &str, allocate: impl FnOnce(c_int) -> *mut c_void) -> *mut c_char {
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    let bytes = text.as_bytes_with_nul();
    let Ok(len) = c_int::try_from(bytes.len()) else { return ptr::null_mut() };
    // SAFETY: as the caller says.
    unsafe {
        let copy: *mut c_char = allocate(len).cast();
        if !copy.is_null() {
            ptr::copy_nonoverlapping(bytes.as_ptr().cast(), copy, bytes.len());
        }
        copy
    }
}

/// The methods of the same version as the wrapped file's.
pub(crate) const fn methods(version: c_int) -> &'static sqlite3_io_methods {
    match version {
        ..=1 => &METHODS[0],
        2 => &METHODS[1],
        _ => &METHODS[2],
    }
}

static METHODS: [sqlite3_io_methods; 3] = [of_version(1), of_version(2), of_version(3)];

const fn of_version(version: c_int) -> sqlite3_io_methods {
    sqlite3_io_methods {
        iVersion: version,
        xClose: Some(close),
        xRead: Some(read),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(size),
        xLock: Some(lock),
        xUnlock: Some(unlock),
        xCheckReservedLock: Some(is_reserved),
        xFileControl: Some(control),
        xSectorSize: Some(sector_size),
        xDeviceCharacteristics: Some(characteristics),
        xShmMap: Some(shm_map),
        xShmLock: Some(shm_lock),
        xShmBarrier: Some(shm_barrier),
        xShmUnmap: Some(shm_unmap),
        xFetch: Some(fetch),
        xUnfetch: Some(unfetch),
    }
}
