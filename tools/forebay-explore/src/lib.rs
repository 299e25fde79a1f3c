//! Which mixes of reads and writes a disk carries within a latency.
//!
//! - A measured surface, [`Grid`](forebay_sim::surface::Grid): read latencies under loads of reads
//!   and writes. Of the loads of a [`Matrix`] all are measured, or those alone where a goal begins
//!   to break ([`adaptive`]); a [`SimulatedDisk`] is one that can be.
//! - A [`Goal`]: a percentile of the latency of reads, and how long it may be.
//! - [`fit`]: the region of the loads that keep it, as a [`Shape`], and on loads that were left out
//!   of the fit how much of what it allows breaks the goal (*unsafe*), and how much of what keeps the
//!   goal it forbids (*rejected*).
//!
//! A region is given in *disk time* as the straight line counts it: reads over the most reads that
//! the disk does alone, and writes over the most writes. Its radius at a part of writes is how much
//! of that a second of the real disk may hold: 1 everywhere on the straight line, less where mixes
//! are dearer.
#![forbid(unsafe_code)]

mod adaptive;
mod between;
mod error;
mod fit;
mod goal;
mod loads;
mod matrix;
mod picture;
mod power;
mod radii;
mod region;
mod report;
mod simulated;
mod what_if;

pub use adaptive::{adaptive, adaptive_cells_max};
pub use error::Error;
pub use fit::{Fit, Kind, Quality, fit};
pub use goal::{Goal, Percentile};
pub use loads::Figures;
pub use matrix::Matrix;
pub use picture::{page, svg};
pub use region::{Power, RADII_STEPS, RADIUS_ONE, Shape};
pub use report::{Report, text, unusable_warning};
pub use simulated::{SimulatedDisk, SimulatedLoad, SimulatedLoadError};
pub use what_if::{Demand, Grant, Prediction, predict};
