//! What an endpoint costs its host program while good and bad clients have at
//! it: 1,000 scrapes per second, alongside clients that send nothing, half a
//! request or garbage, or do not read their answer.
//!
//! `cargo run --release -p forebay --features endpoint --example scrape_storm`,
//! with the seconds as an argument if not 10, prints, for instance:
//!
//! ```text
//! 1000 scrapes/s, 0 failed, longest 23.8ms
//! alongside 6791 connections of bad clients
//! resident: 3948 KiB before, 4572 KiB after
//! admissions: 1427560/s before, 2222874/s during
//! ```
//!
//! Admissions per second say that the host goes on; on a machine with other
//! work they vary by more than the endpoint costs.

mod storm;

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forebay::metrics::{Endpoint, EndpointConfig, open_metrics};
use forebay::{Class, DiskConfig, DiskRates, Op, Scheduler};

const PER_SECOND: u32 = 1_000;
/// The endpoint's memory is bounded by its connections and their answers.
const GROWTH_MAX_KIB: u64 = 32 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u32 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    // fast enough never to bind: what is measured is the processor's time
    let rate = 10_000_000_000;
    let rates = DiskRates {
        read_iops: 10_000_000,
        write_iops: 10_000_000,
        read_bandwidth: rate * 10,
        write_bandwidth: rate * 10,
    };
    let scheduler = Scheduler::builder().disk(DiskConfig::new("data", rates)).build()?;
    let class = scheduler.add_class("queries", 100)?;
    let observed = scheduler.clone();
    let config =
        EndpointConfig { address: ([127, 0, 0, 1], 0).into(), ..EndpointConfig::default() };
    let endpoint = Endpoint::start(&config, move || open_metrics(observed.snapshot()))?;

    let (admitted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let seen = thread::scope(|scope| {
        scope.spawn(|| admit(&class, &admitted, &over));
        let rate = |work: &mut dyn FnMut()| {
            let (start, before) = (Instant::now(), admitted.load(Ordering::Relaxed));
            work();
            let count = admitted.load(Ordering::Relaxed) - before;
            (count as f64 / start.elapsed().as_secs_f64(), start.elapsed())
        };
        let (alone, _) = rate(&mut || thread::sleep(Duration::from_secs(1)));
        let rss_before = rss_kib();
        let mut seen = storm::StormResult::default();
        let (during, took) =
            rate(&mut || seen = storm::storm(endpoint.address(), PER_SECOND * seconds, PER_SECOND));
        let rss_after = rss_kib();
        over.store(true, Ordering::Relaxed);
        let scrapes = f64::from(seen.scrapes) / took.as_secs_f64();
        println!("{scrapes:.0} scrapes/s, {} failed, longest {:.1?}", seen.failures, seen.longest);
        println!("alongside {} connections of bad clients", seen.bad);
        println!("resident: {rss_before} KiB before, {rss_after} KiB after");
        println!("admissions: {alone:.0}/s before, {during:.0}/s during");
        (seen, rss_after.saturating_sub(rss_before))
    });
    let (seen, growth) = seen;
    if seen.failures > 0 || growth > GROWTH_MAX_KIB {
        return Err("a scrape failed, or memory grew".into());
    }
    Ok(())
}

/// Asks for permits until it is over.
fn admit(class: &Class, admitted: &AtomicU64, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        match class.admit(Op::Read, 4096) {
            Ok(permit) => drop(permit),
            Err(error) => return eprintln!("{error}"),
        }
        admitted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Resident memory of this process.
fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0)
}
