// Before adding modules other than `surface`, read /tmp/notes/sim.md: others write disk/, spec/ and simulation/.
//! Simulated disks and a virtual clock.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

pub mod disk;
pub mod spec;
pub mod surface;
pub mod invariants;
pub mod simulation;
