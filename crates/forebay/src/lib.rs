//! forebay: a userspace disk I/O scheduler for storage engines.

mod aligned_buf;
mod direct_file;
pub mod engine;
pub mod properties;

pub use aligned_buf::AlignedBuf;
pub use direct_file::{DirectFile, FileOptions};
