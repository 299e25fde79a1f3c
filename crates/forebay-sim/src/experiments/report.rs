//! What an experiment yields: a table beside published figures, and charts.
//!
//! One value serves the snapshot test, the terminal and the page.

use core::fmt;

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

/// Rows of text under column heads; the first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table is of.
    pub title: String,
    /// Column heads.
    pub columns: Vec<String>,
    /// One cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A chart with two linear axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its unit.
    pub y: String,
    /// Drawn in this order.
    pub series: Vec<Series>,
}

/// One line or cloud of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Points joined in order.
    Line,
    /// The same, broken: a bound, a goal, a published curve.
    Dashed,
    /// Points alone.
    Dots,
    /// The area below the line, faintly filled.
    Area,
}

impl Report {
    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl fmt::Display) {
        self.parameters.push((name.to_owned(), value.to_string()));
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row; its cells stand under the columns in order.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl Chart {
    /// A chart without series.
    pub fn new(title: &str, x: &str, y: &str) -> Self {
        Self { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), series: Vec::new() }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        self.series.push(Series { name: name.to_owned(), mark, points });
        self
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

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || core::iter::once(&self.columns).chain(&self.rows);
        let width = |at: usize| {
            lines().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|at| width(at).unwrap_or_default()).collect();
        writeln!(f, "{}", self.title)?;
        for line in lines() {
            for (at, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                match at {
                    0 => write!(f, "  {cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let mut table = Table::new("Shares", &["class", "published", "ours"]);
        table.row(["a".into(), "421,211".into(), "1".into()]);
        table.row(["long name".into(), "2".into(), "42,922".into()]);
        let expected = "Shares\n  class      published    ours\n  a            421,211       1\n  \
                        long name          2  42,922\n";
        assert_eq!(table.to_string(), expected);
    }
}
