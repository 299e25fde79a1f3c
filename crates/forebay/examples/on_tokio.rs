//! Tasks on tokio: files through forebay, answers as futures.
//!
//! `cargo run --release -p forebay --example on_tokio` prints, for instance:
//!
//! ```text
//! 67108864 bytes written alongside 1000 reads
//! reads: p50 156.89µs, p99 2.67ms
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use forebay::{AlignedBuf, BufResult, Class, DiskConfig, DiskRates, File, FileOptions, Scheduler};

const RATES: DiskRates = DiskRates {
    read_iops: 20_000,
    write_iops: 10_000,
    read_bandwidth: 200_000_000,
    write_bandwidth: 100_000_000,
};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let disk = DiskConfig::new("data", RATES).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).build()?;
    let queries = scheduler.add_class("queries", 1000)?;
    let compaction = scheduler.add_class("compaction", 100)?;
    let options = FileOptions::new().read(true).write(true).create(true);
    let file = scheduler.open(dir.path().join("data"), &options)?;

    let writers: Vec<_> = (0..8)
        .map(|number| tokio::spawn(write(file.clone(), compaction.clone(), number)))
        .collect();
    let reads = tokio::spawn(read(file.clone(), queries));
    let latencies = reads.await??;
    let mut written = 0;
    for writer in writers {
        written += writer.await??;
    }
    println!("{written} bytes written alongside {} reads", latencies.len());
    println!("reads: p50 {:.2?}, p99 {:.2?}", latencies[499], latencies[989]);
    Ok(())
}

/// Writes 8 MB in requests of 128 KiB, one after the other.
async fn write(file: File, class: Class, number: u64) -> Result<u64, Failure> {
    let mut buffer = AlignedBuf::new(128 << 10, file.direct_file().memory_alignment())?;
    let mut written = 0;
    for block in 0..64 {
        let offset = (number * 64 + block) * (128 << 10);
        let BufResult(result, returned) = file.write_at(&class, buffer, offset).await;
        written += result? as u64;
        buffer = returned;
    }
    Ok(written)
}

/// Reads 4 KiB a thousand times, each a millisecond after the one before.
async fn read(file: File, class: Class) -> Result<Vec<Duration>, Failure> {
    let mut buffer = AlignedBuf::new(4096, file.direct_file().memory_alignment())?;
    let mut latencies = Vec::new();
    for block in 0..1000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let begin = Instant::now();
        let BufResult(result, returned) = file.read_at(&class, buffer, block * 4096).await;
        result?;
        buffer = returned;
        latencies.push(begin.elapsed());
    }
    latencies.sort_unstable();
    Ok(latencies)
}
