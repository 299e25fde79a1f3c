//! Figure 1: what a disk gives by the number of requests in it.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2018::SOURCE;
use crate::articles::y2018::response::{CONCURRENCY_MAX, Curve, LARGE, Point, describe};
use crate::experiment::{Experiment, Setting};
use crate::figure::thousands;
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "2018-knee",
    alias: "S1-4",
    title: "Throughput by concurrency, and its knee",
    source: SOURCE,
    about: include_str!("about.txt"),
    known: "",
    run,
};

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    Ok(report(&Curve::measure(seed, LARGE)?))
}

fn report(curve: &Curve) -> Report {
    let mut report = Report::default();
    describe(&mut report);
    let columns = ["", "concurrency", "reads/s", "part of the most", "mean latency (us)"];
    let mut table = Table::new("Random reads of 128 KiB", &columns);
    let mut add = |name: &str, point: Option<&Point>| {
        let Some(point) = point else { return };
        table.row([
            name.to_owned(),
            point.concurrency.to_string(),
            thousands(point.requests_per_second),
            format!("{:.1} %", curve.part_of_peak(point) * 100.0),
            thousands(point.mean_micros),
        ]);
    };
    add("one at a time", curve.at(1));
    add("at the knee", curve.knee());
    add("twice as many", curve.knee().and_then(|knee| curve.at(knee.concurrency * 2)));
    add("as many as drawn", curve.at(CONCURRENCY_MAX));
    report.tables.push(table);
    let knee = curve.knee().map_or(0.0, |knee| f64::from(knee.concurrency));
    let chart = |title: &str, y: &str, of: fn(&Point) -> f64| {
        let line = curve.line(of);
        let top = line.iter().map(|&(_, y)| y).fold(0.0, f64::max);
        Chart::new(title, "requests in the disk", y)
            .with("reads of 128 KiB", Mark::Line, line)
            .with("knee", Mark::Dashed, vec![(knee, 0.0), (knee, top)])
    };
    report.charts = vec![
        chart("Throughput by concurrency", "reads per second", |p| p.requests_per_second),
        chart("Mean latency by concurrency", "us", |p| p.mean_micros),
    ];
    report
}
