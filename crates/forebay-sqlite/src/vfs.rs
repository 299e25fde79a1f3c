//! The VFS: its registration, and its methods, most of which call those of the wrapped VFS.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use forebay::{ClassError, Op, Scheduler};
use libsqlite3_sys::{
    SQLITE_CANTOPEN, SQLITE_ERROR, SQLITE_OK, SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_MAIN_JOURNAL,
    SQLITE_OPEN_WAL, sqlite3_file, sqlite3_syscall_ptr, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

use crate::classes::Classes;
use crate::connection::Connection;
use crate::context::Context;
use crate::file::{File, OWN_LEN, methods, wrapped};
use crate::scheduled::ScheduledFile;
use crate::system_calls;
use crate::unscheduled::{Counters, warn};

/// The name of a VFS, and how it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of the VFS, `forebay` by default.
    pub name: String,
    /// The name of the VFS to wrap. `None` wraps the default one.
    pub base: Option<String>,
    /// Whether it becomes the default VFS, for connections that name none.
    pub is_default: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "forebay".to_owned(), base: None, is_default: true }
    }
}

/// Why a VFS could not be registered.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// A VFS of that name exists already.
    #[error("SQLite already has a VFS `{0}`: register this one under another name")]
    NameTaken(String),
    /// A name contains a zero byte.
    #[error("`{0}` contains a zero byte and cannot be the name of a VFS")]
    BadName(String),
    /// The VFS to wrap does not exist.
    #[error("SQLite has no VFS `{0}` to wrap")]
    NoBase(String),
    /// A class could not be added.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// SQLite refused to register it, with this code.
    #[error("SQLite did not register the VFS: error {0}")]
    Refused(c_int),
}

forebay::forebay_core::debug_as_display!(RegisterError);

/// A registered VFS. It stays registered until the process ends.
#[derive(Clone, Copy)]
pub struct Vfs(&'static Context);

impl std::fmt::Debug for Vfs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vfs").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Vfs {
    /// The unscheduled I/O since the VFS was registered.
    pub fn counters(&self) -> Counters {
        Counters { mapped: self.0.mapped.count(), unscheduled: self.0.unscheduled.count() }
    }

    /// The class of each kind of I/O.
    pub const fn classes(&self) -> &Classes {
        &self.0.classes
    }
}

/// Registers the VFS `forebay`, which wraps the default VFS and becomes the default. It adds those of
/// [`CLASSES`](crate::CLASSES) that the scheduler lacks.
///
/// # Errors
/// See [`RegisterError`].
pub fn register(scheduler: &Scheduler) -> Result<Vfs, RegisterError> {
    register_with(scheduler, &Options::default())
}

/// [`register`] with another name, another wrapped VFS, or without becoming the default.
///
/// # Errors
/// See [`RegisterError`].
pub fn register_with(scheduler: &Scheduler, options: &Options) -> Result<Vfs, RegisterError> {
    let c_name =
        |name: &str| CString::new(name).map_err(|_| RegisterError::BadName(name.to_owned()));
    let name = c_name(&options.name)?;
    let base_name = options.base.as_deref().map(c_name).transpose()?;
    // SAFETY: names are C strings, or null for the default VFS; VFSs are not freed.
    let (taken, base, unix) = unsafe {
        let base = base_name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        (
            sqlite3_vfs_find(name.as_ptr()),
            sqlite3_vfs_find(base),
            sqlite3_vfs_find(c"unix".as_ptr()),
        )
    };
    if !taken.is_null() {
        return Err(RegisterError::NameTaken(options.name.clone()));
    }
    if base.is_null() {
        return Err(RegisterError::NoBase(options.base.clone().unwrap_or_default()));
    }
    let context: &'static Context = Box::leak(Box::new(Context::new(name, scheduler, base)?));
    // SAFETY: `base` is a VFS of SQLite, and `unix` is SQLite's VFS of that name.
    let (vfs, code) = unsafe {
        if !unix.is_null() {
            system_calls::replace(unix, ptr::null());
        }
        let vfs = Box::leak(Box::new(vfs_around(context, &*base)));
        (&raw mut *vfs, sqlite3_vfs_register(vfs, c_int::from(options.is_default)))
    };
    let _: *mut sqlite3_vfs = vfs;
    if code == SQLITE_OK { Ok(Vfs(context)) } else { Err(RegisterError::Refused(code)) }
}

fn vfs_around(context: &'static Context, base: &sqlite3_vfs) -> sqlite3_vfs {
    let own_len = c_int::try_from(OWN_LEN).unwrap_or_default();
    sqlite3_vfs {
        iVersion: base.iVersion.min(3),
        szOsFile: base.szOsFile + own_len,
        mxPathname: base.mxPathname,
        pNext: ptr::null_mut(),
        zName: context.name.as_ptr(),
        pAppData: (&raw const *context).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: base.xDlOpen.map(|_| dl_open as _),
        xDlError: base.xDlError.map(|_| dl_error as _),
        xDlSym: base.xDlSym.map(|_| dl_sym as _),
        xDlClose: base.xDlClose.map(|_| dl_close as _),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: Some(set_system_call),
        xGetSystemCall: Some(get_system_call),
        xNextSystemCall: Some(next_system_call),
    }
}

