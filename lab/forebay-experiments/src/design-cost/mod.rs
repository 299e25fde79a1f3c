//! What a request costs: how much of a disk each way to price it lets through.

use forebay_core::{CostCurve, DiskModel, DiskRates, Op, Policy};
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::SchedulerConfig;
use serde::Deserialize;

use crate::experiment::{Experiment, Seed, Setting, experiment};
use crate::figure::Figure;
use crate::figure::thousands;
use crate::report::Report;
use crate::scenario::{self, job, jobs, pace_window, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = experiment! {
    name: "design-cost",
    alias: "D3-cost",
    title: "What a request costs: exact where the disk was measured",
    source: "docs/decisions/0002-cost-is-disk-time.md",
};

const DISK: &str = include_str!("disk.yaml");
/// What was measured of it.
const RATES: DiskRates = DiskRates {
    read_iops: 134_600,
    write_iops: 134_600,
    read_bandwidth: 605_000_000,
    write_bandwidth: 605_000_000,
};
const SIZES: [u64; 3] = [4096, 16_384, 131_072];
const SIZE_IOPS: u64 = 4096;
const SIZE_BANDWIDTH: u64 = 131_072;

/// A way to price requests: how much of the published throughput, in MB/s at the three sizes, and its
/// policy's model.
struct CostVariant {
    name: &'static str,
    published: Option<[u64; 3]>,
    model: fn(&DiskRates) -> Result<DiskModel, String>,
    open: bool,
}

const COSTS: [CostVariant; 4] = [
    CostVariant {
        name: "no scheduler",
        published: Some([591, 591, 590]),
        model: two_point,
        open: true,
    },
    CostVariant {
        name: "sum (Seastar)",
        published: Some([290, 476, 581]),
        model: sum,
        open: false,
    },
    CostVariant {
        name: "maximum (fork)",
        published: Some([532, 598, 599]),
        model: maximum,
        open: false,
    },
    CostVariant { name: "two points (forebay)", published: None, model: two_point, open: false },
];

/// A published disk.
#[derive(Deserialize)]
struct Published {
    name: String,
    read_iops: u64,
    read_mb: u64,
    write_iops: u64,
    write_mb: u64,
}

fn published() -> Result<Vec<Published>, String> {
    scenario::published(include_str!("disks.yaml"))
}

fn two_point(rates: &DiskRates) -> Result<DiskModel, String> {
    DiskModel::from_rates(rates).map_err(|error| error.to_string())
}

fn sum(rates: &DiskRates) -> Result<DiskModel, String> {
    DiskModel::from_rates_summed(rates).map_err(|error| error.to_string())
}

/// The larger of the operation and the bytes: both measured points in one.
fn maximum(rates: &DiskRates) -> Result<DiskModel, String> {
    let curve = |iops: u64, bandwidth: u64| {
        let meet = (bandwidth / iops).max(SIZE_IOPS + 1);
        CostCurve::two_point(iops, bandwidth, SIZE_IOPS, meet).map_err(|error| error.to_string())
    };
    let read = curve(rates.read_iops, rates.read_bandwidth)?;
    Ok(DiskModel::new(read, curve(rates.write_iops, rates.write_bandwidth)?))
}

/// Bytes per second with requests of `size`, and how much of it the heavy class of 10:1 got.
fn throughput(
    seed: Seed,
    cost: &CostVariant,
    size: u64,
    millis: u64,
) -> Result<(f64, f64), String> {
    let text = format!(
        "
- {{name: heavy, type: randwrite, shards: all,
   shard_info: {{parallelism: 32, reqsize: {size}, shares: 1000}}}}
- {{name: light, type: randwrite, shards: all,
   shard_info: {{parallelism: 32, reqsize: {size}, shares: 100}}}}
"
    );
    let disk = seed.disk(DISK)?;
    let policy = if cost.open { Policy::Unlimited } else { pace_window(&*disk) };
    let model = Some((cost.model)(&RATES)?);
    let mut config = seed.config(jobs(&text, 8)?, disk, millis);
    config.scheduler =
        SchedulerConfig { policy: Some(policy), model, ..SchedulerConfig::by_figures() };
    let outcome = simulate(config)?;
    let bandwidth = |name| Ok(job(&outcome, name)?.bandwidth_bytes_per_second as f64);
    let (heavy, light): (Result<f64, String>, Result<f64, String>) =
        (bandwidth("heavy"), bandwidth("light"));
    let (heavy, light) = (heavy?, light?);
    Ok((heavy + light, heavy / (heavy + light)))
}

/// Runs all sizes in all ways.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let millis = scale.seconds(500, 10_000);
    let mut report = Report::default();
    report.parameter("disk", "591 MB/s at every size (without scheduler, as published)");
    report.parameter("figures given to the scheduler", "134,600 IOPS, 605 MB/s (published)");
    report.parameter("load", "random writes, 8 shards, 2 classes at 1000:100, 32 in flight each");
    report.parameter("measured", format!("{millis} ms after 100 ms"));
    add_throughput(seed, &mut report, millis)?;
    add_disks(&mut report)?;
    report.charts.push(curves()?);
    Ok(report)
}

