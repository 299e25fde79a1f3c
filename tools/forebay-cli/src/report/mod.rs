//! One self-contained page of one run, or of two side by side: what was found, totals, and charts
//! over time.

mod busiest;
mod charts;
mod contention;
mod figures;
mod in_region;
mod options;
mod page;
mod picture;
mod slowdown;

#[cfg(test)]
mod tests;

pub(crate) use options::{Options, read, run};
pub(crate) use page::{html, on_one_scale};
