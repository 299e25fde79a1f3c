//! Finds and holds settings of the kernel's `io.cost` that meet a latency goal.
#![forbid(unsafe_code)]

mod calibrate;
mod changes;
mod classes;
mod disk;
mod error;
mod files;
mod governed;
mod hierarchy;
mod live;
mod qos;
mod search;
mod state_file;
mod tracer;

pub use calibrate::{Calibrated, CalibrationLoad, calibrate};
pub use classes::{ClassSpec, class_name};
pub use disk::GovernedDisk;
pub use error::GovernError;
pub use files::is_gone;
pub use governed::{Plan, QosWrites, restore};
pub use hierarchy::root_of_cgroups;
pub use live::{Governing, govern};
pub use qos::{DiskCosts, QosPoint};
pub use search::{Measured, Search};
