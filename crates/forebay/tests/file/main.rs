//! Files through I/O threads, on every backend of the engine.

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
mod descriptors;
mod fairness;
mod growing;
mod holders;
mod io_threads;
mod operations;
mod refusal;
mod stress;
