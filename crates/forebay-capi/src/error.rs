//! The last error of a thread.

use std::ffi::{c_char, c_int};

use crate::call;

/// Returns the message of the calling thread's last error, which ends with a NUL. It is empty before the
/// first error, and valid until the thread's next one. `len` receives its length in bytes without the
/// NUL, and may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_last_error(len: *mut usize) -> *const c_char {
    call::last(|last| {
        if !len.is_null() {
            // SAFETY: the caller's pointer, which is not null.
            unsafe { len.write(last.text.as_bytes().len()) }
        }
        last.text.as_ptr()
    })
    .unwrap_or(c"".as_ptr())
}

/// Returns the `errno` of the calling thread's last error; 0 if it came from no system call.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_last_errno() -> c_int {
    call::last(|last| last.errno).unwrap_or(0)
}
