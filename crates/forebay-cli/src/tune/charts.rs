//! Curves as SVG.

use core::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::svg::{Area, Failure, Legend, colour, document, label};

const WIDTH: u32 = 520;
const HEIGHT: u32 = 320;

/// A chart of curves.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    /// Whether x doubles from mark to mark.
    pub(super) doubles: bool,
    pub(super) curves: Vec<(&'static str, Vec<(f64, f64)>)>,
    /// Places along x that mean something.
    pub(super) marks: Vec<(String, f64)>,
}

/// The chart as an SVG document.
pub(super) fn svg(chart: &Chart) -> Result<String, Failure> {
    let legend = Legend::of(chart.curves.iter().map(|curve| curve.0), WIDTH);
    document((WIDTH, HEIGHT + legend.height()), |area| {
        let (plot, below) = area.split_vertically(HEIGHT);
        draw(&plot, chart)?;
        legend.draw(&below)
    })
}

fn draw(area: &Area<'_>, chart: &Chart) -> Result<(), Failure> {
    let points = || chart.curves.iter().flat_map(|(_, points)| points);
    let along = Axis::over(points().map(|point| point.0), chart.doubles);
    let top = points().map(|point| point.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1;
    let mut context = ChartBuilder::on(area)
        .caption(chart.title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(along, 0.0..top)?;
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(chart.x)
        .y_desc(chart.y)
        .y_label_formatter(&label)
        .label_style(("sans-serif", 12))
        .draw()?;
    for (index, (_, points)) in chart.curves.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        context.draw_series(LineSeries::new(points.iter().copied(), style).point_size(3))?;
    }
    for (place, (name, x)) in chart.marks.iter().enumerate() {
        let height = top * (0.97 - 0.08 * place as f64);
        context.draw_series(DashedLineSeries::new(
            [(*x, 0.0), (*x, top)],
            4,
            4,
            BLACK.mix(0.6).stroke_width(1),
        ))?;
        let style = ("sans-serif", 12).into_font().color(&BLACK);
        context.draw_series([Text::new(format!(" {name}"), (*x, height), style)])?;
    }
    Ok(())
}

/// An axis with equal steps, or one on which each mark is twice the last.
struct Axis {
    range: Range<f64>,
    doubles: bool,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, doubles: bool) -> Self {
        let (least, most) = values
            .fold((f64::MAX, 0.0), |(least, most), x| (f64::min(least, x), f64::max(most, x)));
        let least = if doubles { least.min(most).max(1.0) } else { 0.0 };
        Self { range: least..most.max(least * 2.0).max(1.0), doubles }
    }

    fn part(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        if self.doubles {
            (value.max(start) / start).ln() / (end / start).ln()
        } else {
            (value - start) / (end - start)
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (self.part(*value).clamp(0.0, 1.0) * length) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let most = hint.max_num_points().clamp(2, 8);
        let Range { start, end } = self.range;
        if !self.doubles {
            return (0..=most).map(|step| end * step as f64 / most as f64).collect();
        }
        let all = (end / start).log2().floor() as usize + 1;
        let step = all.div_ceil(most).max(1);
        (0..all).step_by(step).map(|power| start * 2f64.powi(power as i32)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        if self.doubles && *value >= 1024.0 {
            return super::text::size(value.round() as u64).replace("iB", "");
        }
        label(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_that_doubles_has_equal_steps() {
        let axis = Axis::over([512.0, 4_194_304.0].into_iter(), true);
        let places = [512.0, 1024.0, 2048.0].map(|bytes| axis.map(&bytes, (0, 1300)));
        assert_eq!(places, [0, 100, 200]);
        assert_eq!(axis.format_ext(&131_072.0), "128 K");
    }

    #[test]
    fn a_chart_without_points_is_drawn_too() {
        let chart = Chart {
            title: "Nothing",
            x: "x",
            y: "y",
            doubles: true,
            curves: vec![("none", vec![])],
            marks: vec![],
        };
        assert!(svg(&chart).unwrap().contains("Nothing"));
    }
}
