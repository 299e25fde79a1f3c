//! Latency surfaces: measured ones, and queueing models that behave like them.
//!
//! Decision: `docs/decisions/0044-fitted-surfaces.md`.

mod carried;
mod csv;
mod exponentials;
mod fio;
mod fio_job;
mod fit;
mod grid;
mod latency;
mod minimize;
mod model;

pub use fit::{FitErrors, errors, fit};
pub use grid::{Axes, Cell, Grid};
pub use latency::{Percentiles, percentiles};
pub(crate) use model::Price;
pub use model::{Region, SurfaceModel};
