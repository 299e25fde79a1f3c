//! What a simulation was told before: inputs, and what it was fitted to, as a data file has it.

use std::collections::BTreeSet;

use serde::Deserialize;

#[cfg(test)]
use crate::figure::PublishedRange;
use crate::figure::{Figure, NullModel, State, number};

/// The file `known.yaml` of an experiment.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Known {
    /// Values that went in.
    pub(crate) given: Vec<Given>,
    /// The names of published figures that went in.
    pub(crate) inputs: BTreeSet<String>,
    pub(crate) fitted: Option<Fitted>,
}

/// What it is, its value and unit, and where it is from.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(crate) struct Given(pub(crate) String, pub(crate) f64, pub(crate) String, pub(crate) String);

/// Rows of published tables, chosen by where they stand, and the parameters that they set.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fitted {
    rows: BTreeSet<Place>,
    parameters: String,
}

/// A place in a table that does not depend on what came out.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Place {
    First,
    Last,
    /// Every row: the table says nothing.
    All,
}

impl Place {
    const fn has(self, row: usize, rows: usize) -> bool {
        match self {
            Self::First => row == 0,
            Self::Last => row + 1 == rows,
            Self::All => true,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::All => "every",
        }
    }
}

impl Known {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        forebay_config::parse("known.yaml", text).map_err(|error| error.to_string())
    }

    /// The places of fitted rows that this figure is in.
    fn fitted_at(&self, figure: &Figure) -> bool {
        let places = self.fitted.iter().flat_map(|fitted| &fitted.rows);
        let cell = figure.cell.as_ref();
        cell.is_some_and(|cell| places.into_iter().any(|place| place.has(cell.row, cell.rows)))
    }

    /// Says of each figure what it is; a fitted row, taken for all rows, is a null model.
    pub(crate) fn judge(&self, figures: &mut [Figure]) {
        let constants: Vec<Figure> =
            figures.iter().filter(|figure| self.fitted_at(figure)).cloned().collect();
        for figure in &mut *figures {
            if let Some(cell) = figure.cell.clone().filter(|_| !self.fitted_at(figure)) {
                let constants = constants.iter().filter_map(|other| {
                    let fitted = other.cell.as_ref().filter(|at| at.column == cell.column)?;
                    let name = format!("as in row {}", fitted.row + 1);
                    Some(NullModel { name, value: other.published.middle? })
                });
                figure.nulls.extend(constants);
            }
            figure.state = match figure {
                _ if self.inputs.contains(&figure.name) => State::Input,
                _ if self.fitted_at(figure) => State::Fitted,
                _ if figure.is_met_by_null() => State::Null,
                _ => State::Predicted,
            };
        }
    }

    /// What is wrong with these figures: predictions that equal a value that went in or have no null
    /// model, and inputs that are no figures; `numbers` stand in the files of disks and loads.
    #[cfg(test)]
    pub(crate) fn leaks(&self, figures: &[Figure], numbers: &[f64]) -> Vec<String> {
        let mut leaks = Vec::new();
        for figure in figures.iter().filter(|figure| figure.state == State::Predicted) {
            let PublishedRange { from, to, .. } = figure.published;
            let ends = if from.is_finite() { from } else { to };
            let published = figure.published.middle.unwrap_or(ends);
            let given = self.given.iter().filter(|given| given.2 == figure.unit);
            let same = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
            if given.into_iter().any(|given| same(given.1, published)) {
                leaks.push(format!("{}: it was given", figure.name));
            }
            let powers = (-4..=4).flat_map(|power| [1000_f64.powi(power), 1024_f64.powi(power)]);
            let mut scaled = powers.map(|power| published * power);
            if scaled.any(|value| numbers.iter().any(|number| (number / value - 1.0).abs() < 1e-4))
            {
                leaks.push(format!("{}: it stands in a disk or load", figure.name));
            }
            if figure.nulls.is_empty() {
                leaks.push(format!("{}: no null model", figure.name));
            }
        }
        let is_figure = |name: &&String| figures.iter().any(|figure| figure.name == **name);
        let unknown = self.inputs.iter().filter(|name| !is_figure(name));
        leaks.extend(unknown.map(|name| format!("{name}: no such figure")));
        leaks
    }

    /// All of it in a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let given = self.given.iter();
        let mut lines: Vec<String> = given
            .map(|Given(name, value, unit, from)| {
                format!("{name}: {} {unit} ({from})", number(*value))
            })
            .collect();
        if let Some(Fitted { rows, parameters }) = &self.fitted {
            let places: Vec<&str> = rows.iter().map(|place| place.name()).collect();
            lines.push(format!("fitted to the {} row: {parameters}", places.join(" and the ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Known {
        Known::parse(text).unwrap()
    }

    fn states(known: &Known, mut figures: Vec<Figure>) -> Vec<State> {
        known.judge(&mut figures);
        figures.iter().map(|figure| figure.state).collect()
    }

    #[test]
    fn states_follow_from_the_place_in_the_table_and_from_null_models_alone() {
        let column = |ours: [f64; 4]| {
            (0..4).map(move |row| {
                Figure::new(format!("{row}"), "ms", [1.0, 5.0, 9.5, 10.0][row], ours[row])
                    .at("p99", row, 4)
            })
        };
        let ends = known("fitted: {rows: [first, last], parameters: all}");
        let expected = [State::Fitted, State::Predicted, State::Null, State::Fitted];
        // whatever comes out
        for ours in [[1.0, 5.0, 9.5, 10.0], [7.0; 4]] {
            assert_eq!(states(&ends, column(ours).collect()), expected);
        }
        let input = known("inputs: ['1']");
        assert_eq!(states(&input, column([0.0; 4]).collect())[1], State::Input);
        let null = Figure::new("a", "ms", 5.0, 9.0).compared_with("no scheduler", 5.2);
        assert_eq!(states(&Known::default(), vec![null]), [State::Null]);
    }

    #[test]
    fn a_prediction_that_equals_an_input_or_has_no_null_model_is_found() {
        let known = known("given: [[a disk, 518, MB/s, the article]]\ninputs: [other]");
        let figure = |published: f64| Figure::new("f", "MB/s", published, 1.0);
        let leaks = |figure: Figure, numbers: &[f64]| known.leaks(&[figure], numbers);
        let other = "other: no such figure";
        assert_eq!(leaks(figure(520.0).compared_with("none", 1.0), &[518e6]), [other]);
        assert_eq!(
            leaks(figure(518.0).compared_with("none", 1.0), &[]),
            ["f: it was given", other]
        );
        let found = ["f: it stands in a disk or load", other];
        for number in [520.0, 520e3, 520.0 * 1024.0 * 1024.0] {
            assert_eq!(leaks(figure(520.0).compared_with("none", 1.0), &[number]), found);
        }
        assert_eq!(leaks(figure(520.0), &[]), ["f: no null model", other]);
    }

    #[test]
    fn places_are_first_last_or_all() {
        assert!(Known::parse("fitted: {rows: [third], parameters: all}").is_err());
    }
}
