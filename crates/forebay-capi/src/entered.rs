//! The classes that a thread has entered.

use std::cell::RefCell;

use forebay::{Class, Entered};

thread_local! {
    /// With the handles by which it did; the innermost is the last.
    static ENTERED: RefCell<Vec<(u64, Entered)>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread is in `class` from now on; false at its end.
pub(crate) fn enter(handle: u64, class: &Class) -> bool {
    let entered = class.enter();
    ENTERED.try_with(|all| all.borrow_mut().push((handle, entered))).is_ok()
}

/// The calling thread leaves what it entered last by this handle; whether there was any.
pub(crate) fn leave(handle: u64) -> bool {
    let left = ENTERED.try_with(|all| {
        let mut all = all.borrow_mut();
        let at = all.iter().rposition(|(entered, _)| *entered == handle)?;
        Some(all.remove(at))
    });
    left.ok().flatten().is_some()
}
