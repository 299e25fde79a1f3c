//! Charts as SVG.

use core::ops::Range;

use forebay_sim::experiments::{Chart, Mark, Series};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
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

type Plane<'a> = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure = Box<dyn std::error::Error>;

/// The chart as an SVG document.
///
/// # Errors
/// The drawing library failed; it has no reason to.
pub(super) fn svg(chart: &Chart) -> Result<String, Failure> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        draw(&area, chart).map_err(|error| error.to_string())?;
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn draw(area: &Area<'_>, chart: &Chart) -> Result<(), Failure> {
    area.fill(&WHITE)?;
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
        let colour = COLOURS[index % COLOURS.len()];
        plot(&mut context, series, colour)?;
    }
    context
        .configure_series_labels()
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    Ok(())
}

fn plot<'a>(
    context: &mut ChartContext<'_, SVGBackend<'a>, Plane<'a>>,
    series: &Series,
    colour: RGBColor,
) -> Result<(), Failure> {
    let points = series.points.iter().copied();
    let drawn = match series.mark {
        Mark::Line => context.draw_series(LineSeries::new(points, colour.stroke_width(2)))?,
        Mark::Dashed => {
            context.draw_series(DashedLineSeries::new(points, 6, 4, colour.stroke_width(2)))?
        }
        Mark::Dots => {
            context.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?
        }
        Mark::Area => context.draw_series(
            AreaSeries::new(points, 0.0, colour.mix(0.15)).border_style(colour.stroke_width(2)),
        )?,
    };
    drawn
        .label(&series.name)
        .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], colour.filled()));
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

/// 12000000 as 12M.
fn label(value: &f64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.25, 950.0, 12_000.0, 1_500_000.0, 2e9].map(|value| label(&value));
        assert_eq!(labels, ["0", "0.25", "950", "12k", "1.5M", "2G"]);
    }

    #[test]
    fn a_chart_without_points_is_drawn_too() {
        let chart = Chart::new("Nothing", "x", "y").with("none", Mark::Line, Vec::new());
        let text = svg(&chart).unwrap();
        assert!(text.starts_with("<svg") && text.contains("Nothing"), "{text}");
    }
}
