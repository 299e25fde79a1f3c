//! The scheduling decisions of forebay, free of I/O, threads and clocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod op;
mod time;

pub use op::Op;
pub use time::{DiskTime, Time};
