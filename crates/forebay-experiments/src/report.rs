//! What an experiment yields: a table beside published figures, and charts.
//!
//! One value serves the snapshot test, the terminal and the page.

use core::fmt;

use forebay_report::{Chart, Table};

/// The outcome of one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One sentence: what it shows.
    pub shows: String,
    /// One or two sentences: where our figures differ from the published ones,
    /// and why.
    pub differs: String,
    /// The simulated disk, the load and the durations: name and value.
    pub parameters: Vec<(String, String)>,
    /// Published figures beside ours.
    pub tables: Vec<Table>,
    /// Pictures of the same.
    pub charts: Vec<Chart>,
}

impl Report {
    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl fmt::Display) {
        self.parameters.push((name.to_owned(), value.to_string()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shows)?;
        for (name, value) in &self.parameters {
            writeln!(f, "  {name}: {value}")?;
        }
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        if !self.differs.is_empty() {
            writeln!(f, "\n{}", self.differs)?;
        }
        Ok(())
    }
}
