//! Any program of the I/O queue's verbs keeps what is said of them, and ends with nothing left.
//! The same programs run in `cargo test -p forebay-core --test programs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/forebay-core/tests/programs/program/mod.rs"]
mod program;

fuzz_target!(|bytes: &[u8]| program::Program(bytes.to_vec()).run());
