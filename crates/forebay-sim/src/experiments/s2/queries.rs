//! Queries in three phases: whether they get their rate, and how compaction yields.

use forebay_core::DiskTime;

use super::phases::{
    self, COMPACTION, Disk, Report, SLICES, WAYS, class, phase_start, report, seconds, throughput,
    trace,
};
use crate::experiments::scenario::{percent, thousands};
use crate::experiments::{Scale, Table};
use crate::simulation::{Outcome, Sample};

/// The classes of this load.
const QUERIES: [&str; 3] = ["query", COMPACTION[0], COMPACTION[1]];

/// S2-12.
pub(super) fn plateaus(scale: Scale) -> Result<Report, String> {
    let mut report = report(
        scale,
        "Queries get the rate they ask for, in three level plateaus.",
        "With the article's old scheduler queries missed their rate and wavered; here they do \
         not with any policy, because the fair queue before the policies is the same for all. \
         Arrivals are random, which moves a fifth of a phase by some percent.",
    );
    let mut table = Table::new(
        "Queries per second, and how far any fifth of a phase is from its mean",
        &["disk", "scheduler", "first", "second", "third", "farthest"],
    );
    let published = ["published", "wanted, and 5.0", "10,000", "5,000", "7,500", "stable"];
    table.row(published.map(str::to_owned));
    table.row(["published", "4.6", "missed", "missed", "missed", "wavers"].map(str::to_owned));
    let (_, phase_seconds) = seconds(scale);
    for disk in &Disk::both()? {
        for way in &WAYS {
            let outcome = phases::queries(disk, way, phase_seconds)?;
            let phase = |index| plateau(&outcome, index, phase_seconds);
            let (first, second, third) = (phase(0)?, phase(1)?, phase(2)?);
            let farthest = first.1.max(second.1).max(third.1);
            table.row([
                disk.name.to_owned(),
                way.name.to_owned(),
                thousands(first.0),
                thousands(second.0),
                thousands(third.0),
                percent(farthest),
            ]);
            let title = format!("Queries, disk {}, {}", disk.name, way.name);
            report.charts.push(throughput(&title, &outcome, &QUERIES[..1])?);
        }
    }
    report.tables.push(table);
    Ok(report)
}

/// The samples of a class in one phase of queries, without its first and last slice.
fn phase<'a>(
    outcome: &'a Outcome,
    (name, index): (&str, usize),
    phase_seconds: u64,
) -> Result<Vec<&'a Sample>, String> {
    let slice = trace(outcome)?.slice_nanos;
    let from = phase_start(index, phase_seconds).as_nanos();
    let to = from + phase_seconds * 1_000_000_000;
    let within = |at: u64| at * slice >= from + slice && (at + 2) * slice <= to;
    let samples = (0_u64..).zip(&class(outcome, name)?.samples);
    Ok(samples.filter(|&(at, _)| within(at)).map(|(_, sample)| sample).collect())
}

/// Queries per second in a phase, and how far any fifth of it is from that.
fn plateau(outcome: &Outcome, index: usize, phase_seconds: u64) -> Result<(f64, f64), String> {
    let slice_seconds = trace(outcome)?.slice_nanos as f64 / 1e9;
    let samples = phase(outcome, ("query", index), phase_seconds)?;
    let rate = |samples: &[&Sample]| {
        let operations: u64 = samples.iter().map(|sample| sample.operations).sum();
        operations as f64 / (samples.len() as f64 * slice_seconds)
    };
    let mean = rate(&samples);
    let fifths = samples.chunks(samples.len().div_ceil(5).max(1));
    let deviations = fifths.map(|fifth| (rate(fifth) / mean - 1.0).abs());
    Ok((mean, deviations.fold(0.0, f64::max)))
}

/// Slices before the first phase of queries.
const SLICES_ALONE: usize = 25;

