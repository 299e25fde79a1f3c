//! Simulated disks and a virtual clock.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

pub mod disk;
pub mod experiments;
pub mod invariants;
pub mod simulation;
pub mod spec;
pub mod surface;
pub mod swarm;
