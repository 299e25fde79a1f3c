//! Freeing handles.

use std::ffi::c_int;

use crate::call::call_done;
use crate::events::Events;
use crate::object::{Object, take};
use crate::waiting::Waiting;

/// Frees a handle of whatever kind. A permit ends as done, a request that waits gives its place back,
/// dirt of a buffered writer is handed over; classes, groups and deletions go on without a handle. A
/// scheduler ends when nothing that was made with it has a handle any more.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_free(handle: u64) -> c_int {
    call_done(|| {
        let object = take(handle)?;
        if let Object::Shared(_, shared) = &object {
            shared.downcast_ref().into_iter().for_each(Waiting::cancel);
            shared.downcast_ref().into_iter().for_each(Events::close);
        }
        drop(object);
        Ok(())
    })
}
