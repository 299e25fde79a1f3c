//! The entry point of the loadable extension.

use std::env;
use std::ffi::{c_char, c_int};
use std::io::{self, Write};
use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;

use forebay::properties::Properties;
use forebay::{Scheduler, SchedulerError, Unlisted};
use libsqlite3_sys::{
    SQLITE_ERROR, SQLITE_NOTICE, SQLITE_OK, rusqlite_extension_init2, sqlite3,
    sqlite3_api_routines, sqlite3_vfs_find, sqlite3_vfs_register,
};

use crate::connection::lock;
use crate::file::copy;
use crate::unscheduled::tell_sqlite;

/// The variable that names the file of I/O properties.
const PROPERTIES: &str = "FOREBAY_PROPERTIES";
/// The variable that adds classes, or changes shares: `reports=300,backup=20`.
const CLASSES: &str = "FOREBAY_CLASSES";
const PROPERTIES_DEFAULT: &str = "/etc/forebay/forebay.yaml";

/// The variable that, if `1`, refuses databases on disks that no entry of the I/O properties covers.
const STRICT: &str = "FOREBAY_STRICT";

/// Registers the VFS as the default, once per process. `.load`, `sqlite3_load_extension` and
/// `sqlite3_auto_extension` call it. After an error nothing is registered.
///
/// The extension is linked so that it is never unloaded. `SQLITE_OK_LOAD_PERMANENTLY` would ask for
/// the same, but `sqlite3_auto_extension` treats it as an error.
///
/// # Safety
/// SQLite calls it.
#[unsafe(no_mangle)]
unsafe extern "C" fn sqlite3_extension_init(
    _: *mut sqlite3,
    error: *mut *mut c_char,
    api: *mut sqlite3_api_routines,
) -> c_int {
    static HOST: Mutex<usize> = Mutex::new(0);
    let mut host = lock(&HOST);
    // SAFETY: SQLite hands over its routines, and a place for a message or null.
    unsafe {
        if api.is_null() {
            // This SQLite cannot load extensions, and there is no way to return a message.
            return SQLITE_ERROR;
        }
        let registered = match *host {
            0 => rusqlite_extension_init2(api).map_err(|error| error.to_string()),
            of if of == api.addr() => Ok(()),
            _ => Err("another SQLite in this process has loaded this file: load a copy".to_owned()),
        };
        match registered.and_then(|()| register_once()) {
            Ok(()) => {
                *host = api.addr();
                SQLITE_OK
            }
            Err(why) => {
                let allocate = |len| (*api).malloc.map_or(ptr::null_mut(), |malloc| malloc(len));
                if !error.is_null() {
                    *error = copy(&format!("forebay: {why}"), allocate);
                }
                SQLITE_ERROR
            }
        }
    }
}

/// A logger that also writes this crate's warnings to standard error, because few hosts have a log of
/// SQLite.
struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target().starts_with(env!("CARGO_CRATE_NAME")) {
            let _ = writeln!(io::stderr(), "forebay: {}", record.args());
        } else {
            tell_sqlite(SQLITE_NOTICE, &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn register_once() -> Result<(), String> {
    // SAFETY: the name is a C string, and a registered VFS is never freed.
    unsafe {
        let before = sqlite3_vfs_find(c"forebay".as_ptr());
        if !before.is_null() {
            // After `sqlite3_shutdown` another VFS is the default.
            return match sqlite3_vfs_register(before, 1) {
                0 => Ok(()),
                code => Err(format!("SQLite did not register the VFS: error {code}")),
            };
        }
    }
    if log::set_logger(&Log).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
    let unlisted = match env::var(STRICT).as_deref() {
        Ok("1") => Unlisted::Error,
        Ok("" | "0") | Err(_) => Unlisted::Default,
        Ok(other) => return Err(format!("{STRICT}: `{other}` is neither 0 nor 1")),
    };
    let path = env::var_os(PROPERTIES).map_or_else(|| PROPERTIES_DEFAULT.into(), PathBuf::from);
    let scheduler = Properties::load(&path)
        .map_err(SchedulerError::from)
        .and_then(|it| Scheduler::builder().properties(&it).unlisted(unlisted).build())
        .map_err(|error| format!("{error} ({PROPERTIES} names the file of I/O properties)"))?;
    let classes = match env::var(CLASSES) {
        Err(env::VarError::NotUnicode(_)) => return Err(format!("{CLASSES} is not UTF-8")),
        classes => classes.unwrap_or_default(),
    };
    for class in classes.split(',').filter(|class| !class.trim().is_empty()) {
        let (name, shares) = class.split_once('=').unwrap_or((class, ""));
        let (name, shares) = (name.trim(), shares.trim().parse());
        let (false, Ok(shares)) = (name.is_empty(), shares) else {
            return Err(format!("{CLASSES}: `{class}` is not NAME=SHARES"));
        };
        scheduler.add_class(name, shares).map_err(|error| error.to_string())?;
    }
    crate::register(&scheduler).map(drop).map_err(|error| error.to_string())
}
