//! What all charts have in common, and text on pages.

use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Distinct also to most colour-blind readers (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
];

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
    fn labels_are_short() {
        let labels = [0.0, 0.25, 950.0, 12_000.0, 1_500_000.0, 2e9].map(|value| label(&value));
        assert_eq!(labels, ["0", "0.25", "950", "12k", "1.5M", "2G"]);
    }
}
