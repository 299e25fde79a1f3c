//! Figure 2: the same for small and for large requests.

use forebay_report::{Chart, Mark, Table};

use crate::articles::y2018::SOURCE;
use crate::articles::y2018::response::{CONCURRENCY_MAX, Curve, LARGE, SATURATED, SMALL, describe};
use crate::experiment::{Experiment, Setting, experiment};
use crate::figure::Figure;
use crate::report::Report;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2018-knee-by-size",
    alias: "S1-5",
    title: "Throughput by concurrency for small and for large requests",
    source: SOURCE,
};

/// A disk that answers after as long whatever is under way, as far as its rates allow: reads per
/// second, bytes per second and seconds.
const FIXED: &str = "a fixed latency";
const RATE: f64 = 412_500.0;
const BANDWIDTH: f64 = 2e9;
const LATENCY: f64 = 1e-4;

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    Ok(report(&Curve::measure(seed, SMALL)?, &Curve::measure(seed, LARGE)?))
}

fn report(small: &Curve, large: &Curve) -> Report {
    let mut report = Report::default();
    describe(&mut report);
    let columns = ["requests of", "published", "knee, simulated", "at 20", "at 140"];
    let mut table =
        Table::new("Concurrency that saturates the disk, and what others give", &columns);
    let mut add = |name: &str, published: &str, curve: &Curve| {
        let part = |concurrency| {
            let part = curve.at(concurrency).map(|point| curve.part_of_peak(point));
            part.map_or_else(String::new, |part| format!("{:.1} %", part * 100.0))
        };
        let beyond = || format!("beyond {CONCURRENCY_MAX}");
        let knee = curve.knee().map_or_else(beyond, |knee| knee.concurrency.to_string());
        table.row([name.to_owned(), published.to_owned(), knee, part(20), part(CONCURRENCY_MAX)]);
    };
    add("4 KiB", "not yet at 140", small);
    add("128 KiB", "below 20", large);
    let part = small.at(CONCURRENCY_MAX).map_or(0.0, |point| small.part_of_peak(point));
    let knee = large.knee().map_or(f64::INFINITY, |knee| f64::from(knee.concurrency));
    report.figures = vec![
        Figure::new("4 KiB at 140 requests", "% of the most", ..=SATURATED * 100.0, part * 100.0)
            .compared_with(
                FIXED,
                (100.0 * f64::from(CONCURRENCY_MAX) / (RATE * LATENCY)).min(100.0),
            ),
        Figure::new("knee of 128 KiB", "requests", ..=20.0, knee)
            .compared_with(FIXED, (BANDWIDTH / LARGE as f64 * LATENCY).ceil()),
    ];
    report.tables.push(table);
    let part = |curve: &Curve| curve.line(|point| curve.part_of_peak(point) * 100.0);
    let title = "Throughput by concurrency, as a part of the most";
    let across = vec![(0.0, SATURATED * 100.0), (f64::from(CONCURRENCY_MAX), SATURATED * 100.0)];
    let chart = Chart::new(title, "requests in the disk", "%")
        .with("4 KiB", Mark::Line, part(small))
        .with("128 KiB", Mark::Line, part(large))
        .with("saturated", Mark::Dashed, across);
    report.charts.push(chart);
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn each_size_has_its_knee() {
        for seed in seeds() {
            let (small, large) =
                (Curve::measure(seed, SMALL).unwrap(), Curve::measure(seed, LARGE).unwrap());
            assert!(small.knee().is_none(), "{:?}", small.knee());
            let knee = large.knee().unwrap();
            assert!(knee.concurrency < 20, "{knee:?}");
            // beyond the knee twice as many wait twice as long
            let beyond = large.at(knee.concurrency * 2).unwrap();
            assert!(beyond.requests_per_second <= knee.requests_per_second / SATURATED);
            assert!(beyond.mean_micros >= knee.mean_micros * 1.8, "{knee:?} {beyond:?}");
        }
    }
}
