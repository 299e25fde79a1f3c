//! A disk of the scheduler that fails or hangs, in part or as a whole, and who
//! notices: shards, files and permits, on every backend of the engine. And one
//! that many threads keep busy.
//!
//! It is served through FUSE, which needs `/dev/fuse` and the right to mount.
//! Where that is missing the tests say so and pass, but for root in CI, where
//! they fail.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bench;
mod disk;

#[macro_use]
#[path = "../shared/backends.rs"]
mod backends;

mod device;
mod ranges;
mod turns;
mod whole;
