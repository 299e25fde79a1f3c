//! Deleting in steps: which files are freed, which are only unlinked, and what is refused.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod bad_input;
mod descriptors;
mod emptying;
mod files;
mod fixture;
mod growth;
mod handles;
#[path = "../shared/record_lock.rs"]
mod record_lock;
mod shares;
mod trash;
