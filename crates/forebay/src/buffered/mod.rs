//! Scheduled reads and write-back of files that use the page cache.
//!
//! Decision: `docs/decisions/0030-buffered-writeback.md`.

mod active_parts;
mod dirt;
#[cfg(test)]
mod dirt_tests;
mod dirty_file;
mod dirty_pieces;
mod failure;
mod hit_rate;
mod part;
mod read;
mod rewritten;
mod sync;
mod waiter;
mod write_back_path;
mod writer;
mod writing;

pub use self::writer::BufferedWriter;
