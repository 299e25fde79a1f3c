//! What all charts have in common, and text on pages.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Distinct also to most colour-blind readers (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
];

/// How a page begins; phones show it as wide as they are.
pub(crate) const PAGE_BEGIN: &str = "<!doctype html>\n<html lang=\"en\"><head>\
<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">";

/// The colour of a curve by its place among the others.
pub(crate) fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// What `draw` puts on a white area of this size, as an SVG document.
///
/// # Errors
/// The drawing library failed; it has no reason to.
pub(crate) fn document(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        draw(&area).map_err(|error| error.to_string())?;
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// What the colours of curves mean: their names in rows, to stand below a chart, where they cover
/// none of it.
pub(crate) struct Legend<'a> {
    /// Each with the upper left corner of its place.
    names: Vec<(i32, i32, &'a str)>,
}

impl<'a> Legend<'a> {
    const ROW: i32 = 18;
    const LEFT: i32 = 20;
    /// A coloured rectangle, and room beside it and behind the name.
    const AROUND_NAME: i32 = 40;
    /// Roomy for most fonts of this size.
    const CHARACTER: i32 = 7;

    /// Of curves in this order, in as many rows as a chart of this width needs.
    pub(crate) fn of(names: impl Iterator<Item = &'a str>, width: u32) -> Self {
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
    pub(crate) fn height(&self) -> u32 {
        self.names.last().map_or(0, |(_, y, _)| (y + Self::ROW) as u32)
    }

    /// Draws it on an area of its own.
    ///
    /// # Errors
    /// The drawing library failed; it has no reason to.
    pub(crate) fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        for (place, &(x, y, name)) in self.names.iter().enumerate() {
            let corners = [(x, y + 2), (x + 14, y + 10)];
            area.draw(&Rectangle::new(corners, colour(place).filled()))?;
            let font = ("sans-serif", 12).into_font();
            area.draw(&Text::new(name.to_owned(), (x + 20, y), font))?;
        }
        Ok(())
    }
}

/// 12000000 as 12M.
pub(crate) fn label(value: &f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (*value, ""),
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// Text as it stands on a page.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.25, 950.0, 12_000.0, 1_500_000.0, 2e9].map(|value| label(&value));
        assert_eq!(labels, ["0", "0.25", "950", "12k", "1.5M", "2G"]);
    }
}
