//! Latency surfaces: measured ones, and queueing models that behave like them.
//!
//! Decision: `docs/decisions/0044-fitted-surfaces.md`.

mod carried;
mod csv;
mod exponential;
mod exponentials;
mod fio;
mod fio_job;
mod fit;
mod grid;
mod latency;
mod minimize;
mod model;
mod region;

pub(crate) use exponential::Exponential;
pub use fit::{FitErrors, errors, fit};
pub use grid::{Cell, Grid};
pub use latency::{Percentiles, percentiles};
pub use model::SurfaceModel;
pub(crate) use region::Price;
pub use region::Region;
