//! Panics of foreign code in the library's threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{io, mem};

/// Runs `work`; `None` if it panicked.
pub(crate) fn contain<R>(work: impl FnOnce() -> R) -> Option<R> {
    let payload = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => return Some(result),
        Err(payload) => payload,
    };
    // The drop of the payload may panic again. The payload of that panic is leaked.
    if let Err(next) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(next);
    }
    None
}

/// The result of a call that panicked.
pub(crate) fn panicked() -> io::Error {
    io::Error::other("the call panicked, which is a bug; standard error has its message")
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    /// Panics however often it is dropped, each time with another.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Self);
        }
    }

    #[test]
    fn a_panic_whose_payload_panics_ends_here() {
        assert_eq!(contain(|| 7), Some(7));
        assert_eq!(contain(|| panic_any(Bomb)), None::<()>);
    }
}
