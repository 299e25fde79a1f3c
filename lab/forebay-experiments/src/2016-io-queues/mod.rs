//! How many I/O queues the shards of a server share.

use core::time::Duration;

use forebay_core::Policy;
use forebay_load::results::model::ClassResult;
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Coordinators, Outcome, SchedulerConfig, SimulationConfig};

use crate::articles::y2016::{self, KB};
use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{grouped_jobs, job, percent, published, run as simulate};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "2016-io-queues",
    alias: "S0-7",
    title: "One I/O queue for six shards, or one each",
    source: y2016::SOURCE,
};

const DISK: &str = include_str!("disk.yaml");
const SHARDS: u32 = 6;
/// What each shard has under way.
const FIBERS: u32 = 30;
/// One I/O queue handled 302,088 KB/s in requests of 4 KB, 75,522 a second.
const WORK: Duration = Duration::from_nanos(13_241);
/// What forebay's own spend of a processor on a request at most, in all threads: `bench --topology
/// coordinators` on /dev/null with two shards, on a machine of two processors that is busy.
const OWN_WORK: Duration = Duration::from_nanos(3_000);
const IN_ORDER: &str = "in the order of arrival";
const ONE_CLASS: &str = "[{name: all, shares: 100}]";

/// Numbers of I/O queues, and the KB/s of each shard with them.
type Published = Vec<(usize, [u32; SHARDS as usize])>;
const QUEUES: [usize; 4] = [1, 2, 3, 6];

/// What each shard has under way where they ask for unequal parts: who sends more than what it has
/// in the disk by its part waits in the queue.
const UNEQUAL: [u32; SHARDS as usize] = [40, 45, 50, 150, 200, 250];

/// A run with this many I/O queues, each of whose threads is busy for `work` with a request,
/// requests of this many KiB and this many at a time from each shard.
fn outcome(
    seed: Seed,
    (queues, work): (usize, Duration),
    kib: u32,
    depths: [u32; SHARDS as usize],
    millis: u64,
) -> Result<Outcome, String> {
    let mut config = config(seed, kib, depths, millis)?;
    // A queue of its own costs a shard nothing that the article tells.
    config.coordinators = (queues < SHARDS as usize).then_some(Coordinators { queues, work });
    simulate(config)
}

/// Six shards, a class, and no coordinator.
fn config(
    seed: Seed,
    kib: u32,
    depths: [u32; SHARDS as usize],
    millis: u64,
) -> Result<SimulationConfig, String> {
    let shard = |(shard, depth)| {
        format!(
            "- {{name: shard-{shard}, type: randread, shards: [{shard}],
   shard_info: {{parallelism: {depth}, class: all, reqsize: {kib}kB}}}}\n"
        )
    };
    let text: String = depths.iter().enumerate().map(shard).collect();
    let jobs = grouped_jobs(&text, Some(ONE_CLASS), SHARDS)?;
    Ok(seed.config(jobs, seed.disk(DISK)?, millis))
}

/// The part of each shard where requests go in the order in which they come.
fn parts_in_order(
    seed: Seed,
    depths: [u32; SHARDS as usize],
    millis: u64,
) -> Result<Vec<f64>, String> {
    let mut config = config(seed, 4, depths, millis)?;
    config.scheduler =
        SchedulerConfig { policy: Some(Policy::Unlimited), ..SchedulerConfig::by_figures() };
    let rates = by_shard(&simulate(config)?)?;
    let all: f64 = rates.iter().sum();
    Ok(rates.iter().map(|rate| rate / all).collect())
}

/// KB/s of each shard.
fn by_shard(outcome: &Outcome) -> Result<Vec<f64>, String> {
    let rate = |result: &ClassResult| result.bandwidth_bytes_per_second as f64 / KB as f64;
    (0..SHARDS).map(|shard| job(outcome, &format!("shard-{shard}")).map(rate)).collect()
}

/// How far the shard with the least is behind the one with the most.
fn spread(rates: &[f64]) -> f64 {
    let (least, most) = rates
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), &rate| (least.min(rate), most.max(rate)));
    1.0 - least / most
}

fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(5_000, 60_000);
    let mut report = Report::default();
    report.parameter(
        "disk",
        "a Samsung 850 PRO as measured there: 30 requests at a time, 321 us each; 563 MB/s",
    );
    report.parameter("load", "random reads of one class, 30 at a time from each of 6 shards");
    report.parameter(
        "coordinator",
        "the library's own: equal disk time for the shards that send to it, 8 requests at most in \
         its I/O queue; each keeps its thread busy for 13.2 us (an input: the published one queue)",
    );
    report.parameter("measured", format!("{millis} ms after 100 ms (published: 60 s)"));
    report.parameter("forebay", "pace + window, latency goal 0.75 ms");

    small_requests(seed, millis, &mut report)?;
    let work = WORK.as_secs_f64() * 1e6;
    report.figures.push(Figure::new("work of a coordinator", "us/request", 13.241, work));
    report.tables.push(large_requests(seed, millis)?);
    Ok(report)
}

/// KB/s in MB/s.
fn mb(kb: f64) -> f64 {
    kb * KB as f64 / 1e6
}

