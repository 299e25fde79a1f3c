//! What the last error of a thread was.

use std::ffi::{c_char, c_int};

use crate::call;

/// The message of the last error of the calling thread, which ends with a NUL; empty before any. It
/// is valid until the thread's next error. `len` may be null, and is the length without the NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forebay_last_error(len: *mut usize) -> *const c_char {
    call::last(|last| {
        if !len.is_null() {
            // SAFETY: the caller's number.
            unsafe { len.write(last.text.as_bytes().len()) }
        }
        last.text.as_ptr()
    })
    .unwrap_or(c"".as_ptr())
}

/// The system's number (`errno`) of the last error of the calling thread; 0 if it has none.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_last_errno() -> c_int {
    call::last(|last| last.errno).unwrap_or(0)
}