/// What compaction got, in MB/s, and what the queries took.
struct Yield {
    alone: f64,
    /// In each phase of queries.
    beside: [f64; 3],
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
    let beside =
        |index: usize| sum(&|name| Ok(megabytes(&phase(outcome, (name, index), phase_seconds)?)));
    let from = |first: usize| {
        sum(&|name| {
            let samples = class(outcome, name)?.samples.iter();
            Ok(megabytes(&samples.skip(first).take(SLICES_ALONE).collect::<Vec<_>>()))
        })
    };
    let queries = phase(outcome, ("query", 0), phase_seconds)?;
    let query_units: u64 = queries.iter().map(|sample| sample.disk_time.units()).sum();
    let query_seconds = query_units as f64 / DiskTime::UNITS_PER_SECOND as f64;
    Ok(Yield {
        alone: from(1)?,
        beside: [beside(0)?, beside(1)?, beside(2)?],
        after: from(SLICES - SLICES_ALONE - 1)?,
        query_part: query_seconds / (queries.len().max(1) as f64 * slice_seconds),
    })
}

/// S2-14.
pub(super) fn compaction(scale: Scale) -> Result<Report, String> {
    let mut report = report(
        scale,
        "Compaction gives way to queries at once, by just what they need, and takes the whole disk \
         back when they end.",
        "The article shows this in a chart without figures, and does not tell how large its \
         queries were.",
    );
    let mut table = Table::new(
        "MB/s of compaction (published: a chart, lower beside queries, back after them)",
        &["disk", "scheduler", "alone", "10,000/s", "5,000/s", "7,500/s", "after", "10,000/s take"],
    );
    let (_, phase_seconds) = seconds(scale);
    for disk in &Disk::both()? {
        for way in &WAYS {
            let outcome = phases::queries(disk, way, phase_seconds)?;
            let Yield { alone, beside, after, query_part } = yields(&outcome, phase_seconds)?;
            let [first, second, third] = beside.map(thousands);
            let (alone, after) = (thousands(alone), thousands(after));
            let (name, way_name) = (disk.name.to_owned(), way.name.to_owned());
            table.row([name, way_name, alone, first, second, third, after, percent(query_part)]);
            let title = format!("Compaction beside queries, disk {}, {}", disk.name, way.name);
            report.charts.push(throughput(&title, &outcome, &QUERIES)?);
        }
    }
    report.tables.push(table);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::super::phases::QUERY_RATES;
    use super::super::phases::Way;
    use super::*;

    fn disks_and_ways(disks: &[Disk]) -> impl Iterator<Item = (&Disk, &'static Way)> {
        disks.iter().flat_map(|disk| WAYS.iter().map(move |way| (disk, way)))
    }

    #[test]
    fn queries_get_their_rate_in_level_plateaus() {
        for (disk, way) in disks_and_ways(&Disk::both().unwrap()) {
            let outcome = phases::queries(disk, way, 1).unwrap();
            for (index, rate) in QUERY_RATES.into_iter().enumerate() {
                let (got, deviation) = plateau(&outcome, index, 1).unwrap();
                assert!((got / rate as f64 - 1.0).abs() < 0.03, "{}: {got}", way.name);
                // arrivals at random alone move a fifth of a second by some percent
                assert!(deviation < 0.08, "{}: {deviation}", way.name);
            }
        }
    }

    #[test]
    fn compaction_yields_what_queries_need_and_takes_it_back() {
        for way in &WAYS {
            let outcome = phases::queries(&Disk::line().unwrap(), way, 1).unwrap();
            let Yield { alone, beside, after, query_part } = yields(&outcome, 1).unwrap();
            assert!((after / alone - 1.0).abs() < 0.02, "{}: {alone} {after}", way.name);
            let left = beside[0] / alone + query_part;
            assert!((left - 1.0).abs() < 0.03, "{}: {left}", way.name);
            assert!(beside[0] < beside[2] && beside[2] < beside[1], "{}: {beside:?}", way.name);
        }
    }
}