fn small_requests(seed: Seed, millis: u64, report: &mut Report) -> Result<(), String> {
    let mut table = Table::new(
        "4 KiB: KB/s (of 1024 bytes) by shard",
        &["I/O queues", "", "0", "1", "2", "3", "4", "5", "sum", "apart"],
    );
    let mut row = |queues: usize, who: &str, rates: &[f64]| {
        let [a, b, c, d, e, f] = core::array::from_fn(|shard| thousands(rates[shard]));
        let sum = thousands(rates.iter().sum());
        let apart = percent(spread(rates));
        table.row([queues.to_string(), who.to_owned(), a, b, c, d, e, f, sum, apart]);
    };
    let all: Published = published(include_str!("published.yaml"))?;
    let mut points = Vec::new();
    for queues in QUEUES {
        if let Some((_, rates)) = all.iter().find(|published| published.0 == queues) {
            row(queues, "published", &rates.map(f64::from));
        }
        let ours = by_shard(&outcome(seed, (queues, WORK), 4, [FIBERS; 6], millis)?)?;
        row(queues, "forebay", &ours);
        if let Some((_, rates)) = all.iter().find(|published| published.0 == queues) {
            let published = rates.map(f64::from);
            let equal_parts = parts_in_order(seed, [FIBERS; 6], millis)?;
            let millis = millis / 5;
            let unequal = by_shard(&outcome(seed, (queues, WORK), 4, UNEQUAL, millis)?)?;
            row(queues, "forebay, unequal loads", &unequal);
            report.figures.extend(figures(queues, &published, &ours, &equal_parts));
            let parts = parts_in_order(seed, UNEQUAL, millis)?;
            report.figures.extend(unequal_figures(queues, &published, &unequal, &parts));
        }
        points.push((queues as f64, mb(ours.iter().sum())));
    }
    row(1, "forebay, 3.0 us", &by_shard(&outcome(seed, (1, OWN_WORK), 4, [FIBERS; 6], millis)?)?);
    let sum = |rates: &[u32]| mb(f64::from(rates.iter().sum::<u32>()));
    let published = all.iter().map(|(queues, rates)| (*queues as f64, sum(rates))).collect();
    let chart = Chart::new("4 KiB reads of six shards", "I/O queues", "MB/s in all")
        .with("published", Mark::Dots, published)
        .with("forebay", Mark::Line, points);
    report.tables.push(table);
    report.charts.push(chart);
    Ok(())
}

/// The sum of all shards, and how equal they are: as in the order in which they come, too.
fn figures(queues: usize, published: &[f64], ours: &[f64], in_order: &[f64]) -> [Figure; 2] {
    let [sum, ours_in_all] = [published, ours].map(|rates| rates.iter().sum::<f64>());
    // to the digit that the table shows
    let apart = spread(published) * 1e2 + 0.05;
    [
        Figure::new(format!("4 KiB, {queues} queues, in all"), "KB/s", sum, ours_in_all),
        Figure::new(format!("4 KiB, {queues} queues, apart"), "%", ..=apart, spread(ours) * 1e2)
            .compared_with(IN_ORDER, spread(in_order) * 1e2),
    ]
}

/// What each shard gets where their loads are unequal, alongside their parts in the order of
/// arrival.
fn unequal_figures(
    queues: usize,
    published: &[f64],
    ours: &[f64],
    parts: &[f64],
) -> impl Iterator<Item = Figure> {
    let all: f64 = published.iter().sum();
    let shards = published.iter().zip(ours).zip(parts).zip(0..);
    shards.map(move |(((&published, &ours), part), shard)| {
        let depth = UNEQUAL[shard];
        let name = format!("4 KiB, {queues} queues, shard {shard}, {depth} at a time");
        Figure::new(name, "KB/s", published, ours).compared_with(IN_ORDER, part * all)
    })
}

fn large_requests(seed: Seed, millis: u64) -> Result<Table, String> {
    let mut table =
        Table::new("128 KiB: KB/s (of 1024 bytes) in all", &["I/O queues", "forebay", "apart"]);
    for queues in QUEUES {
        let rates = by_shard(&outcome(seed, (queues, WORK), 128, [FIBERS; 6], millis)?)?;
        let sum = thousands(rates.iter().sum());
        table.row([queues.to_string(), sum, percent(spread(&rates))]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    fn rates(seed: Seed, queues: usize, kib: u32) -> Vec<f64> {
        by_shard(&outcome(seed, (queues, WORK), kib, [FIBERS; 6], 2_000).unwrap()).unwrap()
    }

    #[test]
    fn one_queue_is_equal_and_slower_and_one_per_shard_is_faster() {
        for seed in seeds() {
            let (one, six) = (rates(seed, 1, 4), rates(seed, 6, 4));
            let slower = 1.0 - one.iter().sum::<f64>() / six.iter().sum::<f64>();
            assert!((0.190..0.194).contains(&slower), "{slower}");
            assert!(spread(&one) < 0.001, "{one:?}");
            assert!(spread(&six) < 0.001, "{six:?}");
            let own =
                by_shard(&outcome(seed, (1, OWN_WORK), 4, [FIBERS; 6], 2_000).unwrap()).unwrap();
            let slower = 1.0 - own.iter().sum::<f64>() / six.iter().sum::<f64>();
            assert!(slower.abs() < 0.002, "{slower}");
        }
    }

    #[test]
    fn one_queue_is_enough_for_large_requests() {
        for seed in seeds() {
            let (one, six) = (rates(seed, 1, 128), rates(seed, 6, 128));
            assert!(one.iter().sum::<f64>() > 0.999 * six.iter().sum::<f64>(), "{one:?} {six:?}");
        }
    }
}
