//! Charts as SVG.

mod axis;
mod legend;
mod style;

use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::chart::{Chart, Mark, Scale, Series};
use crate::format::scaled;
use axis::Axis;
use legend::Legend;
pub use style::DrawError;
use style::{Area, colour};

const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
/// The library states colours as attributes, over which a style goes.
const STYLE: &str = ".chart text{paint-order:stroke;stroke:#fff;stroke-width:3px}\
@media screen and (prefers-color-scheme:dark){\
.chart [fill=\"#FFFFFF\"]{fill:#16181b}.chart [fill=\"#000000\"]{fill:#ddd}\
.chart [stroke=\"#000000\"]{stroke:#ddd}.chart text{stroke:#16181b}}";

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, RangedCoordf64>>;

/// The chart as an SVG document.
///
/// # Errors
/// The drawing library failed; it has no reason to.
pub fn svg(chart: &Chart) -> Result<String, DrawError> {
    let legend = Legend::of(&chart.series, WIDTH);
    let mut text = String::new();
    {
        let size = (WIDTH, HEIGHT + legend.height());
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (plot, below) = area.split_vertically(HEIGHT);
        draw(&plot, chart)?;
        legend.draw(&below)?;
        area.present()?;
    }
    Ok(following_the_page(&text))
}

/// The drawing with a dark ground and light lines where that is what its reader prefers, but not on
/// paper.
fn following_the_page(drawn: &str) -> String {
    let begin = drawn.find('>').map_or(0, |end| end + 1);
    let (tag, rest) = drawn.split_at(begin);
    let tag = tag.replacen("<svg", "<svg class=\"chart\"", 1);
    format!("{tag}\n<style>{STYLE}</style>{rest}")
}

fn draw(area: &Area<'_>, chart: &Chart) -> Result<(), DrawError> {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let along = Axis::over(points().map(|point| point.0), chart.scale);
    let across = along.range();
    let up = axis::extent(points().map(|point| point.1).chain([chart.reaches]));
    let top = up.end;
    let mut plane = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(along, up)?;
    plane
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .y_label_formatter(&|value| scaled(*value))
        .label_style(("sans-serif", 15))
        .draw()?;
    for (index, series) in chart.series.iter().enumerate() {
        // what was measured at a few values of x is told from what lies between
        let point_size = if chart.scale == Scale::Doubling { 3 } else { 0 };
        plot(&mut plane, series, colour(index), point_size)?;
    }
    // a run may end before what a mark stands for
    let marks = chart.marks.iter().filter(|(_, x)| across.contains(x));
    for (place, (name, x)) in marks.enumerate() {
        let style = BLACK.mix(0.6).stroke_width(1);
        plane.draw_series(DashedLineSeries::new([(*x, 0.0), (*x, top)], 4, 4, style))?;
        let height = top * (0.97 - 0.08 * place as f64);
        let font = ("sans-serif", 15).into_font().color(&BLACK);
        plane.draw_series([Text::new(format!(" {name}"), (*x, height), font)])?;
    }
    Ok(())
}

fn plot(
    plane: &mut Plane<'_, '_>,
    series: &Series,
    colour: RGBColor,
    point_size: u32,
) -> Result<(), DrawError> {
    let points = series.points.iter().copied();
    let style = colour.stroke_width(2);
    match series.mark {
        Mark::Line => plane.draw_series(LineSeries::new(points, style).point_size(point_size))?,
        Mark::Dashed => plane.draw_series(DashedLineSeries::new(points, 6, 4, style))?,
        Mark::Dots => {
            plane.draw_series(points.map(|point| Circle::new(point, 3, colour.filled())))?
        }
        Mark::Area => {
            plane.draw_series(AreaSeries::new(points, 0.0, colour.mix(0.15)).border_style(style))?
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_dark_where_its_page_is() {
        let chart = Chart::new("x", "x", "y").with("a", Mark::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
        let text = svg(&chart).unwrap();
        let (style, drawn) = text.split_once("</style>").unwrap();
        assert!(style.starts_with("<svg class=\"chart\"") && style.contains("dark"), "{style}");
        // what is drawn in white and black, and nothing else, has another colour then
        for colour in ["fill=\"#FFFFFF\"", "fill=\"#000000\"", "stroke=\"#000000\""] {
            assert!(drawn.contains(colour) && style.contains(&format!("[{colour}]")), "{colour}");
        }
    }

    #[test]
    fn a_mark_beyond_the_points_is_not_drawn() {
        let chart = Chart::new("x", "x", "y").with("a", Mark::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
        let marked = |x| svg(&chart.clone().marked("measured", x)).unwrap();
        assert!(marked(0.5).contains("measured"));
        for x in [2.0, 1e300, -1.0, f64::NAN] {
            assert!(!marked(x).contains("measured"), "{x}");
        }
    }

    #[test]
    fn a_chart_without_points_is_drawn_too() {
        for chart in [Chart::new("Nothing", "x", "y"), Chart::new("Nothing", "x", "y").doubling()] {
            let text = svg(&chart.with("none", Mark::Line, Vec::new())).unwrap();
            assert!(text.starts_with("<svg") && text.contains("Nothing"), "{text}");
        }
    }
}
