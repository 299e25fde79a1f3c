//! The entry point of the loadable extension.

use std::env;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;
use std::sync::Mutex;

use forebay::Scheduler;
use libsqlite3_sys::{
    SQLITE_ERROR, SQLITE_OK_LOAD_PERMANENTLY, rusqlite_extension_init2, sqlite3,
    sqlite3_api_routines, sqlite3_vfs_find, sqlite3_vfs_register,
};

use crate::connection::lock;
use crate::file::text;

/// The file of [`Scheduler::from_file`].
const PROPERTIES: &str = "FOREBAY_PROPERTIES";
/// Further classes, or other shares: `reports=300,backup=20`.
const CLASSES: &str = "FOREBAY_CLASSES";
const PROPERTIES_DEFAULT: &str = "/etc/forebay/forebay.yaml";

/// Registers the VFS as the default one, once for the process. For `.load`, `sqlite3_load_extension`
/// and `sqlite3_auto_extension`. On an error nothing is registered.
///
/// # Safety
/// SQLite calls it.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_extension_init(
    _: *mut sqlite3,
    error: *mut *mut c_char,
    api: *mut sqlite3_api_routines,
) -> c_int {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let one = lock(&ONE_AT_A_TIME);
    // SAFETY: SQLite hands over its routines, and a place for a message or null.
    unsafe {
        let registered = match rusqlite_extension_init2(api) {
            Ok(()) => register_once(),
            Err(error) => Err(error.to_string()),
        };
        drop(one);
        match registered {
            Ok(()) => SQLITE_OK_LOAD_PERMANENTLY,
            Err(why) => {
                if !error.is_null() {
                    *error = text(&format!("forebay: {why}"));
                }
                SQLITE_ERROR
            }
        }
    }
}

fn register_once() -> Result<(), String> {
    // SAFETY: the name is a string of C, and a VFS of ours stays.
    unsafe {
        let before = sqlite3_vfs_find(c"forebay".as_ptr());
        if !before.is_null() {
            // After `sqlite3_shutdown` another one is the default.
            return match sqlite3_vfs_register(before, 1) {
                0 => Ok(()),
                code => Err(format!("SQLite did not register the VFS: error {code}")),
            };
        }
    }
    let path = env::var_os(PROPERTIES).map_or_else(|| PROPERTIES_DEFAULT.into(), PathBuf::from);
    let scheduler = Scheduler::from_file(&path)
        .map_err(|error| format!("{error} ({PROPERTIES} says which file has the properties)"))?;
    let classes = env::var(CLASSES).unwrap_or_default();
    for class in classes.split(',').filter(|class| !class.trim().is_empty()) {
        let (name, shares) = class.split_once('=').unwrap_or((class, ""));
        let shares = shares
            .trim()
            .parse()
            .map_err(|_| format!("{CLASSES}: `{class}` is not NAME=SHARES"))?;
        scheduler.add_class(name.trim(), shares).map_err(|error| error.to_string())?;
    }
    crate::register(&scheduler).map(drop).map_err(|error| error.to_string())
}
