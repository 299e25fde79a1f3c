//! forebay: a userspace disk I/O scheduler for storage engines.

mod aligned_buf;
mod buffer_pool;
mod direct_file;
pub mod engine;
pub mod properties;

pub use aligned_buf::AlignedBuf;
pub use buffer_pool::BufferPool;
pub use direct_file::{DirectFile, FileOptions};
