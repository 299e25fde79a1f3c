//! Several processes that share a disk: the exchange of their demands, and the part of each.
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
