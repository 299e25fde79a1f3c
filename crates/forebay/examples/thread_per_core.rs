//! A thread per core, each with an I/O queue and an engine of its own; shares
//! hold across the threads all the same.
//!
//! `cargo run --release -p forebay --example thread_per_core` prints, for
//! instance:
//!
//! ```text
//! serving   300 shares:  3501 reads/s
//! scrub     100 shares:  1260 reads/s
//! 2.78 to one
//! ```

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use forebay::engine::{EngineConfig, Operation};
use forebay::{AlignedBuf, Class, DirectFile, Disk, DiskConfig, DiskRates, FileOptions, Scheduler};

/// Slower than any disk of today, so that the two threads compete.
const RATES: DiskRates = DiskRates {
    read_iops: 5_000,
    write_iops: 5_000,
    read_bandwidth: 100_000_000,
    write_bandwidth: 100_000_000,
};
const BLOCKS: u64 = 1024;
const DEPTH: usize = 16;
const LENGTH: Duration = Duration::from_secs(2);

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7; BLOCKS as usize * 4096])?;
    let config = DiskConfig::new("data", RATES).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(config).build()?;
    let classes = [scheduler.add_class("serving", 300)?, scheduler.add_class("scrub", 100)?];
    let disk = scheduler.disk_of(&path)?;
    let file = FileOptions::new().read(true).open(&path)?;

    let done: Vec<u64> = thread::scope(|scope| {
        let run = |class| (file.clone(), disk.clone(), class);
        let threads = classes
            .iter()
            .map(run)
            .map(|(file, disk, class)| scope.spawn(move || serve(&disk, class, &file)));
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(_) => Err("a thread panicked".into()),
        });
        joined.collect::<Result<_, Failure>>()
    })?;
    for (class, done) in classes.iter().zip(&done) {
        let per_second = *done as f64 / LENGTH.as_secs_f64();
        println!("{:8} {:4} shares: {per_second:5.0} reads/s", class.name(), class.shares());
    }
    println!("{:.2} to one", done[0] as f64 / done[1] as f64);
    Ok(())
}

/// One thread's loop: keeps some reads going, in its own queue.
fn serve(disk: &Disk, class: &Class, file: &DirectFile) -> Result<u64, Failure> {
    let mut shard = disk.shard(&EngineConfig::default())?;
    let mut buffers = (0..DEPTH)
        .map(|_| AlignedBuf::new(4096, file.memory_alignment()))
        .collect::<Result<Vec<_>, _>>()?;
    let (begin, mut done, mut block) = (Instant::now(), 0, 0);
    while begin.elapsed() < LENGTH {
        while let Some(buffer) = buffers.pop() {
            let read = Operation::read(file.clone(), block % BLOCKS * 4096, buffer);
            shard.submit(class, read).map_err(|(error, _)| error)?;
            block += 7;
        }
        shard.run_once(None)?;
        while let Some(finished) = shard.pop() {
            finished.result?;
            done += 1;
            buffers.extend(finished.operation.into_buffer());
        }
    }
    Ok(done)
}
