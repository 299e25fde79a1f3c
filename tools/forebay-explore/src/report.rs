//! Fits, for people and for programs.

use forebay_report::{Table, paragraph, scaled};
use forebay_sim::surface::{Cell, Grid};
use serde::Serialize;

use crate::error::Error;
use crate::fit::{Fit, Kind, Quality};
use crate::goal::{Goal, Percentile, time};
use crate::loads::is_timed;
use crate::region::{Power, Shape};

/// Version of the JSON.
const VERSION: u32 = 1;

/// All fits of a surface, for programs.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    surface: String,
    /// Of which requests the latencies are.
    latency_of: &'static str,
    /// What lies along the axes, as the columns of its CSV file are called.
    axes: [&'static str; 2],
    cells: usize,
    missed: usize,
    write_bandwidth: f64,
    read_iops: f64,
    fits: Vec<FitReport>,
    /// Why other goals have no region.
    unmet: Vec<String>,
    /// What in the surface is not as expected.
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FitReport {
    goal: String,
    region: RegionReport,
    #[serde(rename = "over")]
    unsafe_allowed: f64,
    #[serde(rename = "waste")]
    safe_rejected: f64,
    line: Quality,
    poor: bool,
    #[serde(rename = "worthless")]
    unusable: bool,
    unbounded: bool,
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
    /// The report on the surface `grid` called `surface`; `unmet` says why other goals have no
    /// region.
    pub fn new(surface: &str, grid: &Grid, fits: &[Fit], unmet: &[Error]) -> Self {
        let (cells, missed) = (grid.cells().len(), grid.missed().len());
        let figures = fits.first().map(|fit| fit.figures);
        Self {
            version: VERSION,
            surface: surface.to_owned(),
            latency_of: timed(grid),
            axes: grid.axes().columns(),
            cells,
            missed,
            write_bandwidth: figures.map_or(0.0, |figures| figures.write_bandwidth),
            read_iops: figures.map_or(0.0, |figures| figures.read_iops),
            fits: fits.iter().map(FitReport::of).collect(),
            unmet: unmet.iter().map(ToString::to_string).collect(),
            remarks: grid.remarks().to_vec(),
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
        let Quality { unsafe_allowed, safe_rejected } = fit.quality;
        let goal = fit.goal.to_string();
        Self {
            goal,
            region,
            unsafe_allowed,
            safe_rejected,
            line: fit.line,
            poor: fit.is_poor(),
            unusable: fit.is_unusable(),
            unbounded: fit.is_unbounded,
        }
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

/// The fits as a table, and what is to be said of them; `remarks` stand below.
pub fn text(surface: &str, grid: &Grid, fits: &[Fit], remarks: &[String]) -> String {
    let mut text = String::new();
    if !fits.is_empty() {
        let mut table = table(grid, fits);
        table.title = format!("Regions of {surface}");
        text += &format!("{table}\n");
    }
    paragraph(&mut text, "", &measured(grid));
    if !fits.is_empty() {
        LEGEND.iter().for_each(|entry| paragraph(&mut text, "", entry));
    }
    for advice in advice(fits).chain(remarks.iter().cloned()) {
        paragraph(&mut text, "", &advice);
    }
    text
}

/// Of which requests the latencies are.
pub(crate) fn timed(surface: &Grid) -> &'static str {
    if surface.is_of_writes() { "writes" } else { "reads" }
}

/// What of the surface was measured, and what reads take in it at least.
pub(crate) fn measured(grid: &Grid) -> String {
    let (cells, missed) = (grid.cells().len(), grid.missed().len());
    let loads = if cells == 1 { "load" } else { "loads" };
    let mut text = format!("{cells} {loads} measured, {missed} missed by more than 3 %.");
    if !grid.is_matrix() {
        text += " They lie where a goal begins to break; loads in between are interpolated from \
                 their neighbours, also where the fit is judged.";
    }
    let timed_too = |cell: &&Cell| is_timed(grid, (cell.write_bandwidth, cell.read_iops));
    let with_reads = || grid.cells().iter().filter(timed_too);
    let load = |cell: &&Cell| cell.write_bandwidth + cell.read_iops;
    if let Some(lightest) = with_reads().min_by(|one, other| load(one).total_cmp(&load(other))) {
        let known = Percentile::ALL.into_iter().filter_map(|percentile| {
            Some(format!("{} {}", percentile.name(), time(percentile.of(lightest)?)))
        });
        let known = known.collect::<Vec<_>>().join(", ");
        text += &format!(" Under the lightest load with {0}, {0} take {known}.", timed(grid));
    }
    for remark in grid.remarks() {
        text += &format!(" {remark}");
    }
    text
}

/// What the words of table and maps mean.
pub(crate) const LEGEND: [&str; 4] = [
    "goal: a percentile of the latency of reads, or of writes where stated, and its maximum. A \
     load keeps it or breaks it. region: the loads that the scheduler allows: `p = N` has the \
     border (writes/a)^p + (reads/b)^p = 1, which is straight for p = 1, bends towards the origin \
     below 1, and away from it above 1; `N radii` is drawn through N points; `safe` allows no \
     measured load that breaks the goal.",
    "unsafe: the part of the allowed loads that break the goal. rejected: the part of the loads within \
     the goal that the region forbids. Both are counted on loads left out of the fit.",
    "line: the straight line between the highest rates of reads and of writes, which the \
     scheduler assumes for a disk without a region.",
    "The last columns are the rates that the region allows: of reads alone, of both in equal disk \
     time, and of writes alongside a few reads.",
];

pub(crate) fn table(surface: &Grid, fits: &[Fit]) -> Table {
    let [(of_writes, x), (of_reads, y)] = surface.axes().words();
    let columns = [
        "goal",
        "region",
        "unsafe",
        "rejected",
        "line: unsafe",
        "rejected",
        of_reads,
        "half and half",
        of_writes,
    ];
    let mut table = Table::new("", &columns);
    for fit in fits {
        let [reads, mixed, writes] = [0.0, 0.5, 1.0].map(|part| {
            let radius = fit.shape.radius(part);
            let bytes = radius * part * fit.figures.write_bandwidth;
            (bytes, radius * (1.0 - part) * fit.figures.read_iops)
        });
        let reads = [reads, mixed].map(|load| scaled((load.1 / y).round()));
        let writes = [mixed, writes].map(|load| format!("{:.0}", load.0 / x));
        table.row([
            fit.goal.to_string(),
            words(fit),
            percent(fit.quality.unsafe_allowed),
            percent(fit.quality.safe_rejected),
            percent(fit.line.unsafe_allowed),
            percent(fit.line.safe_rejected),
            reads[0].clone(),
            format!("{} + {}", reads[1], writes[0]),
            writes[1].clone(),
        ]);
    }
    table
}

/// What is to be said of regions that do not fit well, or say nothing.
pub(crate) fn advice(fits: &[Fit]) -> impl Iterator<Item = String> {
    fits.iter().filter_map(|fit| match fit {
        fit if fit.is_unusable() => Some(unusable_warning(fit)),
        fit if fit.is_poor() => Some(poor(fit)),
        fit if fit.is_unbounded => Some(format!(
            "{}: every measured load keeps it, so the region ends where the measurement does, and \
             higher loads are unknown. Use a shorter latency.",
            fit.goal
        )),
        _ => None,
    })
}

/// Why a region is unusable.
pub fn unusable_warning(fit: &Fit) -> String {
    let Quality { unsafe_allowed, safe_rejected } = fit.quality;
    format!(
        "{}: the region is unusable, and is not written to forebay.yaml: {} of the loads that it \
         allows break the goal, and it forbids {} of those that keep it. Use a longer latency.",
        fit.goal,
        percent(unsafe_allowed),
        percent(safe_rejected)
    )
}

fn poor(fit: &Fit) -> String {
    let goal: Goal = fit.goal;
    if fit.kind == Kind::Safe {
        return format!(
            "{goal}: no region fits this disk well. This one allows no measured load that breaks \
             the goal; use a longer latency to use more of the disk."
        );
    }
    format!(
        "{goal}: no region fits this disk well, since loads inside of it break the goal too: this \
         one is the least wrong. Use a longer latency."
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
