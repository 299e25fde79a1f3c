//! A surface and its regions as pictures.

use forebay_report::{HeatCell, HeatLine, HeatMap, Page, stacked};
use forebay_sim::surface::{Cell, Grid};

use crate::fit::Fit;
use crate::goal::{Percentile, time};
use crate::loads::{is_timed, judged_load};
use crate::region::Shape;
use crate::report;

/// Points of a border.
const BORDER_STEPS: usize = 256;

/// What stands on a map.
const MAP_LEGEND: [&str; 1] = ["On the maps each field is a measured load. Its colour is the \
    latency; a hatched field is a load of which the disk did less than 97 %. A cross is an allowed \
    load that breaks the goal (unsafe), a circle a forbidden one that keeps it (rejected). The dotted \
    line is where the goal breaks, the solid line the border of the region."];

/// The heat maps of the fits below each other, as an SVG document.
pub fn svg(surface: &Grid, fits: &[Fit]) -> String {
    stacked(&maps(surface, fits))
}

/// A page that needs nothing alongside it: tables and heat maps of the surface called `name`.
pub fn page(name: &str, surface: &Grid, fits: &[Fit]) -> String {
    let mut page = Page::new(&format!("forebay explore: {name}"));
    page.title(name);
    page.about(&report::measured(surface));
    page.table(&report::table(surface, fits));
    let advice: Vec<String> = report::advice(fits).collect();
    page.list(advice.iter().map(|text| (&**text, true)));
    page.heading("words", "Words");
    report::LEGEND.iter().chain(&MAP_LEGEND).for_each(|entry| page.paragraph(entry));
    page.heading("maps", "Maps");
    let maps: Vec<String> = maps(surface, fits).iter().map(HeatMap::svg).collect();
    page.charts(&maps);
    page.finish()
}

fn maps(surface: &Grid, fits: &[Fit]) -> Vec<HeatMap> {
    fits.iter().enumerate().map(|(index, fit)| map(surface, fit, index)).collect()
}

fn map(surface: &Grid, fit: &Fit, index: usize) -> HeatMap {
    let tiles = Tiles::of(surface);
    let all: Vec<((f64, f64), Option<&Cell>)> = surface.loads_with_cells().collect();
    let percentile = fit.goal.percentile;
    let border = |shape: &Shape| {
        let points = shape.border(fit.figures, BORDER_STEPS);
        vec![points.into_iter().map(|(x, y)| (x / tiles.units[0], y / tiles.units[1])).collect()]
    };
    let line = |name: &str, dashes: &str, width, pieces| HeatLine {
        name: name.to_owned(),
        dashes: dashes.to_owned(),
        width,
        pieces,
    };
    HeatMap {
        id: format!("map-{index}"),
        title: format!("{}: the region, and where it is wrong", fit.goal),
        axes: surface.axes().words().map(|(words, _)| words.to_owned()),
        figure: format!("{} of {}, us", percentile.name(), report::timed(surface)),
        cells: all.iter().map(|&(at, cell)| tiles.tile(fit, at, cell)).collect(),
        lines: vec![
            line("border of the region", "", 2.5, border(&fit.shape)),
            line("straight line", "7 5", 2.0, border(&Shape::LINE)),
            line("goal", "2 3", 2.0, tiles.contour(fit, &all)),
        ],
        marks: ["unsafe: allowed, and breaks the goal", "rejected: forbidden, and keeps it"]
            .map(str::to_owned),
    }
}

/// The part of the map that stands for each load: half of the way to the next ones.
struct Tiles<'a> {
    writes: Vec<f64>,
    reads: Vec<f64>,
    surface: &'a Grid,
    /// Of figures along the axes.
    units: [f64; 2],
}

impl<'a> Tiles<'a> {
    fn of(surface: &'a Grid) -> Self {
        let units = surface.axes().words().map(|(_, unit)| unit);
        let [writes, reads] = [surface.axis(|load| load.0), surface.axis(|load| load.1)];
        Self { writes, reads, surface, units }
    }

    /// The tile of a load, in the units of the axes.
    fn sides(&self, at: (f64, f64)) -> ((f64, f64), (f64, f64)) {
        let in_unit = |(from, to): (f64, f64), unit: f64| (from / unit, to / unit);
        let [x, y] = self.units;
        (in_unit(around(&self.writes, at.0), x), in_unit(around(&self.reads, at.1), y))
    }

    fn tile(&self, fit: &Fit, at: (f64, f64), cell: Option<&Cell>) -> HeatCell {
        let (x, y) = self.sides(at);
        let judged = judged_load(at, cell, fit.figures, fit.goal);
        let wrong = judged.filter(|load| is_timed(self.surface, (load.write, load.read)));
        let mark = wrong.and_then(|load| match (fit.shape.allows(&load), load.safe) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            _ => None,
        });
        let value = cell.and_then(|cell| fit.goal.percentile.of(cell));
        HeatCell { x, y, value, mark, note: note(self.surface, at, cell) }
    }

    /// Where tiles that keep the goal end, as far as what is alongside them is known.
    fn contour(&self, fit: &Fit, all: &[((f64, f64), Option<&Cell>)]) -> Vec<Vec<(f64, f64)>> {
        let keeps = |at: (f64, f64)| {
            let &(_, cell) = all.iter().find(|(other, _)| *other == at)?;
            let judged = judged_load(at, cell, fit.figures, fit.goal);
            Some(judged.is_some_and(|load| load.safe))
        };
        let ends = |one: Option<bool>, other: Option<(f64, f64)>| {
            let other = other.map_or(Some(false), &keeps);
            one.zip(other).is_some_and(|(one, other)| one != other)
        };
        let mut pieces = Vec::new();
        for (i, &write) in self.writes.iter().enumerate() {
            for (j, &read) in self.reads.iter().enumerate() {
                let inside = keeps((write, read));
                let ((left, right), (bottom, top)) = self.sides((write, read));
                if ends(inside, self.writes.get(i + 1).map(|&next| (next, read))) {
                    pieces.push(vec![(right, bottom), (right, top)]);
                }
                if ends(inside, self.reads.get(j + 1).map(|&next| (write, next))) {
                    pieces.push(vec![(left, top), (right, top)]);
                }
            }
        }
        pieces
    }
}

/// From half of the way to the one before to half of the way to the one after.
fn around(axis: &[f64], value: f64) -> (f64, f64) {
    let place = axis.iter().take_while(|&&other| other < value).count();
    let before = place.checked_sub(1).map_or(value, |before| axis[before]);
    let after = axis.get(place + 1).copied().unwrap_or(value);
    ((before + value) / 2.0, (value + after) / 2.0)
}

fn note(surface: &Grid, at: (f64, f64), cell: Option<&Cell>) -> String {
    let [(x, of_x), (y, of_y)] = surface.axes().words();
    let load = format!("{:.0} {x}, {:.0} {y}", at.0 / of_x, at.1 / of_y);
    let Some(cell) = cell else { return format!("{load}: missed") };
    let known = Percentile::ALL.into_iter().filter_map(|percentile| {
        let bound = if percentile.is_bound(cell) { "at least " } else { "" };
        Some(format!("{} {bound}{}", percentile.name(), time(percentile.of(cell)?)))
    });
    format!("{load}: {}", known.collect::<Vec<_>>().join(", "))
}
