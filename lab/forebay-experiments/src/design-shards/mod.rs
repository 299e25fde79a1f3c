//! Shares across shards: classes and shards that ask for very different things of one disk.

use core::time::Duration;

use forebay_core::LATENCY_GOAL_DEFAULT;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Outcome, Polling, SimulationConfig, Stalls};

use crate::experiment::{Experiment, Seed, Setting};
use crate::report::Report;
use crate::scenario::{grouped_jobs, job, jobs, millis, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "design-shards",
    alias: "D5-shards",
    title: "Shares across shards",
    source: "docs/decisions/0009-shares-across-threads.md",
    about: include_str!("about.txt"),
    known: "",
    run,
};

const DISK: &str = include_str!("disk.yaml");
const SMALL_US: f64 = 7.0;
const LARGE_US: f64 = 90.0;
const WINDOW_US: f64 = 2.0 * LATENCY_GOAL_DEFAULT.as_micros() as f64;

const TWO_SHARDS: &str = include_str!("two-shards.yaml");
const ONE_OF_EIGHT: &str = include_str!("one-of-eight.yaml");
const SIZES: &str = include_str!("sizes.yaml");
const ONE_CLASS: &str = "[{name: all, shares: 100}]";
const STARVED: &str = include_str!("starved.yaml");
const DEPTH_ONE: &str = include_str!("depth-one.yaml");
const LIGHT_OF_LARGE: &str = include_str!("light-of-large.yaml");
const URGENT: &str = include_str!("urgent.yaml");

/// The part of the disk time that a job should get.
struct Part {
    job: &'static str,
    request_us: f64,
    expected: f64,
}

const fn small(job: &'static str, expected: f64) -> Part {
    Part { job, request_us: SMALL_US, expected }
}

const fn large(job: &'static str, expected: f64) -> Part {
    Part { job, request_us: LARGE_US, expected }
}

/// What a job with one request at a time gets of the disk: its share, but no more than it can ask
/// for while each of its requests finds so much work of others in the disk.
const fn at_depth_one(share: f64, request_us: f64, others_us: f64) -> f64 {
    share.min(request_us / (request_us + others_us))
}

/// Alongside all 64 small requests of the other job, which the window holds.
const HEAVY_AT_DEPTH_ONE: f64 = at_depth_one(5.0 / 6.0, SMALL_US, 64.0 * SMALL_US);
/// Alongside a whole window of small requests.
const LIGHT_AT_DEPTH_ONE: f64 = at_depth_one(1.0 / 51.0, LARGE_US, WINDOW_US);

struct Case {
    name: &'static str,
    jobs: &'static str,
    classes: Option<&'static str>,
    shards: u32,
    stalls: bool,
    parts: &'static [Part],
    published: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        name: "5:1, a shard each",
        jobs: TWO_SHARDS,
        classes: None,
        shards: 2,
        stalls: false,
        parts: &[small("heavy", 5.0 / 6.0), small("light", 1.0 / 6.0)],
        published: "1:1 (Seastar)",
    },
    Case {
        name: "10:1, heavy on one shard of 8",
        jobs: ONE_OF_EIGHT,
        classes: None,
        shards: 8,
        stalls: false,
        parts: &[small("heavy", 10.0 / 11.0), small("light", 1.0 / 11.0)],
        published: "-",
    },
    Case {
        name: "one class, 7 us and 90 us requests",
        jobs: SIZES,
        classes: Some(ONE_CLASS),
        shards: 4,
        stalls: false,
        parts: &[
            small("small-0", 0.25),
            small("small-1", 0.25),
            large("large-2", 0.25),
            large("large-3", 0.25),
        ],
        published: "-",
    },
    Case {
        name: "2:1, one shard of 8 stalls 10 ms in a third of its polls",
        jobs: STARVED,
        classes: None,
        shards: 8,
        stalls: true,
        parts: &[small("heavy", 2.0 / 3.0), small("light", 1.0 / 3.0)],
        published: "-",
    },
    Case {
        name: "5:1, heavy at depth 1",
        jobs: DEPTH_ONE,
        classes: None,
        shards: 2,
        stalls: false,
        parts: &[small("heavy", HEAVY_AT_DEPTH_ONE), small("light", 1.0 - HEAVY_AT_DEPTH_ONE)],
        published: "-",
    },
    Case {
        name: "50:1, light at depth 1 with 90 us requests",
        jobs: LIGHT_OF_LARGE,
        classes: None,
        shards: 2,
        stalls: false,
        parts: &[small("heavy", 1.0 - LIGHT_AT_DEPTH_ONE), large("light", LIGHT_AT_DEPTH_ONE)],
        published: "-",
    },
];

