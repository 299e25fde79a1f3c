//! What operators see.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

#[cfg(feature = "metrics")]
mod documented;
#[cfg(feature = "endpoint")]
mod endpoint;
mod snapshot;
#[cfg(feature = "endpoint")]
#[path = "../../examples/scrape_storm/storm.rs"]
mod storm;
