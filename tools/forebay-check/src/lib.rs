//! Looks at what is between a directory and its disk, without load.
#![forbid(unsafe_code)]

mod directory;
mod environment;
mod finding;
mod observe;
mod probes;
mod report;
mod sources;
mod subject;
#[cfg(test)]
mod tests;

pub use directory::check;
pub use finding::{Finding, Level};
pub use report::{DirectoryReport, Report};
