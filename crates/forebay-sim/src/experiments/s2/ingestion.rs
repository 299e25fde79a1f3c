//! Throughput of ingestion, and where its load lies in the region of the disk's model.

use super::phases::{
    self, COMPACTION, EDGE_MB, INGESTED, Report, WAYS, class, mb_per_second, report, seconds,
    throughput, trace,
};
use crate::experiments::scenario::{job, percent, thousands};
use crate::experiments::{Chart, Mark, Scale, Table};
use crate::simulation::Outcome;

const WRITTEN: [&str; 3] = ["commitlog", "memtable", "compaction-write"];
/// Slices of the run that make one sample of the load.
const PER_SAMPLE: usize = 5;
/// Published by scheduler: MB/s in all.
const PUBLISHED: [&str; 4] = ["800 (4.6)", "710 (5.0)", "-", "-"];

/// MB/s of these jobs together.
fn bandwidth(outcome: &Outcome, jobs: &[&str]) -> Result<f64, String> {
    let each = |name: &&str| Ok(job(outcome, name)?.bandwidth_bytes_per_second as f64 / 1e6);
    jobs.iter().map(each).sum()
}

/// Where a load lies: 1 on the edge of the model, less inside.
fn gauge((written, read): (f64, f64)) -> f64 {
    written / EDGE_MB.0 + read / EDGE_MB.1
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

/// S2-11.
pub(super) fn run(scale: Scale) -> Result<Report, String> {
    let mut report = report(
        scale,
        "Ingestion uses the disk up to the edge of its model and not beyond; the cost of 2022, \
         which charges both the operation and the bytes, stays short of it.",
        "The article's new scheduler gave up 11 % of the throughput, the cost of 2022 alone gives \
         up 3 % here. The loads differ (how much compaction read and wrote is not published), and \
         so do the disks: this one does mixed loads as well as the straight line says, an i3 less.",
    );
    let mut table = Table::new(
        "MB/s",
        &["scheduler", "published", "total", "reads", "writes", "of the model", "farthest sample"],
    );
    let mut region = Chart::new("Sampled load in the model's region", "MB/s written", "MB/s read");
    let (run_seconds, _) = seconds(scale);
    for (way, published) in WAYS.iter().zip(PUBLISHED) {
        let outcome = phases::ingestion(way, run_seconds)?;
        let load = (bandwidth(&outcome, &WRITTEN)?, bandwidth(&outcome, &COMPACTION[..1])?);
        let samples = sampled(&outcome)?;
        let farthest = samples.iter().map(|&sample| gauge(sample)).fold(0.0, f64::max);
        table.row([
            way.name.to_owned(),
            published.to_owned(),
            thousands(load.0 + load.1),
            thousands(load.1),
            thousands(load.0),
            percent(gauge(load)),
            percent(farthest),
        ]);
        region = region.with(way.name, Mark::Dots, samples);
        report.charts.push(throughput(&format!("Ingestion, {}", way.name), &outcome, &INGESTED)?);
    }
    let edge = vec![(EDGE_MB.0, 0.0), (0.0, EDGE_MB.1)];
    report.charts.push(region.with("edge of the model", Mark::Line, edge));
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sampled_load_stays_in_the_region_of_the_model_and_fills_it() {
        for (way, least) in WAYS.iter().zip([0.99, 0.95, 0.99, 0.95]) {
            let samples = sampled(&phases::ingestion(way, 3).unwrap()).unwrap();
            let gauges: Vec<f64> = samples.into_iter().map(gauge).collect();
            let mean = gauges.iter().sum::<f64>() / gauges.len() as f64;
            assert!((least..1.001).contains(&mean), "{}: {mean}", way.name);
            // completions come in requests of 128 KiB: 1 % of a sample
            assert!(gauges.iter().all(|&gauge| gauge < 1.02), "{}: {gauges:?}", way.name);
        }
    }

    #[test]
    fn commitlog_and_memtable_get_their_rate() {
        for way in &WAYS {
            let outcome = phases::ingestion(way, 3).unwrap();
            for name in ["commitlog", "memtable"] {
                let got = bandwidth(&outcome, &[name]).unwrap();
                assert!((got / 131.0 - 1.0).abs() < 0.05, "{}: {name} {got}", way.name);
            }
        }
    }
}
