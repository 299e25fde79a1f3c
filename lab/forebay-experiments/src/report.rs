//! What an experiment yields: a table alongside published figures, and charts.
//!
//! One value serves the snapshot test, the terminal and the page.

use core::fmt;

use forebay_report::{Chart, Table};

use crate::figure::{Figure, State, number};

/// The outcome of one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One sentence: what it shows.
    pub shows: String,
    /// One or two sentences: where our figures differ from the published ones,
    /// and why.
    pub differs: String,
    /// What the simulation was told before, and what it was fitted to.
    pub known: Vec<String>,
    /// The simulated disk, the load and the durations: name and value.
    pub parameters: Vec<(String, String)>,
    /// Published figures alongside ours, and whether they are met.
    pub figures: Vec<Figure>,
    /// All that was measured.
    pub tables: Vec<Table>,
    /// What the measured shows, a sentence each.
    pub findings: Vec<String>,
    /// Pictures of the same.
    pub charts: Vec<Chart>,
}

impl Report {
    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl fmt::Display) {
        self.parameters.push((name.to_owned(), value.to_string()));
    }

    /// How many predictions are met, what says nothing, and by name what is not met.
    pub fn verdict(&self) -> String {
        if self.figures.is_empty() {
            return String::from("no figures were published");
        }
        let of = |state| self.figures.iter().filter(move |figure| figure.state == state);
        let predicted: Vec<&Figure> = of(State::Predicted).collect();
        let met = predicted.iter().filter(|figure| figure.is_met()).count();
        let mut text = match predicted.len() {
            0 => String::from("no predictions"),
            all => format!("{met} of {all} predictions met"),
        };
        for state in [State::Fitted, State::Input, State::Null] {
            match of(state).count() {
                0 => {}
                count => text.push_str(&format!(", {count} {}", state.name())),
            }
        }
        let missed = |near: bool| {
            let off =
                predicted.iter().filter(|figure| !figure.is_met() && figure.is_near() == near);
            off.map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        for (what, missed) in [("within a factor of 2", missed(true)), ("not met", missed(false))] {
            if !missed.is_empty() {
                text.push_str(&format!("; {what}: {missed}"));
            }
        }
        text
    }

    /// The published figures, a row each.
    pub fn figures_table(&self) -> Table {
        let columns = ["", "unit", "published", "ours", "null model", "tolerance", "state", "met"];
        let mut table = Table::new("Published figures", &columns);
        for figure in &self.figures {
            let Figure { name, unit, published, ours, state, .. } = figure;
            let null = figure.nearest_null();
            let null = null
                .map_or_else(String::new, |null| format!("{}: {}", null.name, number(null.value)));
            let met = match figure {
                figure if figure.is_met() => "yes",
                figure if figure.is_near() => "2 x",
                _ => "no",
            };
            table.row([
                name.clone(),
                (*unit).to_owned(),
                published.to_string(),
                number(*ours),
                null,
                figure.tolerance(),
                state.name().to_owned(),
                met.to_owned(),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shows)?;
        for known in &self.known {
            writeln!(f, "  known before: {known}")?;
        }
        for (name, value) in &self.parameters {
            writeln!(f, "  {name}: {value}")?;
        }
        if !self.figures.is_empty() {
            write!(f, "\n{}", self.figures_table())?;
        }
        for table in &self.tables {
            write!(f, "\n{table}")?;
        }
        if !self.findings.is_empty() {
            writeln!(f, "\n{}", self.findings.join("\n"))?;
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
    fn predictions_alone_count_and_what_is_not_met_is_named() {
        let figure = |published: (f64, f64), ours| {
            Figure::new("wait", "ms", published.0..=published.1, ours)
        };
        let with = |state, figure| Figure { state, ..figure };
        let figures = vec![
            figure((10.0, 10.0), 10.0),
            figure((1.0, 2.0), 3.0),
            figure((1.0, 2.0), 5.0),
            with(State::Input, figure((5.0, 5.0), 5.0)),
            with(State::Fitted, figure((5.0, 5.0), 6.0)),
        ];
        let report = Report { figures, ..Report::default() };
        let text = "1 of 3 predictions met, 1 fitted, 1 input; within a factor of 2: wait (3.00, \
                    published 1.00 to 2.00 ms); not met: wait (5.00, published 1.00 to 2.00 ms)";
        assert_eq!(report.verdict(), text);
        let met: Vec<String> =
            report.figures_table().rows.into_iter().map(|row| row[7].clone()).collect();
        assert_eq!(met, ["yes", "2 x", "no", "yes", "2 x"]);
        assert_eq!(Report::default().verdict(), "no figures were published");
    }
}
