//! Job files, load generators, and results: what measuring a real disk and a simulated one have in common.
#![forbid(unsafe_code)]

pub mod generator;
pub mod job_file;
pub mod recorder;
mod rng;

pub use rng::Rng;
