//! The scheduler as its users see it, on a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod at_once;
mod base_latency;
mod busy_hosts;
mod changes;
mod counters;
mod discards;
mod faults;
mod head_runs;
mod late_shards;
mod late_threads;
mod latency_target;
mod limits;
mod nested;
mod park;
mod policies;
mod seeks;
mod shares;
mod slow_disks;
mod slow_turns;
mod streams;
mod verbs;
mod wakes;
mod world;
