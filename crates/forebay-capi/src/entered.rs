//! The classes that a thread has entered.

use std::cell::RefCell;

use forebay::{Class, Entered};

thread_local! {
    /// The handles with which the thread entered classes. The last one applies.
    static ENTERED: RefCell<Vec<(u64, Entered)>> = const { RefCell::new(Vec::new()) };
}

/// Enters `class` on the calling thread. Returns false if the thread is ending.
pub(crate) fn enter(handle: u64, class: &Class) -> bool {
    let entered = class.enter();
    ENTERED.try_with(|all| all.borrow_mut().push((handle, entered))).is_ok()
}

/// Leaves the class that the calling thread last entered with this handle. Returns whether there was one.
pub(crate) fn leave(handle: u64) -> bool {
    let left = ENTERED.try_with(|all| {
        let mut all = all.borrow_mut();
        let at = all.iter().rposition(|(entered, _)| *entered == handle)?;
        Some(all.remove(at))
    });
    left.ok().flatten().is_some()
}
