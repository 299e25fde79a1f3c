//! Runs of job files against a simulated disk under the virtual clock.

mod bed;
mod runs;
mod shares;
mod window;
