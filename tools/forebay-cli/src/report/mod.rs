//! One self-contained page of one run, or of two side by side: what was found, totals, and charts
//! over time.

mod busiest;
mod charts;
mod contention;
mod figures;
<<<<<<< HEAD
=======
mod foremost;
mod in_region;
>>>>>>> d8bf6131 (Draw runs into their regions, and explore latencies of writes)
mod options;
mod page;
mod picture;
mod slowdown;

#[cfg(test)]
mod tests;

pub(crate) use options::{Options, read, run};
pub(crate) use page::{html, on_one_scale};
