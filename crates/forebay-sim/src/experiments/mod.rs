//! The published experiments, repeated under virtual time.
//!
//! Each experiment is one function from a [`Scale`] to a [`Report`]; tests take
//! a snapshot of its text, and `forebay reproduce` draws its charts.

mod design;
mod report;
mod s0;
mod s1;
mod s2;
mod s3;
mod scenario;

pub use report::{Chart, Mark, Report, Series, Table};

/// How long experiments run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shortened, so that all of them take a minute or two.
    Short,
    /// As long as published.
    Full,
}

impl Scale {
    /// `full` seconds, or `short` of them.
    pub const fn seconds(self, short: u64, full: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// An experiment that can be repeated.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line: the published item it repeats.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Repeats it.
    ///
    /// # Errors
    /// A sentence, if a simulation could not be set up.
    pub run: fn(Scale) -> Result<Report, String>,
}

/// All of them, in the order of publication.
pub fn all() -> Vec<Experiment> {
    [s0::ALL, s1::ALL, s2::ALL, s3::ALL, design::ALL].concat()
}

/// The experiment of this name.
pub fn find(name: &str) -> Option<Experiment> {
    all().into_iter().find(|experiment| experiment.name.eq_ignore_ascii_case(name))
}
