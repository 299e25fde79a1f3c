//! Fits, for people and for programs.

use forebay_report::{Table, paragraph, scaled};
use forebay_sim::surface::Grid;
use serde::Serialize;

use crate::fit::{Fit, Kind};
use crate::goal::Goal;
use crate::quality::Quality;
use crate::region::{Power, Shape};

/// Version of the JSON.
const VERSION: u32 = 1;

/// All fits of a surface, for programs.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    surface: String,
    cells: usize,
    missed: usize,
    write_bandwidth: f64,
    read_iops: f64,
    fits: Vec<FitReport>,
}

#[derive(Debug, Serialize)]
struct FitReport {
    goal: String,
    region: RegionReport,
    over: f64,
    waste: f64,
    line: Quality,
    poor: bool,
}

#[derive(Debug, Serialize)]
struct RegionReport {
    kind: &'static str,
    /// Of a region given by a formula.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_bandwidth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_iops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exponent: Option<f64>,
    radii: Vec<u32>,
}

impl Report {
    /// The report on the surface `grid` called `surface`.
    pub fn new(surface: &str, grid: &Grid, fits: &[Fit]) -> Self {
        let (cells, missed) = (grid.cells().len(), grid.missed().len());
        let figures = fits.first().map(|fit| fit.figures);
        Self {
            version: VERSION,
            surface: surface.to_owned(),
            cells,
            missed,
            write_bandwidth: figures.map_or(0.0, |figures| figures.write_bandwidth),
            read_iops: figures.map_or(0.0, |figures| figures.read_iops),
            fits: fits.iter().map(FitReport::of).collect(),
        }
    }
}

impl FitReport {
    fn of(fit: &Fit) -> Self {
        let power = match fit.shape {
            Shape::Power(power) => Some(power),
            Shape::Radii(_) => None,
        };
        let region = RegionReport {
            kind: name(fit.kind),
            write_bandwidth: power.map(|power| power.write * fit.figures.write_bandwidth),
            read_iops: power.map(|power| power.read * fit.figures.read_iops),
            exponent: power.map(|power| power.exponent),
            radii: fit.shape.table().to_vec(),
        };
        let Quality { over, waste } = fit.quality;
        let goal = fit.goal.to_string();
        Self { goal, region, over, waste, line: fit.line, poor: fit.is_poor() }
    }
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Line => "line",
        Kind::Power => "power",
        Kind::Radii { .. } => "radii",
        Kind::Safe => "safe",
    }
}

/// The fits as a table, and what is to be said of them.
pub fn text(surface: &str, grid: &Grid, fits: &[Fit]) -> String {
    let mut table = table(fits);
    table.title = format!("Regions of {surface}");
    let mut text = format!("{table}\n");
    paragraph(&mut text, "", &measured(grid));
    paragraph(&mut text, "", LEGEND);
    for advice in advice(fits) {
        paragraph(&mut text, "", &advice);
    }
    text
}

/// What of the surface was measured.
pub(crate) fn measured(grid: &Grid) -> String {
    let (cells, missed) = (grid.cells().len(), grid.missed().len());
    let mut text = format!("{cells} loads measured, {missed} missed by more than 3 %.");
    if !grid.is_matrix() {
        text += " They lie where a goal begins to break; those between are taken from what is \
                 around them, also where the fit is judged.";
    }
    text
}

/// What the columns mean.
pub(crate) const LEGEND: &str = "over: of the loads that the region allows, those that break the goal; waste: of the loads \
     that keep it, those that it forbids; both on loads left out of the fit. line: the straight \
     line between the most reads and the most writes. The last columns are what the region allows \
     of reads alone, of both in equal disk time, and of writes beside a few reads.";

pub(crate) fn table(fits: &[Fit]) -> Table {
    let columns = [
        "goal",
        "region",
        "over",
        "waste",
        "line: over",
        "waste",
        "reads/s",
        "half and half",
        "writes MB/s",
    ];
    let mut table = Table::new("", &columns);
    for fit in fits {
        let [reads, mixed, writes] = [0.0, 0.5, 1.0].map(|part| {
            let radius = fit.shape.radius(part);
            let bytes = radius * part * fit.figures.write_bandwidth;
            (bytes, radius * (1.0 - part) * fit.figures.read_iops)
        });
        let megabytes = |bytes: f64| format!("{:.0}", bytes / 1e6);
        table.row([
            fit.goal.to_string(),
            words(fit),
            percent(fit.quality.over),
            percent(fit.quality.waste),
            percent(fit.line.over),
            percent(fit.line.waste),
            scaled(reads.1.round()),
            format!("{} + {}", scaled(mixed.1.round()), megabytes(mixed.0)),
            megabytes(writes.0),
        ]);
    }
    table
}

/// What is to be said of regions that do not fit well.
pub(crate) fn advice(fits: &[Fit]) -> impl Iterator<Item = String> {
    fits.iter().filter(|fit| fit.is_poor()).map(poor)
}

fn poor(fit: &Fit) -> String {
    let goal: Goal = fit.goal;
    if fit.kind == Kind::Safe {
        return format!(
            "{goal}: no region fits this disk well. What is given allows no load that was seen to \
             break the goal; ask for a longer latency to use more of the disk."
        );
    }
    format!(
        "{goal}: no region fits this disk well, since loads inside of it break the goal too: the \
         one given is the least wrong. Ask for a longer latency."
    )
}

fn words(fit: &Fit) -> String {
    match &fit.shape {
        Shape::Power(Power { exponent, .. }) if fit.kind == Kind::Power => {
            format!("p = {exponent:.2}")
        }
        Shape::Radii(radii) if fit.kind != Kind::Safe => format!("{} radii", radii.len()),
        _ => name(fit.kind).to_owned(),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
