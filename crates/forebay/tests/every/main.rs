//! What holds of every public future and of every public method. A test in `tidy` compares the lists
//! here with the sources.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod auto_traits;
mod calling_wakers;
mod forked;
mod futures;
mod library_threads;
mod methods;

/// Held to fork, or to read by those that delete files: a child has the files of its parent, so one
/// that is deleted meanwhile is open elsewhere, and its deletion waits for nothing.
static FORKS: std::sync::RwLock<()> = std::sync::RwLock::new(());