fn add_throughput(seed: Seed, report: &mut Report, millis: u64) -> Result<(), String> {
    let mut table = Table::new(
        "MB/s of both classes (published / simulated)",
        &["cost", "4 KiB", "16 KiB", "128 KiB", "heavy's part (91 %)"],
    );
    // what each size gets without a scheduler, which comes first
    let mut open = Vec::new();
    for cost in &COSTS {
        let mut cells = Vec::new();
        let mut heavy = Vec::new();
        for (index, &size) in SIZES.iter().enumerate() {
            let (bandwidth, part) = throughput(seed, cost, size, millis)?;
            let published =
                cost.published.map_or_else(|| "-".to_owned(), |all| all[index].to_string());
            cells.push(format!("{published} / {}", thousands(bandwidth / 1e6)));
            if cost.open {
                open.push(bandwidth / 1e6);
            }
            if let Some(published) = cost.published {
                let name = format!("{}, {} KiB", cost.name, size >> 10);
                let figure = Figure::new(name, "MB/s", published[index] as f64, bandwidth / 1e6);
                report.figures.push(figure.compared_with("no scheduler", open[index]));
            }
            heavy.push(percent(part));
        }
        let [small, middle, large] = [0, 1, 2].map(|index: usize| cells[index].clone());
        table.row([cost.name.to_owned(), small, middle, large, heavy.join(", ")]);
    }
    report.tables.push(table);
    Ok(())
}

fn rates(disk: &Published) -> DiskRates {
    DiskRates {
        read_iops: disk.read_iops,
        read_bandwidth: disk.read_mb * 1_000_000,
        write_iops: disk.write_iops,
        write_bandwidth: disk.write_mb * 1_000_000,
    }
}

/// How much of two measured figures a model allows: 4 KiB operations, and bytes at 128 KiB.
fn allowed(model: &DiskModel, rates: &DiskRates, op: Op) -> (f64, f64) {
    let (iops, bandwidth) = match op {
        Op::Read => (rates.read_iops, rates.read_bandwidth),
        _ => (rates.write_iops, rates.write_bandwidth),
    };
    let per_second = |bytes| 1e9 / (model.cost(op, bytes).units() as f64 / 64.0);
    let large = per_second(SIZE_BANDWIDTH) * SIZE_BANDWIDTH as f64;
    (per_second(SIZE_IOPS) / iops as f64, large / bandwidth as f64)
}

fn add_disks(report: &mut Report) -> Result<(), String> {
    let mut table = Table::new(
        "What the costs allow of the measured 4 KiB operations, and of the bandwidth at 128 KiB",
        &["disk", "sum: reads", "sum: writes", "two points: reads", "two points: writes"],
    );
    for disk in &published()? {
        let rates = rates(disk);
        let (sum, two_point) = (sum(&rates)?, two_point(&rates)?);
        let cell = |model, op| {
            let (small, large) = allowed(model, &rates, op);
            format!("{:.0} %, {:.0} %", small * 100.0, large * 100.0)
        };
        table.row([
            disk.name.clone(),
            cell(&sum, Op::Read),
            cell(&sum, Op::Write),
            cell(&two_point, Op::Read),
            cell(&two_point, Op::Write),
        ]);
    }
    report.tables.push(table);
    Ok(())
}

fn curves() -> Result<Chart, String> {
    let mut chart =
        Chart::new("Throughput that each cost allows (m7gd.4xlarge)", "request size, KiB", "MB/s");
    for cost in COSTS.iter().filter(|cost| !cost.open) {
        let model = (cost.model)(&RATES)?;
        let point = |kib: u64| {
            let nanos = model.cost(Op::Write, kib << 10).units() as f64 / 64.0;
            (kib as f64, (kib << 10) as f64 * 1e3 / nanos)
        };
        chart = chart.with(cost.name, Mark::Line, (1..=64).map(|step| point(step * 4)).collect());
    }
    Ok(chart.with("without scheduler", Mark::Dashed, vec![(4.0, 591.0), (256.0, 591.0)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::seeds;

    #[test]
    fn the_sum_halves_small_requests_and_two_points_do_not() {
        for seed in seeds() {
            let at = |index: usize, size| throughput(seed, &COSTS[index], size, 200).unwrap();
            // published: 290 and 581 MB/s
            assert!((at(1, 4096).0 / 290e6 - 1.0).abs() < 0.01);
            assert!((at(1, 131_072).0 / 581e6 - 1.0).abs() < 0.01);
            for size in SIZES {
                let (bandwidth, heavy) = at(3, size);
                // all that was measured: 134,600 writes/s of 4 KiB are 551 MB/s
                assert!(bandwidth >= 0.998 * 551e6, "{size}: {bandwidth}");
                assert!((heavy / (10.0 / 11.0) - 1.0).abs() < 0.001, "{size}: {heavy}");
            }
        }
    }

    #[test]
    fn the_documented_parts_are_those_of_the_models() {
        let rates = rates(&published().unwrap()[0]);
        let large = allowed(&sum(&rates).unwrap(), &rates, Op::Read).1;
        // 5,000 IOPS and 500 MB/s: DESIGN says 58 % of the bandwidth at 128 KiB
        assert!((large - 0.567).abs() < 0.01, "{large}");
        let exact = allowed(&two_point(&rates).unwrap(), &rates, Op::Read);
        assert!(exact.0 > 0.999 && exact.1 > 0.999, "{exact:?}");
    }
}
