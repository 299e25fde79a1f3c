//! Throughput of ingestion, and where its load lies in the region of the disk's model.

use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::Outcome;

use crate::articles::y2022;
use crate::articles::y2022::phases::{
    self, COMPACTION, Disk, INGESTED, NO_SCHEDULER, SCHEDULERS, SchedulerVariant, class,
    mb_per_second, report, seconds, throughput, trace,
};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{job, percent};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-ingestion",
    alias: "S2-11",
    title: "Throughput of ingestion",
    source: y2022::SOURCE,
};

const WRITTEN: [&str; 3] = ["commitlog", "memtable", "compaction-write"];
/// Slices of the run that make one sample of the load.
const PER_SAMPLE: usize = 5;
/// Published by scheduler: MB/s in all.
const OLD_PEAK: f64 = 800.0;
const PUBLISHED: [Option<f64>; 5] = [Some(OLD_PEAK), Some(710.0), None, None, None];

/// MB/s of these jobs together.
fn bandwidth(outcome: &Outcome, jobs: &[&str]) -> Result<f64, String> {
    let each = |name: &&str| Ok(job(outcome, name)?.bandwidth_bytes_per_second as f64 / 1e6);
    jobs.iter().map(each).sum()
}

/// Where a load of MB/s lies: 1 on the edge of the model, less inside.
fn gauge(edge: (f64, f64), written: f64, read: f64) -> f64 {
    written / edge.0 + read / edge.1
}

/// MB/s written and read in each few slices, without the warm-up and the end.
fn sampled(outcome: &Outcome) -> Result<Vec<(f64, f64)>, String> {
    let seconds = trace(outcome)?.slice_nanos as f64 / 1e9;
    let of = |names: &[&str]| {
        let mut sum = vec![0.0; phases::SLICES];
        for name in names {
            for (sum, sample) in sum.iter_mut().zip(&class(outcome, name)?.samples) {
                *sum += mb_per_second(sample, seconds);
            }
        }
        let inner = sum.get(2 * PER_SAMPLE..phases::SLICES - PER_SAMPLE).unwrap_or_default();
        let mean = |slices: &[f64]| slices.iter().sum::<f64>() / slices.len() as f64;
        Ok::<_, String>(inner.chunks(PER_SAMPLE).map(mean).collect::<Vec<_>>())
    };
    Ok(of(&WRITTEN)?.into_iter().zip(of(&COMPACTION[..1])?).collect())
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let mut report = report(scale);
    let mut table = Table::new(
        "MB/s",
        &[
            "disk",
            "scheduler",
            "published",
            "total",
            "reads",
            "writes",
            "of the model",
            "farthest sample",
        ],
    );
    let (run_seconds, _) = seconds(scale);
    for disk in &Disk::both()? {
        let edge = disk.edge_mb();
        let title = format!("Sampled load in the model's region, disk {}", disk.name);
        let mut region = Chart::new(&title, "MB/s written", "MB/s read");
        for (scheduler, published) in SCHEDULERS.iter().zip(PUBLISHED) {
            let outcome = phases::ingestion(seed, disk, scheduler, run_seconds)?;
            let load = (bandwidth(&outcome, &WRITTEN)?, bandwidth(&outcome, &COMPACTION[..1])?);
            let samples = sampled(&outcome)?;
            let farthest = samples
                .iter()
                .map(|&(written, read)| gauge(edge, written, read))
                .fold(0.0, f64::max);
            table.row([
                disk.name.to_owned(),
                scheduler.name.to_owned(),
                published.map_or_else(|| "-".to_owned(), thousands),
                thousands(load.0 + load.1),
                thousands(load.1),
                thousands(load.0),
                percent(gauge(edge, load.0, load.1)),
                percent(farthest),
            ]);
            region = region.with(scheduler.name, Mark::Dots, samples);
            let title = format!("Ingestion, disk {}, {}", disk.name, scheduler.name);
            report.charts.push(throughput(&title, &outcome, &INGESTED)?);
        }
        let edge = vec![(edge.0, 0.0), (0.0, edge.1)];
        report.charts.push(region.with("edge of the model", Mark::Line, edge));
    }
    report.figures = figures(seed, run_seconds)?;
    report.tables.push(table);
    report.tables.push(given_up(seed, run_seconds)?);
    Ok(report)
}

