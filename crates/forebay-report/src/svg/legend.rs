//! What the colours of series mean.

use plotters::prelude::*;

use super::style::{Area, DrawError, colour};

/// Names in rows, to stand below a chart, where they cover none of it.
pub(super) struct Legend<'a> {
    /// Each with the upper left corner of its place.
    names: Vec<(i32, i32, &'a str)>,
}

impl<'a> Legend<'a> {
    const ROW: i32 = 22;
    const LEFT: i32 = 20;
    /// A coloured rectangle, and room beside it and behind the name.
    const AROUND_NAME: i32 = 40;
    /// Roomy for most fonts of this size.
    const CHARACTER: i32 = 9;

    /// Of series in this order, in as many rows as a chart of this width needs.
    pub(super) fn of(names: impl Iterator<Item = &'a str>, width: u32) -> Self {
        let (mut x, mut y) = (Self::LEFT, 0);
        let mut placed = Vec::new();
        for name in names {
            let length = Self::AROUND_NAME + Self::CHARACTER * name.chars().count() as i32;
            if x > Self::LEFT && x + length > width as i32 {
                (x, y) = (Self::LEFT, y + Self::ROW);
            }
            placed.push((x, y, name));
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
        for (place, &(x, y, name)) in self.names.iter().enumerate() {
            let corners = [(x, y + 2), (x + 14, y + 14)];
            area.draw(&Rectangle::new(corners, colour(place).filled()))?;
            let font = ("sans-serif", 16).into_font();
            area.draw(&Text::new(name.to_owned(), (x + 20, y), font))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_has_as_many_rows_as_its_names_need() {
        let row = Legend::ROW as u32;
        let height = |names: &[&'static str]| Legend::of(names.iter().copied(), 300).height();
        assert_eq!(height(&[]), 0);
        assert_eq!(height(&["reads", "writes"]), row);
        let long = "a name that is longer than any chart is wide, and stands alone in its row";
        assert_eq!(height(&["reads", long, "writes"]), 3 * row);
    }
}
