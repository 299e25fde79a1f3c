//! How files grow: strategies, how fast they are and in which extents files lie by them.
//!
//! [`grow`] makes files in a directory of its own by one [`Strategy`], with direct writes one after
//! another in each file, all files at once; [`Grown`] says what came of it.
#![forbid(unsafe_code)]

mod grow;

pub use grow::{FILES_MAX, Grown, Growth, Strategy, grow};