/// On the disk that carries the old peak, which is an input.
fn figures(seed: Seed, run_seconds: u64) -> Result<Vec<Figure>, String> {
    let disk = Disk::peak()?;
    let total = |scheduler| {
        let outcome = phases::ingestion(seed, &disk, scheduler, run_seconds)?;
        bandwidth(&outcome, &INGESTED)
    };
    let open = total(&NO_SCHEDULER)?;
    let each = SCHEDULERS.iter().zip(PUBLISHED.into_iter().flatten());
    each.map(|(scheduler, published)| {
        let name = format!("{}, in all", scheduler.name);
        let figure = Figure::new(name, "MB/s", published, total(scheduler)?);
        Ok(figure.compared_with("no scheduler", open).compared_with("the old peak", OLD_PEAK))
    })
    .collect()
}

/// What the scheduler of 2022 gives up, by when shards look for work.
fn given_up(seed: Seed, run_seconds: u64) -> Result<Table, String> {
    let disk = Disk::surface()?;
    let mut table = Table::new(
        "MB/s on the disk by its surface, by when shards look for work",
        &["", "2018", "2022", "given up"],
    );
    table.row(["published", "800", "710", "11.3 %"].map(str::to_owned));
    for (name, [old, new]) in [
        ("at each event", [SCHEDULERS[0], SCHEDULERS[1]]),
        ("each 0.5 ms", [SCHEDULERS[0].on_ticks(), SCHEDULERS[1].on_ticks()]),
    ] {
        let total = |scheduler: SchedulerVariant| {
            let outcome = phases::ingestion(seed, &disk, &scheduler, run_seconds)?;
            bandwidth(&outcome, &INGESTED)
        };
        let (old, new) = (total(old)?, total(new)?);
        table.row([name.to_owned(), thousands(old), thousands(new), percent(1.0 - new / old)]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    /// Where the samples lie: their mean, and the farthest.
    fn gauges(seed: Seed, disk: &Disk, scheduler: usize) -> (f64, f64) {
        let samples =
            sampled(&phases::ingestion(seed, disk, &SCHEDULERS[scheduler], 3).unwrap()).unwrap();
        let gauges: Vec<f64> = samples
            .into_iter()
            .map(|(written, read)| gauge(disk.edge_mb(), written, read))
            .collect();
        let mean = gauges.iter().sum::<f64>() / gauges.len() as f64;
        (mean, gauges.into_iter().fold(0.0, f64::max))
    }

    #[test]
    fn the_sampled_load_stays_in_the_region_of_the_model_and_fills_it() {
        for seed in seeds() {
            let disk = Disk::line().unwrap();
            for (scheduler, least) in [0.99, 0.95, 0.99, 0.95, 0.79].into_iter().enumerate() {
                let (mean, farthest) = gauges(seed, &disk, scheduler);
                assert!((least..1.001).contains(&mean), "{scheduler}: {mean}");
                // completions come in requests of 128 KiB: 1 % of a sample
                assert!(farthest < 1.02, "{scheduler}: {farthest}");
            }
        }
    }

    #[test]
    fn the_measured_surface_carries_less_than_the_model() {
        for seed in seeds() {
            let (mean, farthest) = gauges(seed, &Disk::surface().unwrap(), 2);
            assert!((0.84..0.885).contains(&mean), "{mean}");
            assert!(farthest < 0.99, "{farthest}");
        }
    }

    #[test]
    fn the_bucket_gives_up_more_where_shards_look_each_half_millisecond() {
        let disk = Disk::surface().unwrap();
        for seed in seeds() {
            let total = |scheduler: &SchedulerVariant| {
                let outcome = phases::ingestion(seed, &disk, scheduler, 3).unwrap();
                bandwidth(&outcome, &INGESTED).unwrap()
            };
            let given_up = 1.0 - total(&SCHEDULERS[1]) / total(&SCHEDULERS[0]);
            let on_ticks =
                1.0 - total(&SCHEDULERS[1].on_ticks()) / total(&SCHEDULERS[0].on_ticks());
            // published is 0.11
            assert!((0.025..0.05).contains(&given_up), "{given_up}");
            assert!((0.035..0.07).contains(&on_ticks), "{on_ticks}");
        }
    }

    #[test]
    fn commitlog_and_memtable_get_their_rate() {
        for seed in seeds() {
            for scheduler in &SCHEDULERS {
                let outcome =
                    phases::ingestion(seed, &Disk::line().unwrap(), scheduler, 3).unwrap();
                for name in ["commitlog", "memtable"] {
                    let got = bandwidth(&outcome, &[name]).unwrap();
                    // 300 arrivals at random
                    assert!((got / 131.0 - 1.0).abs() < 0.06, "{}: {name} {got}", scheduler.name);
                }
            }
        }
    }
}
