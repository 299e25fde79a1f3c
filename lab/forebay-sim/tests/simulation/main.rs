//! Runs of job files against a simulated disk under the virtual clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod deletes;
mod faults;
mod fixture;
mod flushes;
mod head_runs;
mod knee;
mod load_difference;
mod members;
mod mixes;
mod neighbours;
mod runs;
mod scenarios;
mod shares;
mod stalls;
mod streams;
mod target;
mod trouble;
mod wake_ups;
mod window;
