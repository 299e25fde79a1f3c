//! Simulated disks and a virtual clock: the scheduler under reproducible
//! experiments.
#![forbid(unsafe_code)]

pub mod disk;
pub mod invariants;
pub mod simulation;
pub mod spec;
pub mod surface;
pub mod swarm;
