//! Each file control has the same answer as without the VFS.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use rusqlite::Connection;
use rusqlite::ffi;

use crate::{Bed, fill};

/// The file controls that programs send to SQLite's VFS for Unix, with an argument of up to 64
/// bits.
const CONTROLS: &[(&str, c_int)] = &[
    ("LOCKSTATE", ffi::SQLITE_FCNTL_LOCKSTATE),
    ("LAST_ERRNO", ffi::SQLITE_FCNTL_LAST_ERRNO),
    ("SIZE_HINT", ffi::SQLITE_FCNTL_SIZE_HINT),
    ("CHUNK_SIZE", ffi::SQLITE_FCNTL_CHUNK_SIZE),
    ("SYNC_OMITTED", 8),
    ("WIN32_AV_RETRY", ffi::SQLITE_FCNTL_WIN32_AV_RETRY),
    ("PERSIST_WAL", ffi::SQLITE_FCNTL_PERSIST_WAL),
    ("OVERWRITE", ffi::SQLITE_FCNTL_OVERWRITE),
    ("POWERSAFE_OVERWRITE", ffi::SQLITE_FCNTL_POWERSAFE_OVERWRITE),
    ("MMAP_SIZE", ffi::SQLITE_FCNTL_MMAP_SIZE),
    ("HAS_MOVED", ffi::SQLITE_FCNTL_HAS_MOVED),
    ("SYNC", ffi::SQLITE_FCNTL_SYNC),
    ("COMMIT_PHASETWO", ffi::SQLITE_FCNTL_COMMIT_PHASETWO),
    ("WAL_BLOCK", ffi::SQLITE_FCNTL_WAL_BLOCK),
    ("ZIPVFS", ffi::SQLITE_FCNTL_ZIPVFS),
    ("RBU", ffi::SQLITE_FCNTL_RBU),
    ("BEGIN_ATOMIC_WRITE", ffi::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE),
    ("COMMIT_ATOMIC_WRITE", ffi::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE),
    ("ROLLBACK_ATOMIC_WRITE", ffi::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE),
    ("LOCK_TIMEOUT", ffi::SQLITE_FCNTL_LOCK_TIMEOUT),
    ("DATA_VERSION", ffi::SQLITE_FCNTL_DATA_VERSION),
    ("SIZE_LIMIT", ffi::SQLITE_FCNTL_SIZE_LIMIT),
    ("CKPT_DONE", ffi::SQLITE_FCNTL_CKPT_DONE),
    ("RESERVE_BYTES", ffi::SQLITE_FCNTL_RESERVE_BYTES),
    ("CKPT_START", ffi::SQLITE_FCNTL_CKPT_START),
    ("an unknown one", 4711),
];

fn control(connection: &Connection, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the connection is open, and the argument is what the operation takes.
    unsafe { ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), op, argument) }
}

#[test]
fn every_file_control_has_the_answer_of_the_wrapped_file() {
    let bed = Bed::new();
    let plain = Connection::open(bed.dir.path().join("plain.db")).unwrap();
    let ours = bed.open();
    for connection in [&plain, &ours] {
        fill(connection, 50);
    }
    for (name, op) in CONTROLS {
        for value in [-1i64, 0, 1] {
            // a high value would remain set
            let value = if *name == "SIZE_HINT" || *name == "CHUNK_SIZE" { 65_536 } else { value };
            let [without, with] = [&plain, &ours].map(|connection| {
                let mut value = value;
                let code = control(connection, *op, (&raw mut value).cast());
                (code, value)
            });
            assert_eq!(with, without, "{name} of {value}");
        }
    }
    let strings =
        [("TEMPFILENAME", ffi::SQLITE_FCNTL_TEMPFILENAME), ("VFSNAME", ffi::SQLITE_FCNTL_VFSNAME)];
    for (name, op) in strings {
        let [without, with] = [&plain, &ours].map(|connection| {
            let mut text: *mut c_char = ptr::null_mut();
            assert_eq!(control(connection, op, (&raw mut text).cast()), ffi::SQLITE_OK, "{name}");
            // SAFETY: it is a string of SQLite's allocator.
            unsafe {
                let copy = CStr::from_ptr(text).to_str().unwrap().to_owned();
                ffi::sqlite3_free(text.cast());
                copy
            }
        });
        if name == "VFSNAME" {
            assert_eq!((without.as_str(), with), ("unix", format!("{}/unix", bed.name)));
        } else {
            assert!(!with.is_empty());
        }
    }
}

#[test]
fn the_methods_have_the_version_of_the_wrapped_file() {
    let bed = Bed::new();
    let plain = Connection::open(bed.dir.path().join("plain.db")).unwrap();
    let ours = bed.open();
    let [without, with] = [&plain, &ours].map(|connection| {
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        assert_eq!(control(connection, ffi::SQLITE_FCNTL_FILE_POINTER, (&raw mut file).cast()), 0);
        // SAFETY: the file is that of an open connection.
        unsafe {
            let methods = &*(*file).pMethods;
            let sector = methods.xSectorSize.unwrap()(file);
            let characteristics = methods.xDeviceCharacteristics.unwrap()(file);
            (methods.iVersion, sector, characteristics)
        }
    });
    assert_eq!(with, without);
}
