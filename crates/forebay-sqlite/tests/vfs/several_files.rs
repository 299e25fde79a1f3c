//! A wrapped VFS that writes each page of a database to two files.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use crate::{Bed, check, fill};

static UNIX: OnceLock<sqlite3_io_methods> = OnceLock::new();

fn unix() -> *mut sqlite3_vfs {
    // SAFETY: the name is a string of C.
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

/// # Safety
/// `file` is one of [`open`].
unsafe fn second(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: the VFS requested room for two files.
    unsafe { file.byte_add(usize::try_from((*unix()).szOsFile).unwrap().next_multiple_of(16)) }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a name that stays valid, and room for two files.
    unsafe {
        let open = (*unix()).xOpen.unwrap();
        let code = open(unix(), name, file, flags, out);
        if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
            let unix_methods = UNIX.get_or_init(|| *(*file).pMethods);
            let name = CString::new([CStr::from_ptr(name).to_bytes(), b"-second"].concat());
            let flags = ffi::SQLITE_OPEN_SUPER_JOURNAL
                | ffi::SQLITE_OPEN_READWRITE
                | ffi::SQLITE_OPEN_CREATE;
            let name = name.unwrap().into_raw();
            assert_eq!(open(unix(), name, second(file), flags, std::ptr::null_mut()), 0);
            let methods =
                sqlite3_io_methods { xWrite: Some(write), xClose: Some(close), ..*unix_methods };
            (*file).pMethods = Box::leak(Box::new(methods));
        }
        code
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    n: c_int,
    at: i64,
) -> c_int {
    // SAFETY: it is an open file of [`open`], which consists of two.
    unsafe {
        let (write, second) = (UNIX.get().unwrap().xWrite.unwrap(), second(file));
        (*(*second).pMethods).xWrite.unwrap()(second, from, n, at) | write(file, from, n, at)
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: as for `write`.
    unsafe {
        let (close, second) = (UNIX.get().unwrap().xClose.unwrap(), second(file));
        (*(*second).pMethods).xClose.unwrap()(second) | close(file)
    }
}

#[test]
fn writes_of_a_wrapped_vfs_reach_all_of_its_files() {
    // SAFETY: the VFS is never freed, and its other methods are those of the copied one.
    unsafe {
        let room = c_int::try_from(2 * (*unix()).szOsFile + 32).unwrap();
        let name = c"two".as_ptr();
        let two = sqlite3_vfs { zName: name, szOsFile: room, xOpen: Some(open), ..*unix() };
        assert_eq!(ffi::sqlite3_vfs_register(Box::leak(Box::new(two)), 0), ffi::SQLITE_OK);
    }
    let bed = Bed::around(Some("two"));
    for rows in [300, 3000] {
        fill(&bed.open(), rows);
        let path = bed.dir.path().join("t.db");
        check(&path);
        let [first, second] =
            ["t.db", "t.db-second"].map(|it| std::fs::read(bed.dir.path().join(it)).unwrap());
        assert!(first == second && first.len() > 300_000);
    }
}
