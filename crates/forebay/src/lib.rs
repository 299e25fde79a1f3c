//! forebay: a userspace disk I/O scheduler for storage engines.

pub mod properties;