/// Runs all cases.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let seconds = scale.seconds(1, 30);
    let mut report = Report::default();
    report.parameter("disk", "one request at a time: 7 us for 4 KiB, 90 us for 128 KiB");
    report.parameter(
        "load",
        "4 KiB reads; 512 in flight per shard and class in the first two cases and the last, \
         since a window holds 214 of them, then 64 unless said otherwise",
    );
    report.parameter("measured", format!("{seconds} s after 0.1 s"));
    let mut shares = Table::new(
        "Parts of the disk time",
        &["case", "job", "expected", "published", "forebay", "disk used"],
    );
    for case in &CASES {
        let outcome = outcome(seed, case, seconds)?;
        add_case(&mut shares, case, &outcome)?;
    }
    report.tables.push(shares);
    add_urgent(seed, &mut report, scale.seconds(2, 60))?;
    Ok(report)
}

fn outcome(seed: Seed, case: &Case, seconds: u64) -> Result<Outcome, String> {
    let jobs = grouped_jobs(case.jobs, case.classes, case.shards)?;
    let mut config = seed.config(jobs, seed.disk(DISK)?, seconds * 1000);
    if case.stalls {
        let length = Duration::from_millis(10);
        config.stalls = Some(Stalls { one_in: 3, length, shards: vec![7] });
    }
    simulate(config)
}

/// The disk time of each job as a part of the sum.
fn parts(case: &Case, outcome: &Outcome) -> Result<Vec<f64>, String> {
    let time = |part: &Part| Ok(job(outcome, part.job)?.requests as f64 * part.request_us);
    let times = case.parts.iter().map(time).collect::<Result<Vec<f64>, String>>()?;
    let sum: f64 = times.iter().sum();
    Ok(times.into_iter().map(|time| time / sum).collect())
}

fn add_case(table: &mut Table, case: &Case, outcome: &Outcome) -> Result<(), String> {
    for (index, (part, got)) in case.parts.iter().zip(parts(case, outcome)?).enumerate() {
        let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
        table.row([
            first(case.name),
            part.job.to_owned(),
            percent(part.expected),
            first(case.published),
            percent(got),
            first(&percent(outcome.utilisation)),
        ]);
    }
    Ok(())
}

/// A rare request of a heavy class among 8 shards of deep background.
fn urgent(seed: Seed, polling: Polling, seconds: u64) -> Result<Outcome, String> {
    let config = seed.config(jobs(URGENT, 8)?, seed.disk(DISK)?, seconds * 1000);
    simulate(SimulationConfig { polling, ..config })
}

fn add_urgent(seed: Seed, report: &mut Report, seconds: u64) -> Result<(), String> {
    let mut table = Table::new(
        "A request of 1000 shares every 4 ms alongside 8 shards of 100 shares at depth 64",
        &["dispatch", "prototype p99 in queue", "mean", "p50", "p99", "p99 in disk", "disk used"],
    );
    let mut chart = Chart::new("A rare request among 8 busy shards", "quantile", "ms in the queue");
    let dispatches = [
        ("on completions", "0.2 ms", Polling::Events),
        ("on a 0.5 ms tick alone", "1.2 ms", Polling::Tick(500_000)),
    ];
    for (name, prototype, polling) in dispatches {
        let outcome = urgent(seed, polling, seconds)?;
        let urgent = job(&outcome, "urgent")?;
        let queue = urgent.queue_us;
        table.row([
            name.to_owned(),
            prototype.to_owned(),
            millis(queue.mean),
            millis(queue.p50),
            millis(queue.p99),
            millis(urgent.disk_us.p99),
            percent(outcome.utilisation),
        ]);
        let points = [(0.5, queue.p50), (0.95, queue.p95), (0.99, queue.p99), (0.999, queue.p999)];
        let points = points.map(|(quantile, micros)| (quantile, micros / 1000.0));
        chart = chart.with(name, Mark::Line, points.to_vec());
    }
    report.parameter("urgent", format!("Poisson, 250 requests/s, measured for {seconds} s"));
    report.tables.push(table);
    report.charts.push(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn shares_hold_within_a_thousandth_and_the_disk_is_used() {
        for case in &CASES {
            for seed in seeds() {
                let outcome = outcome(seed, case, 1).unwrap();
                assert!(outcome.utilisation >= 0.995, "{}: {}", case.name, outcome.utilisation);
                for (part, got) in case.parts.iter().zip(parts(case, &outcome).unwrap()) {
                    let off = (got / part.expected - 1.0).abs();
                    assert!(off < 0.001, "{} {}: {got}", case.name, part.job);
                }
            }
        }
    }

    #[test]
    fn a_rare_urgent_request_hardly_waits() {
        for seed in seeds() {
            for (polling, bound_us) in [(Polling::Events, 8.0), (Polling::Tick(500_000), 510.0)] {
                let outcome = urgent(seed, polling, 2).unwrap();
                let p99 = job(&outcome, "urgent").unwrap().queue_us.p99;
                assert!(p99 <= bound_us, "{polling:?}: {p99}");
            }
        }
    }
}
