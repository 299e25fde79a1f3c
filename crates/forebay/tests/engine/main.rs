//! One suite for every backend of the engine.
//!
//! To look for misuse of memory, run it under AddressSanitizer. Memory that a
//! dropped engine has to abandon to the kernel is a leak on purpose, and one
//! test asks for more memory than there is:
//!
//! ```sh
//! ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address \
//!     cargo +nightly test -p forebay --lib --tests --target x86_64-unknown-linux-gnu
//! ```

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bench;

/// Makes a test for each backend named, of functions that take the choice.
macro_rules! tests_of {
    ($($backend:ident $module:ident),+; $($name:ident),+ $(,)?) => {
        tests_of!(@each [$($backend $module),+] [$($name),+]);
    };
    (@each [$($backend:ident $module:ident),+] $names:tt) => {
        $(tests_of!(@module $backend $module $names);)+
    };
    (@module $backend:ident $module:ident [$($name:ident),+]) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    let choice = forebay::engine::BackendChoice::$backend;
                    if crate::bench::is_available(choice) {
                        super::$name(choice);
                    }
                }
            )+
        }
    };
}

mod control;
mod data;
mod dropping;
mod errors;
mod refusal;
