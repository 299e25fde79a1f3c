//! What an experiment yields: a table beside published figures, and charts.
//!
//! One value serves the snapshot test, the terminal and the page.

use core::fmt;

use forebay_report::{Chart, Table};

use crate::figure::{Figure, number};

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
    /// Published figures beside ours, and whether they are met.
    pub figures: Vec<Figure>,
    /// All that was measured.
    pub tables: Vec<Table>,
    /// Pictures of the same.
    pub charts: Vec<Chart>,
}

impl Report {
    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl fmt::Display) {
        self.parameters.push((name.to_owned(), value.to_string()));
    }

    /// How many figures are met, and by name those that are not.
    pub fn verdict(&self) -> String {
        let (inputs, results): (Vec<&Figure>, Vec<&Figure>) =
            self.figures.iter().partition(|figure| figure.is_input);
        let missed: Vec<String> =
            results.iter().filter(|figure| !figure.is_met()).map(ToString::to_string).collect();
        let met = results.len() - missed.len();
        let mut text = match results.len() {
            0 => String::from("no figures were published"),
            of => format!("{met} of {of} published figures met"),
        };
        if !inputs.is_empty() {
            text.push_str(&format!(", {} more are inputs", inputs.len()));
        }
        if !missed.is_empty() {
            text.push_str(&format!("; not met: {}", missed.join(", ")));
        }
        text
    }

    /// The published figures, a row each.
    pub fn figures_table(&self) -> Table {
        let mut table = Table::new("Published figures", &["", "unit", "published", "ours", "met"]);
        for figure in &self.figures {
            let met = match figure {
                Figure { is_input: true, .. } => "input",
                figure if figure.is_met() => "yes",
                _ => "no",
            };
            let Figure { name, unit, published, ours, .. } = figure;
            let (name, unit, met) = (name.clone(), (*unit).to_owned(), met.to_owned());
            table.row([name, unit, published.to_string(), number(*ours), met]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shows)?;
        for (name, value) in &self.parameters {
            writeln!(f, "  {name}: {value}")?;
        }
        if !self.figures.is_empty() {
            write!(f, "\n{}", self.figures_table())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_met_is_named_and_inputs_do_not_count() {
        let figure = |published: (f64, f64), ours| {
            Figure::new("wait", "ms", published.0..=published.1, ours)
        };
        let input = figure((5.0, 5.0), 5.0).input();
        let figures = vec![figure((10.0, 10.0), 10.0), figure((1.0, 2.0), 3.0), input];
        let report = Report { figures, ..Report::default() };
        let text = "1 of 2 published figures met, 1 more are inputs; not met: wait (3.00, \
                    published 1.00 to 2.00 ms)";
        assert_eq!(report.verdict(), text);
        let met: Vec<String> =
            report.figures_table().rows.into_iter().map(|row| row[4].clone()).collect();
        assert_eq!(met, ["yes", "no", "input"]);
        assert_eq!(Report::default().verdict(), "no figures were published");
    }
}
