//! The codes that functions return.

use std::ffi::{c_char, c_int};

/// It is done.
pub const FOREBAY_OK: c_int = 0;
/// It waits. A callback or an event reports its end.
pub const FOREBAY_PENDING: c_int = 1;
/// The handle is 0, freed, of another kind, of another process, or of the parent of a forked child.
pub const FOREBAY_E_HANDLE: c_int = -1;
/// An argument that is not allowed: a null pointer, an unknown operation, a length of 0.
pub const FOREBAY_E_INVALID: c_int = -2;
/// The time that was given has passed, or was 0 and it would have to wait.
pub const FOREBAY_E_TIMED_OUT: c_int = -3;
/// Nothing is there now; ask again when the descriptor is readable.
pub const FOREBAY_E_AGAIN: c_int = -4;
/// There is no class, disk or entry of that name or number.
pub const FOREBAY_E_NOT_FOUND: c_int = -5;
/// A class or group has that name.
pub const FOREBAY_E_EXISTS: c_int = -6;
/// It has work queued or classes in it, or there is no room for more.
pub const FOREBAY_E_BUSY: c_int = -7;
/// The class or group was removed.
pub const FOREBAY_E_REMOVED: c_int = -8;
/// The properties are missing or not as they must be.
pub const FOREBAY_E_CONFIG: c_int = -9;
/// The file is on a disk that no entry of the properties covers, and the scheduler is strict.
pub const FOREBAY_E_UNLISTED: c_int = -10;
/// The system refused something: see `forebay_last_errno`.
pub const FOREBAY_E_SYSTEM: c_int = -11;
/// The buffer is too small; its length says what is needed.
pub const FOREBAY_E_TOO_SMALL: c_int = -12;
/// It was cancelled.
pub const FOREBAY_E_CANCELLED: c_int = -13;
/// A callback, which a thread of the library runs, would wait for that thread.
pub const FOREBAY_E_DEADLOCK: c_int = -14;
/// The library is older than the header, or has another interface.
pub const FOREBAY_E_VERSION: c_int = -15;
/// A bug in forebay. It is safe to go on; please report the message.
pub const FOREBAY_E_INTERNAL: c_int = -16;

/// The name of a code, such as "FOREBAY_E_HANDLE"; "unknown" for others.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_code_name(code: c_int) -> *const c_char {
    let name = match code {
        FOREBAY_OK => c"FOREBAY_OK",
        FOREBAY_PENDING => c"FOREBAY_PENDING",
        FOREBAY_E_HANDLE => c"FOREBAY_E_HANDLE",
        FOREBAY_E_INVALID => c"FOREBAY_E_INVALID",
        FOREBAY_E_TIMED_OUT => c"FOREBAY_E_TIMED_OUT",
        FOREBAY_E_AGAIN => c"FOREBAY_E_AGAIN",
        FOREBAY_E_NOT_FOUND => c"FOREBAY_E_NOT_FOUND",
        FOREBAY_E_EXISTS => c"FOREBAY_E_EXISTS",
        FOREBAY_E_BUSY => c"FOREBAY_E_BUSY",
        FOREBAY_E_REMOVED => c"FOREBAY_E_REMOVED",
        FOREBAY_E_CONFIG => c"FOREBAY_E_CONFIG",
        FOREBAY_E_UNLISTED => c"FOREBAY_E_UNLISTED",
        FOREBAY_E_SYSTEM => c"FOREBAY_E_SYSTEM",
        FOREBAY_E_TOO_SMALL => c"FOREBAY_E_TOO_SMALL",
        FOREBAY_E_CANCELLED => c"FOREBAY_E_CANCELLED",
        FOREBAY_E_DEADLOCK => c"FOREBAY_E_DEADLOCK",
        FOREBAY_E_VERSION => c"FOREBAY_E_VERSION",
        FOREBAY_E_INTERNAL => c"FOREBAY_E_INTERNAL",
        _ => c"unknown",
    };
    name.as_ptr()
}
