//! Simulated disks and a virtual clock: the scheduler under reproducible
//! experiments.
#![forbid(unsafe_code)]

mod config;
pub mod disk;
pub mod file_system;
pub mod invariants;
mod load_command;
pub mod simulation;
pub mod spec;
pub mod surface;
pub mod swarm;
