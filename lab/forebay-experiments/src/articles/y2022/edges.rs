//! What a disk serves of reads alongside writes: the edges of a published surface, and of a simulated disk.

use core::time::Duration;
use std::collections::BTreeMap;

use forebay_config::Source;
use forebay_core::Policy;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use forebay_sim::spec::DiskSpec;
use forebay_sim::surface::Grid;

use super::preset;
use crate::experiment::{Seed, Setting};
use crate::figure::{Figure, PublishedRange, thousands};
use crate::report::Report;
use crate::scenario::{job, jobs, run as simulate, side_by_side};

/// Requests of 128 KiB that diskplorer has under way.
const WRITE_FIBERS: u64 = 4;
const WRITE: f64 = 131_072.0;
const SHARDS: u32 = 4;
const READ_FIBERS: u64 = 100;
/// Read rates that are tried, up to the highest, as diskplorer does.
const STEPS: u64 = 20;
/// A load is carried if this part of what is due is done: diskplorer leaves other cells blank.
const CARRIED: f64 = 0.97;

/// The disk that is fitted to the whole surface is compared at each this many rows.
const COMPARED_EACH: usize = 10;

/// The most that is carried, and with a 95th percentile of at most this many microseconds.
pub(crate) const EDGES: [(&str, f64); 3] =
    [("carried", f64::INFINITY), ("within 5 ms", 5000.0), ("within 1 ms", 1000.0)];

/// A published surface.
pub(crate) struct Published {
    /// From one read rate to the next.
    pub(crate) step: f64,
    /// MB/s of writes, and the reads per second at each of [`EDGES`].
    pub(crate) rows: Vec<(f64, [f64; 3])>,
}

impl Published {
    pub(crate) fn parse(csv: &str) -> Result<Self, String> {
        let grid = Grid::parse_csv("surface.csv", csv).map_err(|error| error.to_string())?;
        let rates = grid.axis(|(_, reads)| reads);
        let step = rates.into_iter().find(|&reads| reads > 0.0).ok_or("no reads were measured")?;
        let row = |writes: f64| {
            let cells = grid.cells().iter().filter(move |cell| cell.write_bandwidth == writes);
            let most = EDGES.map(|(_, bound)| {
                let kept = cells
                    .clone()
                    .filter(|cell| bound.is_infinite() || (cell.p95_us <= bound && !cell.clipped));
                kept.map(|cell| cell.read_iops).fold(0.0, f64::max)
            });
            (writes / 1e6, most)
        };
        let rows = grid.axis(|(writes, _)| writes).into_iter().map(row).collect();
        Ok(Self { step, rows })
    }

    /// MB/s of writes alone, and reads per second alone.
    pub(crate) fn maxima(&self) -> (f64, f64) {
        (self.rows.last().map_or(0.0, |row| row.0), self.step * STEPS as f64)
    }

    /// The edges of this disk alongside the same writes.
    fn simulate(
        &self,
        seed: Seed,
        disk: &DiskSpec,
        writes: &[f64],
        millis: u64,
    ) -> Result<Vec<[f64; 3]>, String> {
        side_by_side(writes, |&writes| edges(seed, disk, (writes, self.step), millis))
    }

    fn figures(&self, ours: &[[f64; 3]]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (row, ((writes, published), ours)) in self.rows.iter().zip(ours).enumerate() {
            for (&(edge, _), (published, ours)) in EDGES.iter().zip(published.iter().zip(ours)) {
                // what was published comes in steps too
                let range = PublishedRange::in_steps(*published / 1e3, self.step / 1e3);
                let name = format!("alongside {writes:.0} MB/s of writes, {edge}");
                let figure = Figure::new(name, "thousand reads/s", range, ours / 1e3);
                figures.push(figure.at(edge, row, self.rows.len()));
            }
        }
        figures
    }

    fn table(&self, of_dies: &[[f64; 3]], of_surface: &[[f64; 3]]) -> Table {
        let mut table = Table::new(
            "Most thousand reads/s: published / disk of dies / disk by its surface (steps of 5 %)",
            &["MB/s of writes", "line", "carried", "p95 within 5 ms", "p95 within 1 ms"],
        );
        let reads = |reads: f64| if reads > 0.0 { thousands(reads) } else { "none".to_owned() };
        for (row, ((writes, edges), of_dies)) in self.rows.iter().zip(of_dies).enumerate() {
            let of_surface =
                if row % COMPARED_EACH == 0 { of_surface.get(row / COMPARED_EACH) } else { None };
            let cell = |at: usize| {
                let surface =
                    of_surface.map_or_else(|| "-".to_owned(), |edges| reads(edges[at] / 1e3));
                format!("{} / {} / {surface}", reads(edges[at] / 1e3), reads(of_dies[at] / 1e3))
            };
            let (most_writes, most_reads) = self.maxima();
            let line = thousands(most_reads / 1e3 * (1.0 - writes / most_writes));
            table.row([thousands(*writes), line, cell(0), cell(1), cell(2)]);
        }
        table
    }

