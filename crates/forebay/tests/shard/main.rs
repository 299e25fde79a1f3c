//! A thread's own I/O queue, on every backend of the engine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fixture;

#[macro_use]
#[path = "../shared/backends.rs"]
mod backends;

#[path = "../shared/stress.rs"]
mod stress_shared;

mod buffers;
mod cancellation;
mod data;
mod event_loop;
mod faults;
mod sharing;
mod stress;
