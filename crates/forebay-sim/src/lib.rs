// Before adding modules other than `surface`, read /tmp/notes/sim.md and src/disk/00-WHO-WRITES-HERE.txt:
// disk/ (but surface.rs), spec/ and simulation/ have other authors, and the trait SimDisk other users.
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
