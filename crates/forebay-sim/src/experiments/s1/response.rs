//! Figures 1 and 2: what a disk gives by the number of requests in it.

use forebay_core::Policy;

use crate::experiments::scenario::{self, thousands};
use crate::experiments::{Chart, Mark, Report, Scale, Table};
use crate::simulation::SchedulerConfig;

/// A drive as in an i3.2xlarge: 412,500 reads per second (AWS), 0.1 ms for a read on the idle disk
/// (diskplorer); 2 GB/s are assumed. Reads meet at its dies, so it fills up slowly, as flash does.
const DISK: &str = "
kind: flash
source: i3.2xlarge
read_command: 0ns
write_command: 1us
bandwidth: 2000000000
read_latency: 10us
write_latency: 10us
dies: 40
page: 16kB
page_read: 97us
program_bandwidth: 800000000
write_buffer: 64MB
";
const SMALL: u64 = 4 << 10;
const LARGE: u64 = 128 << 10;
/// As many as the article's figure shows.
const CONCURRENCY_MAX: u32 = 140;
/// What a disk gives at the greatest depth stands for the most that it can.
const CONCURRENCY_OF_PEAK: u32 = 1024;
/// The knee is where this part of the most is reached.
const SATURATED: f64 = 0.95;

/// What a disk gives at one concurrency.
#[derive(Clone, Copy, Debug)]
struct Point {
    concurrency: u32,
    requests_per_second: f64,
    mean_micros: f64,
}

/// Points by concurrency for requests of one size, and the last point far beyond the rest.
struct Curve {
    points: Vec<Point>,
    peak: Point,
}

impl Curve {
    fn measure(len: u64) -> Result<Self, String> {
        let steps = (1..16).chain((16..=CONCURRENCY_MAX).step_by(4));
        let points =
            steps.map(|concurrency| measure(len, concurrency)).collect::<Result<_, _>>()?;
        Ok(Self { points, peak: measure(len, CONCURRENCY_OF_PEAK)? })
    }

    fn part_of_peak(&self, point: &Point) -> f64 {
        point.requests_per_second / self.peak.requests_per_second
    }

    /// The least concurrency that saturates the disk, if any in the figure does.
    fn knee(&self) -> Option<&Point> {
        self.points.iter().find(|point| self.part_of_peak(point) >= SATURATED)
    }

    fn at(&self, concurrency: u32) -> Option<&Point> {
        self.points.iter().find(|point| point.concurrency >= concurrency)
    }

    fn line(&self, of: impl Fn(&Point) -> f64) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (f64::from(point.concurrency), of(point))).collect()
    }
}

fn measure(len: u64, concurrency: u32) -> Result<Point, String> {
    let jobs = format!(
        "- name: reads\n  type: randread\n  shards: [0]\n  data_size: 16GB\n  \
         shard_info: {{ parallelism: {concurrency}, reqsize: {len} }}\n"
    );
    let mut config = scenario::config(scenario::jobs(&jobs, 1)?, scenario::disk(DISK)?, 50);
    config.scheduler = SchedulerConfig { policy: Some(Policy::Open), ..Default::default() };
    let outcome = scenario::run(config)?;
    let reads = scenario::job(&outcome, "reads")?;
    let (requests_per_second, mean_micros) = (reads.iops, reads.disk_us.mean);
    Ok(Point { concurrency, requests_per_second, mean_micros })
}

fn describe(report: &mut Report) {
    report.parameter(
        "disk",
        "the drive of an i3.2xlarge: 412,500 reads/s (AWS), 0.1 ms (diskplorer); 2 GB/s assumed",
    );
    report.parameter("made of", "40 dies with pages of 16 KiB, 97 us each; 10 us to answer");
    report.parameter("load", "so many random reads at a time, 50 ms each after 100 ms");
    report.parameter("saturated", format!("at {:.0} % of the most", SATURATED * 100.0));
}

/// Figure 1.
pub(super) fn run_one_size(_: Scale) -> Result<Report, String> {
    Ok(report_one_size(&Curve::measure(LARGE)?))
}

fn report_one_size(curve: &Curve) -> Report {
    let mut report = Report {
        shows: String::from(
            "Beyond its knee a disk answers later and not more: what is sent beyond waits in the \
             disk, where nobody can order it.",
        ),
        differs: String::from(
            "The article's figure is a sketch without figures; this is one simulated drive.",
        ),
        ..Report::default()
    };
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

/// Figure 2.
pub(super) fn run_two_sizes(_: Scale) -> Result<Report, String> {
    Ok(report_two_sizes(&Curve::measure(SMALL)?, &Curve::measure(LARGE)?))
}

fn report_two_sizes(small: &Curve, large: &Curve) -> Report {
    let mut report = Report {
        shows: String::from(
            "One disk has a knee for each size of requests, so no number of requests suits all: \
             what is too few of 4 KiB is far too many of 128 KiB.",
        ),
        differs: String::from(
            "The article names neither the drive nor the figures of its curves; only where they \
             saturate can be compared.",
        ),
        ..Report::default()
    };
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

    #[test]
    fn each_size_has_its_knee() {
        let (small, large) = (Curve::measure(SMALL).unwrap(), Curve::measure(LARGE).unwrap());
        assert!(small.knee().is_none(), "{:?}", small.knee());
        let knee = large.knee().unwrap();
        assert!(knee.concurrency < 20, "{knee:?}");
        // beyond the knee twice as many wait twice as long
        let beyond = large.at(knee.concurrency * 2).unwrap();
        assert!(beyond.requests_per_second <= knee.requests_per_second / SATURATED);
        assert!(beyond.mean_micros >= knee.mean_micros * 1.8, "{knee:?} {beyond:?}");
    }
}
