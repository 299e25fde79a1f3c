//! A published figure beside ours, and whether it is met.

use core::fmt;
use core::ops::{RangeFrom, RangeInclusive, RangeToInclusive};

/// Ours counts as the published figure within this factor of it, unless said otherwise.
const WITHIN: f64 = 1.05;

/// What was published: a figure, from one to another, or a bound; then the other end is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRange {
    /// The least.
    pub from: f64,
    /// The most.
    pub to: f64,
}

impl From<f64> for PublishedRange {
    fn from(figure: f64) -> Self {
        Self { from: figure, to: figure }
    }
}

impl From<RangeInclusive<f64>> for PublishedRange {
    fn from(range: RangeInclusive<f64>) -> Self {
        Self { from: *range.start(), to: *range.end() }
    }
}

impl From<RangeToInclusive<f64>> for PublishedRange {
    fn from(range: RangeToInclusive<f64>) -> Self {
        Self { from: f64::NEG_INFINITY, to: range.end }
    }
}

impl From<RangeFrom<f64>> for PublishedRange {
    fn from(range: RangeFrom<f64>) -> Self {
        Self { from: range.start, to: f64::INFINITY }
    }
}

impl PublishedRange {
    /// A figure that was rounded to a whole number.
    pub(crate) const fn rounded(figure: f64) -> Self {
        Self { from: figure - 0.5, to: figure + 0.5 }
    }
}

impl fmt::Display for PublishedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = *self;
        match (from.is_finite(), to.is_finite()) {
            (true, true) if from < to => write!(f, "{} to {}", number(from), number(to)),
            (true, false) => write!(f, "at least {}", number(from)),
            (false, true) => write!(f, "at most {}", number(to)),
            _ => f.write_str(&number(from)),
        }
    }
}

/// A published figure beside ours.
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
    /// Ours may be off the published by this factor, at least 1.
    pub within: f64,
    /// Disk or load were chosen such that it comes out: it says nothing of the scheduler.
    pub is_input: bool,
}

impl Figure {
    pub(crate) fn new(
        name: impl Into<String>,
        unit: &'static str,
        published: impl Into<PublishedRange>,
        ours: f64,
    ) -> Self {
        let published = published.into();
        Self { name: name.into(), unit, published, ours, within: WITHIN, is_input: false }
    }

    /// Whether ours is what was published, within the factor.
    pub fn is_met(&self) -> bool {
        self.published.from / self.within <= self.ours
            && self.ours <= self.published.to * self.within
    }

    /// The same, met within another factor.
    pub(crate) fn within(self, factor: f64) -> Self {
        Self { within: factor, ..self }
    }

    /// The same, as one that was put in.
    pub(crate) fn input(self) -> Self {
        Self { is_input: true, ..self }
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
    fn a_figure_is_met_within_its_factor_of_what_was_published() {
        for (published, met, missed) in [
            (PublishedRange::from(10.0), [9.6, 10.5], [9.5, 10.6]),
            (PublishedRange::from(10.0..=20.0), [9.6, 21.0], [9.5, 21.1]),
            (PublishedRange::from(..=10.0), [0.0, 10.5], [10.6, 20.0]),
            (PublishedRange::from(10.0..), [9.6, 1e9], [0.0, 9.5]),
            (PublishedRange::from(0.0), [0.0, 0.0], [0.1, -0.1]),
        ] {
            assert!(met.iter().all(|&ours| figure(published, ours).is_met()), "{published}");
            assert!(!missed.iter().any(|&ours| figure(published, ours).is_met()), "{published}");
        }
        assert!(figure(10.0, 19.9).within(2.0).is_met());
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
