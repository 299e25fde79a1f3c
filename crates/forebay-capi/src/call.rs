//! The frame of each function of the interface: `errno`, the last error and panics.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_int};
use std::mem;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::thread;

use crate::code::{FOREBAY_E_INTERNAL, FOREBAY_OK};
use crate::failure::Failure;

/// The last error of a thread.
#[derive(Default)]
pub(crate) struct Last {
    pub(crate) text: CString,
    pub(crate) errno: c_int,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
    /// The number of calls that the thread is in. A callback may make nested ones.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The message and place of the thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does the work of a function. It preserves `errno`, turns a panic into a failure, and records a
/// failure as the thread's last error.
pub(crate) fn call(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    // SAFETY: it is the `errno` of the calling thread, which lives as long as the thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno = unsafe { place.read() };
    silence_panics();
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    let code = match result {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => note(failure),
        Err(payload) => {
            forget(payload);
            let place = PANIC.try_with(|place| mem::take(&mut *place.borrow_mut()));
            let text = format!("a bug in forebay, please report it: {}", place.unwrap_or_default());
            note(Failure::new(FOREBAY_E_INTERNAL, text))
        }
    };
    // SAFETY: as above.
    unsafe { place.write(errno) }
    code
}

/// [`call`] for work that returns no value.
pub(crate) fn call_done(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    call(|| work().map(|()| FOREBAY_OK))
}

/// Makes `failure` the last error of the calling thread.
pub(crate) fn note(failure: Failure) -> c_int {
    let Failure { code, errno, text } = failure;
    // A NUL would end the text early.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    let _ = LAST.try_with(|last| last.replace(Last { text, errno }));
    code
}

/// Applies `look` to the last error. `None` while the thread ends.
pub(crate) fn last<R>(look: impl FnOnce(&Last) -> R) -> Option<R> {
    LAST.try_with(|last| look(&last.borrow())).ok()
}

/// Drops the payload of a panic, which may panic again.
fn forget(payload: Box<dyn Any + Send>) {
    if let Err(next) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(next);
    }
}

/// Installs a hook that writes nothing to standard error for panics in calls and in threads of the
/// library. The program's own hook handles all others.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_own = thread::current().name().is_some_and(|name| name.starts_with("forebay-"));
            if !is_own && DEPTH.get() == 0 {
                before(info);
                return;
            }
            let _ = PANIC.try_with(|place| *place.borrow_mut() = info.to_string());
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use crate::error::{forebay_last_errno, forebay_last_error};

    #[test]
    fn a_panic_is_an_error_that_names_its_place() {
        let code = call(|| panic!("on\0 purpose"));
        assert_eq!(code, FOREBAY_E_INTERNAL);
        // SAFETY: valid until the thread's next error.
        let text = unsafe { CStr::from_ptr(forebay_last_error(std::ptr::null_mut())) };
        let text = text.to_str().unwrap();
        assert!(text.contains("call.rs") && text.contains("purpose"), "{text}");
        assert_eq!(forebay_last_errno(), 0);
        assert_eq!(DEPTH.get(), 0);
    }

    #[test]
    fn errno_stays_what_it_was() {
        // SAFETY: the place of this thread.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *place = 77 };
        let code = call_done(|| {
            std::fs::File::open("/nowhere").map_err(Failure::from)?;
            Ok(())
        });
        assert_eq!(code, crate::code::FOREBAY_E_SYSTEM);
        // SAFETY: as above.
        assert_eq!((unsafe { *place }, forebay_last_errno()), (77, libc::ENOENT));
    }
}
