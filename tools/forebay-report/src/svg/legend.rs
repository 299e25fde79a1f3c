//! What the colours and marks of series mean.

use plotters::prelude::*;

use super::style::{Area, DrawError, colour};
use crate::chart::{Mark, Series};

/// Names in rows, to stand below a chart, where they cover none of it.
pub(super) struct Legend<'a> {
    /// Each with the upper left corner of its place.
    names: Vec<(i32, i32, &'a Series)>,
}

impl<'a> Legend<'a> {
    const ROW: i32 = 22;
    const LEFT: i32 = 20;
    /// A sample of the mark, and room alongside it and behind the name.
    const AROUND_NAME: i32 = 40;
    /// Roomy for most fonts of this size.
    const CHARACTER: i32 = 9;

    /// Of series in this order, in as many rows as a chart of this width needs.
    pub(super) fn of(all: &'a [Series], width: u32) -> Self {
        let (mut x, mut y) = (Self::LEFT, 0);
        let mut placed = Vec::new();
        for series in all {
            let length = Self::AROUND_NAME + Self::CHARACTER * series.name.chars().count() as i32;
            if x > Self::LEFT && x + length > width as i32 {
                (x, y) = (Self::LEFT, y + Self::ROW);
            }
            placed.push((x, y, series));
            x += length;
        }
        Self { names: placed }
    }

    /// How high its rows are together.
    pub(super) fn height(&self) -> u32 {
        self.names.last().map_or(0, |(_, y, _)| (y + Self::ROW) as u32)
    }

    /// Draws it on an area of its own.
    pub(super) fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        for (place, &(x, y, series)) in self.names.iter().enumerate() {
            for &[(left, top), (right, bottom)] in sample(series.mark) {
                let corners = [(x + left, y + top), (x + right, y + bottom)];
                area.draw(&Rectangle::new(corners, colour(place).filled()))?;
            }
            let font = ("sans-serif", 16).into_font();
            area.draw(&Text::new(series.name.clone(), (x + 20, y), font))?;
        }
        Ok(())
    }
}

/// The rectangles, by two corners, that stand for a mark in 14 by 14.
const fn sample(mark: Mark) -> &'static [[(i32, i32); 2]] {
    match mark {
        Mark::Line => &[[(0, 7), (14, 10)]],
        Mark::Dashed => &[[(0, 7), (5, 10)], [(9, 7), (14, 10)]],
        Mark::Dots => &[[(4, 5), (10, 11)]],
        Mark::Area => &[[(0, 2), (14, 14)]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_has_as_many_rows_as_its_names_need() {
        let row = Legend::ROW as u32;
        let height = |names: &[&str]| {
            let series = |name: &&str| Series {
                name: (*name).to_owned(),
                mark: Mark::Line,
                points: Vec::new(),
            };
            Legend::of(&names.iter().map(series).collect::<Vec<_>>(), 300).height()
        };
        assert_eq!(height(&[]), 0);
        assert_eq!(height(&["reads", "writes"]), row);
        let long = "a name that is longer than any chart is wide, and stands alone in its row";
        assert_eq!(height(&["reads", long, "writes"]), 3 * row);
    }
}
