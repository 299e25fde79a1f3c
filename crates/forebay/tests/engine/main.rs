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

#[macro_use]
#[path = "../shared/backends.rs"]
mod backends;

mod control;
mod data;
mod dropping;
mod errors;
mod polled;
mod refusal;
