//! The codes that functions return.

use std::ffi::{c_char, c_int};

/// Success.
pub const FOREBAY_OK: c_int = 0;
/// The request waits. A callback or an event will report its end.
pub const FOREBAY_PENDING: c_int = 1;
/// The handle is 0, was freed, is of another kind or of another process, or was inherited by a forked
/// child.
pub const FOREBAY_E_HANDLE: c_int = -1;
/// An argument is invalid: a null pointer, an unknown operation or a length of 0, for example.
pub const FOREBAY_E_INVALID: c_int = -2;
/// The timeout has passed, or was 0 and the request would have to wait.
pub const FOREBAY_E_TIMED_OUT: c_int = -3;
/// The queue has no event. Ask again when its descriptor is readable.
pub const FOREBAY_E_AGAIN: c_int = -4;
/// There is no class, disk or entry of that name or number.
pub const FOREBAY_E_NOT_FOUND: c_int = -5;
/// A class or group of that name exists already.
pub const FOREBAY_E_EXISTS: c_int = -6;
/// It has queued requests or contains classes, or a maximum number is reached.
pub const FOREBAY_E_BUSY: c_int = -7;
/// The class or group was removed.
pub const FOREBAY_E_REMOVED: c_int = -8;
/// The I/O properties are missing or invalid.
pub const FOREBAY_E_CONFIG: c_int = -9;
/// The file is on a disk that no entry of the properties covers, and the scheduler is strict.
pub const FOREBAY_E_UNLISTED: c_int = -10;
/// A system call failed: see `forebay_last_errno`.
pub const FOREBAY_E_SYSTEM: c_int = -11;
/// The buffer is too small. The returned length is the size that it needs.
pub const FOREBAY_E_TOO_SMALL: c_int = -12;
/// The request or deletion was cancelled.
pub const FOREBAY_E_CANCELLED: c_int = -13;
/// A callback would wait for the library's thread that runs it.
pub const FOREBAY_E_DEADLOCK: c_int = -14;
/// The library is older than the header, or has an incompatible interface.
pub const FOREBAY_E_VERSION: c_int = -15;
/// A bug in forebay. The program may continue; please report the message.
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
