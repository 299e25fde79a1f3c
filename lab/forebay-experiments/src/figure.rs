//! A published figure alongside ours, what of it was known before, and whether it is met.

use core::fmt;
use core::ops::{RangeFrom, RangeInclusive, RangeToInclusive};

/// Ours counts as the published figure within this factor of it, or within its rounding.
const WITHIN: f64 = 1.1;
/// What is not met and yet within this factor is counted apart.
const NEAR: f64 = 2.0;

/// What was published: a figure, from one to another, or a bound; then the other end is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRange {
    /// The least.
    pub from: f64,
    /// The most.
    pub to: f64,
    /// The figure itself, of what has two ends.
    pub middle: Option<f64>,
}

impl From<f64> for PublishedRange {
    fn from(figure: f64) -> Self {
        Self { from: figure, to: figure, middle: Some(figure) }
    }
}

impl From<RangeInclusive<f64>> for PublishedRange {
    fn from(range: RangeInclusive<f64>) -> Self {
        let (from, to) = (*range.start(), *range.end());
        Self { from, to, middle: Some(f64::midpoint(from, to)) }
    }
}

impl From<RangeToInclusive<f64>> for PublishedRange {
    fn from(range: RangeToInclusive<f64>) -> Self {
        Self { from: f64::NEG_INFINITY, to: range.end, middle: None }
    }
}

impl From<RangeFrom<f64>> for PublishedRange {
    fn from(range: RangeFrom<f64>) -> Self {
        Self { from: range.start, to: f64::INFINITY, middle: None }
    }
}

impl PublishedRange {
    /// A figure that was rounded to a whole number.
    pub(crate) const fn rounded(figure: f64) -> Self {
        Self { from: figure - 0.5, to: figure + 0.5, middle: Some(figure) }
    }

    /// A figure that was read off in such steps, and rounded.
    pub(crate) fn in_steps(figure: f64, step: f64) -> Self {
        let step = 1.01 * step;
        Self { from: (figure - step).max(0.0), to: figure + step, middle: Some(figure) }
    }

    /// Whether this value is in it, or within `factor` of its middle.
    fn has(&self, value: f64, factor: f64) -> bool {
        let near = |middle: f64| middle / factor <= value && value <= middle * factor;
        (self.from..=self.to).contains(&value) || self.middle.is_some_and(near)
    }
}

impl fmt::Display for PublishedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, .. } = *self;
        match (from.is_finite(), to.is_finite()) {
            (true, true) if from < to => write!(f, "{} to {}", number(from), number(to)),
            (true, false) => write!(f, "at least {}", number(from)),
            (false, true) => write!(f, "at most {}", number(to)),
            _ => f.write_str(&number(from)),
        }
    }
}

/// What a figure says of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was not known before, and no null model meets it: evidence, if it is met.
    Predicted,
    /// Parameters were fitted to it.
    Fitted,
    /// It went in.
    Input,
    /// A null model meets it too.
    Null,
}

impl State {
    /// As it stands in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Input => "input",
            Self::Null => "null",
        }
    }
}

/// What a model gives that knows nothing of what the experiment is about.
#[derive(Clone, Debug, PartialEq)]
pub struct NullModel {
    /// What it is: no scheduler, a constant, or arithmetic on what went in.
    pub name: String,
    /// Its figure.
    pub value: f64,
}

/// Where in a published table a figure stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) column: String,
    pub(crate) row: usize,
    pub(crate) rows: usize,
}

/// A published figure alongside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is of; it names the figure within its experiment.
    pub name: String,
    /// The unit of both.
    pub unit: &'static str,
    /// What was published.
    pub published: PublishedRange,
    /// What came out here.
    pub ours: f64,
    /// Ours may be off the middle of the published by this factor, at least 1.
    pub within: f64,
    /// What it says, which follows from what was known before and from null models.
    pub state: State,
    /// What models give that know nothing.
    pub nulls: Vec<NullModel>,
    pub(crate) cell: Option<Cell>,
}

impl Figure {
    pub(crate) fn new(
        name: impl Into<String>,
        unit: &'static str,
        published: impl Into<PublishedRange>,
        ours: f64,
    ) -> Self {
        Self {
            name: name.into(),
            unit,
            published: published.into(),
            ours,
            within: WITHIN,
            state: State::Predicted,
            nulls: Vec::new(),
            cell: None,
        }
    }

