//! Queries in three phases: whether they get their rate, and how compaction yields.

use forebay_report::Table;
use forebay_sim::simulation::{Outcome, Sample};

use crate::articles::y2022;
use crate::articles::y2022::phases::{
    self, Disk, NO_SCHEDULER, QUERIES, QUERY_RATES, SCHEDULERS, phase, report, seconds, throughput,
    trace,
};
use crate::experiment::{Experiment, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::percent;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2022-queries",
    alias: "S2-12",
    title: "Throughput of queries",
    source: y2022::SOURCE,
};

/// The scheduler of 5.0, which was drawn.
const NEW: &str = "2022: two-level bucket";

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let mut report = report(scale);
    let mut table = Table::new(
        "Queries per second, and how far any fifth of a phase is from its mean",
        &["disk", "scheduler", "first", "second", "third", "farthest"],
    );
    let published = ["published", "wanted, and 5.0", "10,000", "5,000", "7,500", "stable"];
    table.row(published.map(str::to_owned));
    table.row(["published", "4.6", "missed", "missed", "missed", "wavers"].map(str::to_owned));
    let (_, phase_seconds) = seconds(scale);
    for disk in &Disk::both()? {
        for scheduler in SCHEDULERS.iter().chain([&NO_SCHEDULER]) {
            let outcome = phases::queries(seed, disk, scheduler, phase_seconds)?;
            let phase = |index| plateau(&outcome, index, phase_seconds);
            let (first, second, third) = (phase(0)?, phase(1)?, phase(2)?);
            if disk.is_measured() && scheduler.name == NEW {
                for ((rate, name), (got, _)) in
                    QUERY_RATES.iter().zip(["first", "second", "third"]).zip([first, second, third])
                {
                    let name = format!("5.0: {name} phase");
                    let figure = Figure::new(name, "queries/s", *rate as f64, got);
                    report.figures.push(figure.compared_with("the rate offered", *rate as f64));
                }
            }
            let farthest = first.1.max(second.1).max(third.1);
            table.row([
                disk.name.to_owned(),
                scheduler.name.to_owned(),
                thousands(first.0),
                thousands(second.0),
                thousands(third.0),
                percent(farthest),
            ]);
            let title = format!("Queries, disk {}, {}", disk.name, scheduler.name);
            report.charts.push(throughput(&title, &outcome, &QUERIES[..1])?);
        }
    }
    report.tables.push(table);
    Ok(report)
}

/// Queries per second in a phase, and how far any fifth of it is from that.
fn plateau(outcome: &Outcome, index: usize, phase_seconds: u64) -> Result<(f64, f64), String> {
    let slice_seconds = trace(outcome)?.slice_nanos as f64 / 1e9;
    let samples = phase(outcome, "query", index, phase_seconds)?;
    let rate = |samples: &[&Sample]| {
        let operations: u64 = samples.iter().map(|sample| sample.operations).sum();
        operations as f64 / (samples.len() as f64 * slice_seconds)
    };
    let mean = rate(&samples);
    let fifths = samples.chunks(samples.len().div_ceil(5).max(1));
    let deviations = fifths.map(|fifth| (rate(fifth) / mean - 1.0).abs());
    Ok((mean, deviations.fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::articles::y2022::phases::SchedulerVariant;
    use crate::tests::seeds;

    fn disks_and_schedulers(
        disks: &[Disk],
    ) -> impl Iterator<Item = (&Disk, &'static SchedulerVariant)> {
        disks.iter().flat_map(|disk| SCHEDULERS.iter().map(move |scheduler| (disk, scheduler)))
    }

    #[test]
    fn queries_get_their_rate_in_level_plateaus() {
        for seed in seeds() {
            for (disk, scheduler) in disks_and_schedulers(&Disk::both().unwrap()) {
                let outcome = phases::queries(seed, disk, scheduler, 1).unwrap();
                for (index, rate) in QUERY_RATES.into_iter().enumerate() {
                    let (got, deviation) = plateau(&outcome, index, 1).unwrap();
                    assert!((got / rate as f64 - 1.0).abs() < 0.045, "{}: {got}", scheduler.name);
                    // of 1,000 arrivals at random in a fifth of a second the worst of fifteen is
                    // 8 % off by itself
                    assert!(deviation < 0.085, "{}: {deviation}", scheduler.name);
                }
            }
        }
    }
}
