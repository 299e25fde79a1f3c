//! The worked example: how many requests of which size the disk is given.

use forebay_core::{DiskModel, DiskRates, Policy};
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;

use crate::articles::y2018;
use crate::articles::y2018::{DEPTH_OF_2016, GOAL, LITTLES_LAW};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario;

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2018-littles-law",
    alias: "S1-3",
    title: "How many requests Little's law allows in the disk",
    source: y2018::SOURCE,
};

const DISK: &str = include_str!("disk.yaml");
const RATES: DiskRates = DiskRates {
    read_iops: 95_000,
    read_bandwidth: 512 << 20,
    write_iops: 95_000,
    write_bandwidth: 512 << 20,
};
const SMALL: u64 = 4 << 10;
const LARGE: u64 = 128 << 10;

/// The most requests of one size that were in the disk under each policy.
#[derive(Clone, Copy, Debug)]
struct InDisk {
    len: u64,
    old: u64,
    littles_law: u64,
    pace_window: u64,
}

/// What 0.75 ms of the article's disk hold: requests at its IOPS, and bytes at its bandwidth.
fn limits() -> (f64, f64) {
    let seconds = GOAL.as_secs_f64();
    (RATES.read_iops as f64 * seconds, RATES.read_bandwidth as f64 * seconds)
}

fn measure(seed: Seed) -> Result<Vec<InDisk>, String> {
    let sizes = (9..=19).map(|power| 1 << power);
    sizes
        .map(|len| {
            let old =
                most_in_disk(seed, len, Some(Policy::Concurrency { requests: DEPTH_OF_2016 }))?;
            let littles_law = most_in_disk(seed, len, Some(LITTLES_LAW))?;
            Ok(InDisk { len, old, littles_law, pace_window: most_in_disk(seed, len, None)? })
        })
        .collect()
}

/// Reads of this size, always more of them waiting than may go.
fn most_in_disk(seed: Seed, len: u64, policy: Option<Policy>) -> Result<u64, String> {
    let jobs = format!(
        "- name: reads\n  type: randread\n  shards: [0]\n  \
         shard_info: {{ parallelism: 1000, reqsize: {len} }}\n"
    );
    let model = DiskModel::from_rates(&RATES).map_err(|error| error.to_string())?;
    let mut config = seed.config(scenario::jobs(&jobs, 1)?, seed.disk(DISK)?, 100);
    config.scheduler =
        SchedulerConfig { model: Some(model), policy, ..SchedulerConfig::by_figures() };
    let disk = scenario::run(config)?.result.disk.ok_or("no scheduler saw the disk")?;
    Ok(disk.in_flight_max)
}

fn run(Setting { seed, .. }: Setting) -> Result<Report, String> {
    Ok(report(&measure(seed)?))
}

fn report(in_disk: &[InDisk]) -> Report {
    let mut report = Report {
        figures: figures(in_disk),
        tables: vec![table(in_disk)],
        charts: vec![chart(in_disk)],
        ..Report::default()
    };
    report.parameter("disk", "95,000 reads/s, 512 * 2^20 bytes/s, from the article");
    report.parameter("goal", "1.5 x 0.5 ms = 0.75 ms");
    report.parameter("load", "1,000 random reads of one size at a time, for 0.1 s each");
    report
}

fn figures(in_disk: &[InDisk]) -> Vec<Figure> {
    let (requests, bytes) = limits();
    let of_2016 = "as many of any size";
    let arithmetic = "arithmetic on what was given";
    let found =
        |len| in_disk.iter().find(|in_disk| in_disk.len == len).map_or(0, |f| f.littles_law);
    vec![
        Figure::new("limit of 4 KiB reads", "requests", 70.0, requests)
            .compared_with(arithmetic, requests),
        Figure::new("limit of bytes", "kB", 402.653, bytes / 1e3)
            .compared_with(arithmetic, bytes / 1e3),
        Figure::new("limit of 128 KiB reads", "requests", 3.0, bytes / LARGE as f64)
            .compared_with(arithmetic, bytes / LARGE as f64),
        Figure::new("4 KiB reads in the disk", "requests", 70.0, found(SMALL) as f64)
            .compared_with(of_2016, f64::from(DEPTH_OF_2016)),
        Figure::new("128 KiB reads in the disk", "requests", 3.0, found(LARGE) as f64)
            .compared_with(of_2016, f64::from(DEPTH_OF_2016)),
    ]
}

fn table(in_disk: &[InDisk]) -> Table {
    let columns = ["", "published", "limit", "simulated", "2016, simulated", "pace + window"];
    let mut table = Table::new("Requests in the disk", &columns);
    let (requests, bytes) = limits();
    let mut add = |name: &str, published: &str, limit: String, len: u64| {
        let found = in_disk.iter().find(|in_disk| in_disk.len == len);
        let cell = |of: fn(&InDisk) -> u64| found.map_or_else(String::new, |f| of(f).to_string());
        table.row([
            name.to_owned(),
            published.to_owned(),
            limit,
            cell(|f| f.littles_law),
            cell(|f| f.old),
            cell(|f| f.pace_window),
        ]);
    };
    add("reads of 4 KiB", "70", format!("{requests:.2}"), SMALL);
    let of_bytes = format!("{:.2} ({} B)", bytes / LARGE as f64, thousands(bytes));
    add("reads of 128 KiB", "3 (402 kB)", of_bytes, LARGE);
    table
}

fn chart(in_disk: &[InDisk]) -> Chart {
    let (requests, bytes) = limits();
    let points = |of: fn(&InDisk) -> u64| {
        let point = |f: &InDisk| (f.len as f64 / 1024.0, of(f) as f64);
        in_disk.iter().map(point).collect::<Vec<_>>()
    };
    let limit = |f: &InDisk| (f.len as f64 / 1024.0, requests.min(bytes / f.len as f64));
    Chart::new("Most requests in the disk, by their size", "size (KiB)", "requests")
        .with("2016: 32 of any size", Mark::Line, points(|f| f.old))
        .with("2018: Little's law", Mark::Line, points(|f| f.littles_law))
        .with("2018, by hand", Mark::Dashed, in_disk.iter().map(limit).collect())
        .with("pace + window", Mark::Line, points(|f| f.pace_window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::SEED;
    use forebay_core::{DiskTime, Op};

    #[test]
    fn the_worked_example_comes_out() {
        let (requests, bytes) = limits();
        assert_eq!((requests, bytes.floor()), (71.25, 402_653.0));
        // the scheduler's own costs say the same
        let model = DiskModel::from_rates(&RATES).unwrap();
        let goal = DiskTime::from_nanos(GOAL.as_nanos() as u64).units() as f64;
        let fit = |len| goal / model.cost(Op::Read, len).units() as f64;
        assert!((fit(SMALL) - requests).abs() < 1e-4, "{}", fit(SMALL));
        assert!((fit(LARGE) - bytes / LARGE as f64).abs() < 1e-4, "{}", fit(LARGE));

        let in_disk = measure(SEED).unwrap();
        let of = |len| *in_disk.iter().find(|in_disk| in_disk.len == len).unwrap();
        assert_eq!((of(SMALL).littles_law, of(LARGE).littles_law), (72, 4));
        assert!(in_disk.iter().all(|in_disk| in_disk.old == 32), "{in_disk:?}");
    }
}
