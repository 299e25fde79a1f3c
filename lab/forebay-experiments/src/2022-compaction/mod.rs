//! How compaction yields to queries, and takes the disk back.

use forebay_core::DiskTime;
use forebay_report::Table;
use forebay_sim::simulation::{Outcome, Sample};

use crate::articles::y2022;
use crate::articles::y2022::phases::{
    self, COMPACTION, Disk, QUERIES, SCHEDULERS, SLICES, class, phase, report, seconds, throughput,
    trace,
};
use crate::experiment::{Experiment, Setting};
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2022-compaction",
    alias: "S2-14",
    title: "Compaction yields to queries",
    source: y2022::SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};
/// Slices before the first phase of queries.
const SLICES_ALONE: usize = 25;

/// What compaction got, in MB/s, and what the queries took.
struct Yield {
    alone: f64,
    /// In each phase of queries.
    alongside: [f64; 3],
    /// After the last one.
    after: f64,
    /// The part of the disk's time of the queries in the first phase.
    query_part: f64,
}

fn yields(outcome: &Outcome, phase_seconds: u64) -> Result<Yield, String> {
    let slice_seconds = trace(outcome)?.slice_nanos as f64 / 1e9;
    let megabytes = |samples: &[&Sample]| {
        let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
        bytes as f64 / 1e6 / (samples.len().max(1) as f64 * slice_seconds)
    };
    let [reads, writes] = COMPACTION;
    let sum = |samples: &dyn Fn(&'static str) -> Result<f64, String>| {
        Ok::<_, String>(samples(reads)? + samples(writes)?)
    };
    let alongside =
        |index: usize| sum(&|name| Ok(megabytes(&phase(outcome, name, index, phase_seconds)?)));
    let from = |first: usize| {
        sum(&|name| {
            let samples = class(outcome, name)?.samples.iter();
            Ok(megabytes(&samples.skip(first).take(SLICES_ALONE).collect::<Vec<_>>()))
        })
    };
    let queries = phase(outcome, "query", 0, phase_seconds)?;
    let query_units: u64 = queries.iter().map(|sample| sample.disk_time.units()).sum();
    let query_seconds = query_units as f64 / DiskTime::UNITS_PER_SECOND as f64;
    Ok(Yield {
        alone: from(1)?,
        alongside: [alongside(0)?, alongside(1)?, alongside(2)?],
        after: from(SLICES - SLICES_ALONE - 1)?,
        query_part: query_seconds / (queries.len().max(1) as f64 * slice_seconds),
    })
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let mut report = report(scale);
    let mut table = Table::new(
        "MB/s of compaction (published: a chart, lower alongside queries, back after them)",
        &["disk", "scheduler", "alone", "10,000/s", "5,000/s", "7,500/s", "after", "10,000/s take"],
    );
    let (_, phase_seconds) = seconds(scale);
    for disk in &Disk::both()? {
        for scheduler in &SCHEDULERS {
            let outcome = phases::queries(seed, disk, scheduler, phase_seconds)?;
            let Yield { alone, alongside, after, query_part } = yields(&outcome, phase_seconds)?;
            let [first, second, third] = alongside.map(thousands);
            let (alone, after) = (thousands(alone), thousands(after));
            let (name, scheduler_name) = (disk.name.to_owned(), scheduler.name.to_owned());
            table.row([
                name,
                scheduler_name,
                alone,
                first,
                second,
                third,
                after,
                percent(query_part),
            ]);
            let title =
                format!("Compaction alongside queries, disk {}, {}", disk.name, scheduler.name);
            report.charts.push(throughput(&title, &outcome, &QUERIES)?);
        }
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn compaction_yields_what_queries_need_and_takes_it_back() {
        for seed in seeds() {
            for scheduler in &SCHEDULERS {
                let outcome = phases::queries(seed, &Disk::line().unwrap(), scheduler, 1).unwrap();
                let Yield { alone, alongside, after, query_part } = yields(&outcome, 1).unwrap();
                assert!((after / alone - 1.0).abs() < 0.002, "{}: {alone} {after}", scheduler.name);
                let left = alongside[0] / alone + query_part;
                assert!((left - 1.0).abs() < 0.005, "{}: {left}", scheduler.name);
                assert!(
                    alongside[0] < alongside[2] && alongside[2] < alongside[1],
                    "{}: {alongside:?}",
                    scheduler.name
                );
            }
        }
    }
}