    /// Whether ours is what was published: within the factor, or within its rounding.
    pub fn is_met(&self) -> bool {
        self.published.has(self.ours, self.within)
    }

    /// Whether it is not met, and within a factor of 2 of it.
    pub fn is_near(&self) -> bool {
        let PublishedRange { from, to, .. } = self.published;
        !self.is_met() && from / NEAR <= self.ours && self.ours <= to * NEAR
    }

    /// The null model that comes nearest to what was published.
    pub fn nearest_null(&self) -> Option<&NullModel> {
        let PublishedRange { from, to, .. } = self.published;
        let off = |null: &NullModel| (from - null.value).max(null.value - to).max(0.0);
        self.nulls.iter().min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// Whether a null model meets it too.
    pub(crate) fn is_met_by_null(&self) -> bool {
        self.nulls.iter().any(|null| self.published.has(null.value, self.within))
    }

    /// How far off it may be, in words.
    pub fn tolerance(&self) -> String {
        let PublishedRange { from, to, .. } = self.published;
        match self.published.middle {
            None => "bound".to_owned(),
            Some(_) if self.within <= 1.0 && from == to => "none".to_owned(),
            Some(_) if from == to => format!("{:.0} %", (self.within - 1.0) * 100.0),
            Some(_) if self.within <= 1.0 => "range".to_owned(),
            Some(_) => format!("range or {:.0} %", (self.within - 1.0) * 100.0),
        }
    }

    /// The same, met by nothing else.
    pub(crate) fn exactly(self) -> Self {
        Self { within: 1.0, ..self }
    }

    /// The same alongside what this null model gives.
    pub(crate) fn compared_with(mut self, null: impl Into<String>, value: f64) -> Self {
        self.nulls.push(NullModel { name: null.into(), value });
        self
    }

    /// The same, which stands in this row of this many in a column of a published table.
    pub(crate) fn at(self, column: impl Into<String>, row: usize, rows: usize) -> Self {
        Self { cell: Some(Cell { column: column.into(), row, rows }), ..self }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, published, ours, .. } = self;
        write!(f, "{name} ({}, published {published} {unit})", number(*ours))
    }
}

/// A number with three digits, or all before the point.
pub(crate) fn number(number: f64) -> String {
    match number.abs() {
        0.0 => String::from("0"),
        size if size >= 100.0 => thousands(number),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.1 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// A whole number with its thousands apart.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::from(if number < -0.5 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(published: impl Into<PublishedRange>, ours: f64) -> Figure {
        Figure::new("wait", "ms", published, ours)
    }

    #[test]
    fn a_figure_is_met_within_a_tenth_or_its_rounding_and_near_within_a_factor_of_two() {
        for (published, met, near, missed) in [
            (PublishedRange::from(10.0), [9.1, 11.0], [9.0, 20.0], [4.9, 20.1]),
            (PublishedRange::rounded(1.0), [0.5, 1.5], [0.4, 3.0], [0.2, 3.1]),
            (PublishedRange::rounded(24.0), [22.0, 26.4], [21.5, 49.0], [11.0, 50.0]),
            (PublishedRange::from(10.0..=20.0), [10.0, 20.0], [9.9, 40.0], [4.9, 40.1]),
            (PublishedRange::from(..=10.0), [0.0, 10.0], [10.1, 20.0], [20.1, 30.0]),
            (PublishedRange::from(10.0..), [10.0, 1e9], [9.9, 5.0], [4.9, 0.0]),
        ] {
            assert!(met.iter().all(|&ours| figure(published, ours).is_met()), "{published}");
            assert!(near.iter().all(|&ours| figure(published, ours).is_near()), "{published}");
            let other = missed.map(|ours| figure(published, ours));
            assert!(!other.iter().any(|figure| figure.is_met() || figure.is_near()), "{published}");
        }
        assert!(!figure(10.0, 10.1).exactly().is_met());
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in
            [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (-12_345.6, "-12,346")]
        {
            assert_eq!(thousands(number), text);
        }
    }
}
