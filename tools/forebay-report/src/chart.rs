//! What a chart shows.

/// A chart of lines and points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its unit.
    pub y: String,
    /// How x grows.
    pub scale: Scale,
    /// Drawn in this order.
    pub series: Vec<Series>,
    /// Values of x that mean something, and what.
    pub marks: Vec<(String, f64)>,
    /// How far y reaches at least, to compare charts.
    pub reaches: f64,
}

/// How the x axis of a chart grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// By the same from mark to mark.
    #[default]
    Linear,
    /// Each mark is twice the last; from 1024 on they are sizes.
    Doubling,
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

impl Chart {
    /// A chart without series.
    pub fn new(title: &str, x: &str, y: &str) -> Self {
        Self { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), ..Self::default() }
    }

    /// With an x axis on which each mark is twice the last.
    #[must_use]
    pub fn doubling(mut self) -> Self {
        self.scale = Scale::Doubling;
        self
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        self.series.push(Series { name: name.to_owned(), mark, points });
        self
    }

    /// With a y axis that reaches so far at least.
    #[must_use]
    pub fn reaching(mut self, y: f64) -> Self {
        self.reaches = y;
        self
    }

    /// The highest value of all series; 0 if none is above.
    pub fn highest(&self) -> f64 {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.map(|point| point.1).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// Marks a value of x.
    #[must_use]
    pub fn marked(mut self, name: &str, x: f64) -> Self {
        self.marks.push((name.to_owned(), x));
        self
    }
}
