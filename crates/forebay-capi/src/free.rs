//! Freeing handles.

use std::ffi::c_int;

use crate::call::call_done;
use crate::events::Events;
use crate::object::{Object, take};
use crate::waiting::Waiting;

/// Frees a handle of any kind. A permit ends as if its I/O had succeeded, a waiting request is
/// cancelled, and write-back of a writer's dirty bytes begins (see `forebay_writer_set_write_back_after`).
/// Classes, groups and deletions continue to exist without a handle. A scheduler ends when all handles
/// of objects that were made with it are freed.
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
