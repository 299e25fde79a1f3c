//! Mixes of reads and writes under a region: what is let through, and what each class gets of it.

use std::time::Duration;

use forebay_core::{DiskModel, DiskRates, MIX_PRICES, MixPrices, PRICE_ONE, Policy, Time};
use forebay_sim::simulation::{Outcome, Period, SchedulerConfig, SimulationConfig};

use crate::fixture::{MILLI, TestDisk, config, reads, run};

const RATES: DiskRates = DiskRates {
    read_iops: 100_000,
    write_iops: 100_000,
    read_bandwidth: 1_000_000_000,
    write_bandwidth: 600_000_000,
};

/// (u^p + (1 - u)^p)^(1/p) at the part u of writes.
fn norm(part: f64, p: f64) -> f64 {
    (part.powf(p) + (1.0 - part).powf(p)).powf(1.0 / p)
}

fn prices(p: f64) -> MixPrices {
    MixPrices::new(core::array::from_fn(|step| {
        let price = norm(step as f64 / (MIX_PRICES - 1) as f64, p);
        (price * f64::from(PRICE_ONE)).round() as u32
    }))
}

fn writes(name: &str, size: &str, depth: u32, shares: u32) -> String {
    reads(name, "all", depth, size, shares).replace("randread", "randwrite")
}

/// Of a disk that does far more than its model says, so that the model alone binds.
fn fast(text: &str, shards: u32, p: Option<f64>) -> SimulationConfig {
    let mut config = config(text, shards, TestDisk::new(2_000_000, 20_000_000_000));
    config.scheduler = SchedulerConfig::by_figures();
    let model = DiskModel::from_rates(&RATES).unwrap();
    config.scheduler.model = Some(model.with_mix_prices(p.map(prices)));
    config
}

fn spent(outcome: &Outcome) -> f64 {
    outcome.result.disk.as_ref().unwrap().consumption_mean
}

/// Disk time that each job got in a second, as the model has it.
fn disk_times(outcome: &Outcome, costs: &[f64]) -> Vec<f64> {
    outcome.result.classes.iter().zip(costs).map(|(class, cost)| class.iops * cost).collect()
}

const READ_SECONDS: f64 = 1.0 / 100_000.0;
const WRITE_SECONDS: f64 = 131_072.0 / 600_000_000.0;

#[test]
fn a_steady_mix_gets_what_the_region_holds_and_shares_stay() {
    for p in [0.4, 1.0, 2.0, 60.0] {
        for (read_shares, write_shares) in [(300, 100), (100, 100), (100, 300), (100, 700)] {
            for shards in [1, 2] {
                let text = reads("reads", "all", 64, "4kB", read_shares)
                    + &writes("writes", "128kB", 16, write_shares);
                let outcome = run(fast(&text, shards, Some(p)));
                let part = f64::from(write_shares) / f64::from(read_shares + write_shares);
                let expected = 1.0 / norm(part, p);
                let what = format!("p {p}, {part} writes, {shards} shards");
                let error = spent(&outcome) / expected - 1.0;
                let got = disk_times(&outcome, &[READ_SECONDS, WRITE_SECONDS]);
                let share = got[1] / (got[0] + got[1]) / part - 1.0;
                println!("{what}: off by {:.2} %, shares by {:.2} %", error * 1e2, share * 1e2);
                assert!(error.abs() < 0.01, "{what}: off by {error}");
                assert!(share.abs() < 0.02, "{what}: shares off by {share}");
            }
        }
    }
}

#[test]
fn a_plain_region_changes_nothing_at_all() {
    let text = reads("reads", "all", 64, "4kB", 300) + &writes("writes", "128kB", 16, 100);
    for shards in [1, 3] {
        let [plain, priced] = [None, Some(1.0)].map(|p| run(fast(&text, shards, p)).result);
        assert_eq!(plain, priced, "{shards} shards");
    }
}

#[test]
fn reads_alone_and_writes_alone_are_as_without_a_region() {
    let of_reads = reads("a", "all", 64, "4kB", 300) + &reads("b", "all", 16, "128kB", 100);
    for text in [of_reads.clone(), of_reads.replace("randread", "randwrite")] {
        let [plain, priced] = [None, Some(0.4)].map(|p| run(fast(&text, 2, p)).result);
        assert_eq!(plain, priced, "{text}");
    }
}

/// All reads for a tenth of a second, then all writes, and so on.
#[test]
fn a_load_that_alternates_is_neither_starved_nor_let_through_at_the_price_of_before() {
    let mut text = String::new();
    let mut schedule = Vec::new();
    for turn in 0..10 {
        let (name, from) = (format!("job{turn}"), Time::from_nanos(turn * 100 * MILLI));
        text += &match turn % 2 {
            0 => reads(&name, "all", 64, "4kB", 100),
            _ => writes(&name, "128kB", 16, 100),
        };
        let to = Some(from.plus_nanos(100 * MILLI));
        schedule.push(Period { job: name, from, to });
    }
    for (p, least, most) in
        [(0.4, 0.82, 1.0), (0.78, 0.92, 1.0), (1.0, 0.99, 1.01), (60.0, 0.99, 1.08)]
    {
        let mut config = fast(&text, 2, Some(p));
        config.warmup = Duration::ZERO;
        config.schedule = schedule.clone();
        let spent = spent(&run(config));
        println!("p {p}: {:.1} % of the disk time", spent * 1e2);
        assert!((least..=most).contains(&spent), "p {p}: {spent}");
    }
}

#[test]
fn a_disk_that_answers_late_gets_the_window_that_its_region_needs() {
    for p in [1.0, 2.0, 60.0] {
        let text = reads("reads", "all", 1200, "4kB", 100) + &writes("writes", "128kB", 100, 100);
        let mut disk = TestDisk::new(2_000_000, 20_000_000_000);
        disk.latency = 5 * MILLI;
        let mut config = config(&text, 1, disk);
        let model = DiskModel::from_rates(&RATES).unwrap();
        config.scheduler.model = Some(model.with_mix_prices(Some(prices(p))));
        let latency_goal = Duration::ZERO;
        config.scheduler.policy = Some(Policy::PaceWindow { latency_goal, base_latency: None });
        config.warmup = Duration::from_secs(5);
        config.duration = Duration::from_secs(5);
        let used = spent(&run(config)) * norm(0.5, p);
        println!("p = {p}: {:.1} % of what the region holds", used * 100.0);
        assert!(used > 0.9, "p = {p}: {used}");
    }
}
