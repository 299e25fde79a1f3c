//! Charts as SVG.

use core::ops::Range;

use forebay_sim::experiments::{Chart, Mark, Series};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::svg::{Area, Failure, Legend, colour, document, label};

const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
type Plane<'a> = Cartesian2d<RangedCoordf64, RangedCoordf64>;

/// The chart as an SVG document.
///
/// # Errors
/// The drawing library failed; it has no reason to.
pub(super) fn svg(chart: &Chart) -> Result<String, Failure> {
    let legend = Legend::of(chart.series.iter().map(|series| &*series.name), WIDTH);
    document((WIDTH, HEIGHT + legend.height()), |area| {
        let (plot, below) = area.split_vertically(HEIGHT);
        draw(&plot, chart)?;
        legend.draw(&below)
    })
}

fn draw(area: &Area<'_>, chart: &Chart) -> Result<(), Failure> {
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(extent(chart, |point| point.0), extent(chart, |point| point.1))?;
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .label_style(("sans-serif", 13))
        .draw()?;
    for (index, series) in chart.series.iter().enumerate() {
        plot(&mut context, series, colour(index))?;
    }
    Ok(())
}

fn plot<'a>(
    context: &mut ChartContext<'_, SVGBackend<'a>, Plane<'a>>,
    series: &Series,
    colour: RGBColor,
) -> Result<(), Failure> {
    let points = series.points.iter().copied();
    let style = colour.stroke_width(2);
    match series.mark {
        Mark::Line => context.draw_series(LineSeries::new(points, style))?,
        Mark::Dashed => context.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
        Mark::Dots => {
            context.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?
        }
        Mark::Area => context
            .draw_series(AreaSeries::new(points, 0.0, colour.mix(0.15)).border_style(style))?,
    };
    Ok(())
}

/// From zero, or from the least value if that is below, to a little beyond the
/// greatest.
fn extent(chart: &Chart, of: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
    let values = chart.series.iter().flat_map(|series| &series.points).map(of);
    let (least, greatest) = values
        .filter(|value| value.is_finite())
        .fold((0.0_f64, 0.0_f64), |(least, greatest), value| {
            (least.min(value), greatest.max(value))
        });
    let greatest = if greatest > least { greatest } else { least + 1.0 };
    least..greatest + (greatest - least) * 0.05
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_without_points_is_drawn_too() {
        let chart = Chart::new("Nothing", "x", "y").with("none", Mark::Line, Vec::new());
        let text = svg(&chart).unwrap();
        assert!(text.starts_with("<svg") && text.contains("Nothing"), "{text}");
    }
}
