//! Several processes that share a disk: what they tell each other, and which part each has.
//!
//! Decision: `docs/decisions/0048-several-processes.md`.

mod division;
mod segment;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) use self::division::Siblings;
pub(crate) use self::segment::Segment;
pub use self::segment::SharedMemoryError;
pub(crate) use self::slot::{Demand, Slot};
