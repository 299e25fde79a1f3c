//! A thread's own I/O queue, on every backend of the engine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bed;

/// Makes a test for io_uring and one for threads, of functions that take the
/// choice.
macro_rules! on_both_backends {
    ($($name:ident),+ $(,)?) => {
        on_both_backends!(@module IoUring io_uring [$($name),+]);
        on_both_backends!(@module Threads threads [$($name),+]);
    };
    (@module $backend:ident $module:ident [$($name:ident),+]) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    let choice = forebay::engine::BackendChoice::$backend;
                    if crate::bed::is_available(choice) {
                        super::$name(choice);
                    }
                }
            )+
        }
    };
}

mod cancellation;
mod data;
mod event_loop;
mod faults;
mod sharing;