/// # Safety
/// `vfs` is one of ours.
unsafe fn context(vfs: *mut sqlite3_vfs) -> &'static Context {
    // SAFETY: as the caller says. `pAppData` of our VFS is a context that is never dropped.
    unsafe { &*(*vfs).pAppData.cast::<Context>() }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls it with our VFS, room for a file of ours, and a name that is kept until the
    // file is closed, or null.
    unsafe {
        let context = context(vfs);
        (*file).pMethods = ptr::null();
        let own = file.cast::<File>();
        (&raw mut (*own).scheduled).write(None);
        let connection = match connection_for(context, name, flags) {
            Ok(connection) => connection,
            Err(error) => {
                warn(
                    SQLITE_CANTOPEN,
                    &format!("{}: {error}", CStr::from_ptr(name).to_string_lossy()),
                );
                return SQLITE_CANTOPEN;
            }
        };
        let inner = wrapped(file);
        (*inner).pMethods = ptr::null();
        let Some(base_open) = (*context.base).xOpen else { return SQLITE_ERROR };
        let code = base_open(context.base, name, inner, flags, out);
        if (*inner).pMethods.is_null() {
            return code;
        }
        if code == SQLITE_OK {
            let is_log = flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL) != 0;
            let scheduled = |connection| ScheduledFile::new(context, connection, is_log);
            (&raw mut (*own).scheduled).write(connection.map(scheduled));
        }
        // As in SQLite's own VFS, a file that failed to open is closed too.
        (*file).pMethods = methods((*(*inner).pMethods).iVersion);
        code
    }
}

/// The connection to which a file belongs. `None` for a temporary file.
///
/// # Safety
/// As for [`open`].
unsafe fn connection_for(
    context: &Context,
    name: *const c_char,
    flags: c_int,
) -> Result<Option<Arc<Connection>>, String> {
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller says, it is the name of such a file.
    unsafe {
        if flags & SQLITE_OPEN_MAIN_DB != 0 {
            context.connect(name).map(Some)
        } else if flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL) != 0 {
            Ok(context.connection(name))
        } else {
            Ok(None)
        }
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, syncs: c_int) -> c_int {
    // SAFETY: SQLite calls it with our VFS and a name.
    unsafe {
        let context = context(vfs);
        let permit = if syncs == 0 { None } else { flush_permit(context, CStr::from_ptr(name)) };
        let code = match (*context.base).xDelete {
            Some(delete) => delete(context.base, name, syncs),
            None => SQLITE_ERROR,
        };
        drop(permit);
        code
    }
}

/// A permit to flush the directory from which a journal is deleted. In the mode DELETE this flush is the
/// commit.
fn flush_permit(context: &Context, path: &CStr) -> Option<forebay::ThreadPermit<'static>> {
    let directory = Path::new(OsStr::from_bytes(path.to_bytes())).parent()?;
    let disk = context.scheduler.disk_of(directory).ok()?;
    context.class_of_delete(path).admit_for(&disk, Op::Flush, 0).wait().ok()
}

unsafe extern "C" fn set_system_call(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    call: sqlite3_syscall_ptr,
) -> c_int {
    // SAFETY: SQLite calls it with our VFS, and a name or null.
    unsafe {
        let base = context(vfs).base;
        let Some(set) = (*base).xSetSystemCall else { return SQLITE_ERROR };
        let code = set(base, name, call);
        if call.is_none() {
            // SQLite has restored the original system call, so it is replaced again.
            system_calls::replace(base, name);
        }
        code
    }
}

/// Methods that only call that of the wrapped VFS. They return `$other` where it has none.
macro_rules! passed_on {
    ($($name:ident: $method:ident($($argument:ident: $type:ty),*) -> $result:ty, $other:expr;)*) => {
        $(unsafe extern "C" fn $name(vfs: *mut sqlite3_vfs $(, $argument: $type)*) -> $result {
            // SAFETY: SQLite calls it with our VFS, and what the method takes.
            unsafe {
                let base = context(vfs).base;
                match (*base).$method {
                    Some(method) => method(base $(, $argument)*),
                    None => $other,
                }
            }
        })*
    };
}

type Symbol = Option<unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char)>;

passed_on! {
    access: xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, SQLITE_ERROR;
    full_pathname: xFullPathname(name: *const c_char, n: c_int, out: *mut c_char) -> c_int, SQLITE_ERROR;
    dl_open: xDlOpen(name: *const c_char) -> *mut c_void, ptr::null_mut();
    dl_error: xDlError(n: c_int, to: *mut c_char) -> (), ();
    dl_sym: xDlSym(library: *mut c_void, name: *const c_char) -> Symbol, None;
    dl_close: xDlClose(library: *mut c_void) -> (), ();
    randomness: xRandomness(n: c_int, to: *mut c_char) -> c_int, 0;
    sleep: xSleep(us: c_int) -> c_int, 0;
    current_time: xCurrentTime(to: *mut f64) -> c_int, SQLITE_ERROR;
    last_error: xGetLastError(n: c_int, to: *mut c_char) -> c_int, 0;
    current_time_int64: xCurrentTimeInt64(to: *mut i64) -> c_int, SQLITE_ERROR;
    get_system_call: xGetSystemCall(name: *const c_char) -> sqlite3_syscall_ptr, None;
    next_system_call: xNextSystemCall(name: *const c_char) -> *const c_char, ptr::null();
}
