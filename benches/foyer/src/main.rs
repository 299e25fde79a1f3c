//! Hits of a foyer disk cache alongside its inserts. One round: a line of JSON.
//!
//!     forebay-foyer DIR without|control|scheduled PROPERTIES SECONDS

mod paced;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay::properties::Properties;
use forebay::{DiskConfig, Policy, Scheduler};
use foyer::{
    BlockEngineConfig, Device, DeviceBuilder, FsDeviceBuilder, HybridCache, HybridCacheBuilder,
    HybridCachePolicy, IoEngineConfig, PsyncIoEngineConfig, RecoverMode, Statistics,
};

use crate::paced::Paced;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Cache = HybridCache<u64, Vec<u8>>;

const VALUE: usize = 16 << 10;
const FIRST: u64 = 16_000;
const READERS: u64 = 4;
/// Each reader begins a look-up so often.
const EVERY: Duration = Duration::from_millis(10);

async fn open(dir: &Path, io: Box<dyn IoEngineConfig>) -> Result<(Cache, Arc<Statistics>)> {
    let device = FsDeviceBuilder::new(dir).with_capacity(512 << 20).with_direct(true).build()?;
    let statistics = Arc::clone(device.statistics());
    let engine = BlockEngineConfig::new(device)
        .with_block_size(16 << 20)
        .with_flushers(8)
        .with_buffer_pool_size(64 << 20);
    let cache = HybridCacheBuilder::new()
        .with_policy(HybridCachePolicy::WriteOnInsertion)
        .memory(4 << 20)
        .with_shards(4)
        .with_weighter(|_, value: &Vec<u8>| value.len())
        .storage()
        .with_io_engine_config(io)
        .with_engine_config(engine)
        .with_recover_mode(RecoverMode::None)
        .build()
        .await?;
    Ok((cache, statistics))
}

/// Inserts what is looked up, no faster than the disk takes it: foyer drops what it cannot write.
async fn fill(cache: &Cache, statistics: &Statistics) {
    for key in 0..FIRST {
        cache.insert(key, vec![key as u8; VALUE]);
        if key % 16 != 15 {
            continue;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let inserted = key as usize * VALUE;
        while key > 1000 && statistics.disk_write_bytes() + (6 << 20) < inserted {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if statistics.disk_write_bytes() * 5 < inserted * 4 {
                break;
            }
        }
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// Looks recent keys up: how long hits took from when they were due, and how many look-ups there
/// were.
async fn read(
    cache: Cache,
    seed: u64,
    newest: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
) -> (Vec<Duration>, u64) {
    let (mut state, mut due, mut took, mut count) = (77 + seed, Instant::now(), Vec::new(), 0);
    while !over.load(Relaxed) {
        due += EVERY;
        tokio::time::sleep_until(due.into()).await;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let key = newest.load(Relaxed) - 1000 - state % 12_000;
        count += 1;
        if let Ok(Some(entry)) = cache.get(&key).await {
            assert_eq!(entry.value()[0], key as u8);
            took.push(due.elapsed());
        }
    }
    (took, count)
}

async fn insert(cache: Cache, newest: Arc<AtomicU64>, over: Arc<AtomicBool>) {
    let mut key = FIRST;
    while !over.load(Relaxed) {
        for _ in 0..16 {
            cache.insert(key, vec![key as u8; VALUE]);
            key += 1;
        }
        newest.store(key, Relaxed);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

fn engine(dir: &Path, mode: &str, properties: &Path) -> Result<Box<dyn IoEngineConfig>> {
    if mode == "without" {
        return Ok(PsyncIoEngineConfig::new().into());
    }
    let mut disk = DiskConfig::from_properties(Properties::load(properties)?.disk_for(dir)?);
    if mode == "control" {
        disk = disk.policy(Policy::Unlimited);
    }
    let scheduler = Scheduler::builder().disk(disk).build()?;
    let (hits, inserts) =
        (scheduler.add_class("hits", 1000)?, scheduler.add_class("inserts", 100)?);
    Ok(Paced { hits, inserts }.into())
}

async fn run(dir: &Path, mode: &str, properties: &Path, seconds: u64) -> Result<()> {
    let own = dir.join("foyer");
    let _ = std::fs::remove_dir_all(&own);
    let (cache, statistics) = open(&own, engine(dir, mode, properties)?).await?;
    fill(&cache, &statistics).await;
    let (over, newest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(FIRST)));
    let (written, began) = (statistics.disk_write_bytes(), Instant::now());
    let readers: Vec<_> = (0..READERS)
        .map(|n| tokio::spawn(read(cache.clone(), n, Arc::clone(&newest), Arc::clone(&over))))
        .collect();
    let inserter = tokio::spawn(insert(cache.clone(), newest, Arc::clone(&over)));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let written = (statistics.disk_write_bytes() - written) as f64 / 1e6;
    let rate = written / began.elapsed().as_secs_f64();
    over.store(true, Relaxed);
    inserter.await?;
    let (mut took, mut count) = (Vec::new(), 0);
    for reader in readers {
        let (more, lookups) = reader.await?;
        took.extend(more);
        count += lookups;
    }
    took.sort();
    let last = took.len().checked_sub(1).ok_or("no look-up was a hit")?;
    let at = |permille: usize| took[last * permille / 1000].as_secs_f64() * 1e3;
    println!(
        r#"{{"mode": "{mode}", "p50_ms": {:.2}, "p99_ms": {:.2}, "p999_ms": {:.2}, "mb_s": {rate:.2}, "hits": {:.1}}}"#,
        at(500),
        at(990),
        at(999),
        100.0 * took.len() as f64 / count as f64
    );
    cache.close().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, mode, properties, seconds] = &arguments[..] else {
        return Err("forebay-foyer DIR without|control|scheduled PROPERTIES SECONDS".into());
    };
    run(Path::new(dir), mode, Path::new(properties), seconds.parse()?).await
}