    fn chart(&self, ours: &[[f64; 3]]) -> Chart {
        let title = "Most reads alongside writes";
        let mut chart = Chart::new(title, "MB/s of writes", "thousand reads/s");
        let line = |rows: &[[f64; 3]], at: usize| -> Vec<(f64, f64)> {
            let reads = rows.iter().map(|edges| edges[at] / 1e3);
            self.rows.iter().map(|row| row.0).zip(reads).collect()
        };
        let published: Vec<[f64; 3]> = self.rows.iter().map(|row| row.1).collect();
        for (at, (name, _)) in EDGES.into_iter().enumerate() {
            chart = chart.with(&format!("published, {name}"), Mark::Dots, line(&published, at));
            chart = chart.with(&format!("disk of dies, {name}"), Mark::Line, line(ours, at));
        }
        let (writes, reads) = self.maxima();
        chart.with("line", Mark::Dashed, vec![(0.0, reads / 1e3), (writes, 0.0)])
    }
}

pub(crate) fn disk(text: &str) -> Result<DiskSpec, String> {
    DiskSpec::parse(&Source::new("disk", text)).map_err(|error| error.to_string())
}

/// A published surface, a disk that is fitted to its first and last row, and one fitted to all of it.
pub(crate) struct Compared {
    pub(crate) csv: &'static str,
    pub(crate) dies: &'static str,
    /// The second in words.
    pub(crate) made_of: &'static str,
    pub(crate) preset: &'static str,
}

impl Compared {
    pub(crate) fn report(&self, Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
        let millis = scale.seconds(150, 1000);
        let mut report = Report::default();
        report.parameter("disk of dies", self.made_of);
        let preset_name = self.preset;
        report.parameter("disk by its surface", format!("preset {preset_name}: fitted to all"));
        report.parameter(
            "load",
            "Poisson reads of 512 bytes, and 128 KiB writes, at most four at a time, as \
             diskplorer has them; no scheduler",
        );
        report.parameter("carried", "97 % of what is due, of reads and of writes");
        report.parameter("measured", format!("{millis} ms for each load, after 20 ms"));
        let published = Published::parse(self.csv)?;
        let writes: Vec<f64> = published.rows.iter().map(|row| row.0).collect();
        let of_dies = published.simulate(seed, &disk(self.dies)?, &writes, millis)?;
        let compared: Vec<f64> = writes.into_iter().step_by(COMPARED_EACH).collect();
        let of_surface = published.simulate(seed, &preset(preset_name)?, &compared, millis)?;
        report.figures = published.figures(&of_dies);
        report.tables.push(published.table(&of_dies, &of_surface));
        report.charts.push(published.chart(&of_dies));
        Ok(report)
    }
}

/// The median and 95th percentile of the reads in microseconds under this load, if the disk carries it.
pub(crate) fn latencies(
    seed: Seed,
    disk: &DiskSpec,
    reads_rps: u64,
    writes_mb: f64,
    millis: u64,
) -> Result<Option<(f64, f64)>, String> {
    let writes_rps = (writes_mb * 1e6 / WRITE / WRITE_FIBERS as f64).round() as u64;
    let mut text = format!(
        "- {{name: reads, type: randread, shards: all, options: {{pause_distribution: poisson}},
   shard_info: {{parallelism: {READ_FIBERS}, rps: {reads_rps}, reqsize: 512}}}}\n"
    );
    if writes_mb > 0.0 {
        text.push_str(&format!(
            "- {{name: writes, type: append, shards: [0],
   shard_info: {{parallelism: {WRITE_FIBERS}, rps: {writes_rps}, reqsize: 128kB}}}}\n"
        ));
    }
    let mut config = seed.config(jobs(&text, SHARDS)?, disk.build(seed.0), millis);
    config.warmup = Duration::from_millis(20);
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let carried = |name| {
        let job = job(&outcome, name)?;
        let due = (job.requests + job.unfinished) as f64;
        Ok::<bool, String>(job.requests as f64 >= CARRIED * due)
    };
    let carries = (writes_mb == 0.0 || carried("writes")?) && carried("reads")?;
    let reads = &job(&outcome, "reads")?.latency_us;
    Ok(carries.then_some((reads.p50, reads.p95)))
}

/// For each of [`EDGES`] the most reads per second alongside this many MB/s of writes, in such steps.
pub(crate) fn edges(
    seed: Seed,
    disk: &DiskSpec,
    (writes_mb, of_step): (f64, f64),
    millis: u64,
) -> Result<[f64; 3], String> {
    let fibers = u64::from(SHARDS) * READ_FIBERS;
    let mut tried: BTreeMap<u64, Option<f64>> = BTreeMap::new();
    let mut most = [0.0; 3];
    for (most, (_, bound)) in most.iter_mut().zip(EDGES) {
        let is_kept = |p95: Option<f64>| p95.is_some_and(|p95| p95 <= bound);
        // the steps that were tried for a looser bound
        let first_lost = tried.iter().find(|&(_, &p95)| !is_kept(p95));
        let mut lost = first_lost.map_or(STEPS + 1, |(&step, _)| step);
        let mut kept = tried.range(..lost).next_back().map_or(0, |(&step, _)| step);
        while lost - kept > 1 {
            let step = u64::midpoint(kept, lost);
            let reads = (of_step * step as f64) as u64 / fibers;
            let p95 = latencies(seed, disk, reads, writes_mb, millis)?.map(|(_, p95)| p95);
            tried.insert(step, p95);
            if is_kept(p95) {
                kept = step;
            } else {
                lost = step;
            }
        }
        *most = of_step * kept as f64;
    }
    Ok(most)
}
