//! A program with threads: a permit around each read and write.
//!
//! `cargo run --release -p forebay --example sync` prints, for instance:
//!
//! ```text
//! queries    1000 permits, waited p50 0.098 ms, p99 0.754 ms
//! backup      400 permits, waited p50 0.688 ms, p99 0.754 ms
//! ```

use std::error::Error;
use std::os::unix::fs::FileExt;
use std::{fs::File, thread};

use forebay::{DiskConfig, DiskRates, Op, Scheduler};

const RATES: DiskRates = DiskRates {
    read_iops: 20_000,
    write_iops: 10_000,
    read_bandwidth: 200_000_000,
    write_bandwidth: 100_000_000,
};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let disk = DiskConfig::new("data", RATES).mountpoint(dir.path());
    let scheduler = Scheduler::builder().disk(disk).build()?;
    let queries = scheduler.add_class("queries", 1000)?;
    let backup = scheduler.add_class("backup", 100)?;
    let file =
        File::options().read(true).write(true).create_new(true).open(dir.path().join("data"))?;

    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..400u64).try_for_each(|block| -> std::io::Result<()> {
                let permit = backup.admit(Op::Write, 65_536)?;
                let result = file.write_all_at(&[7; 65_536], block * 65_536);
                permit.complete(&result);
                result
            })
        });
        for block in 0..1_000 {
            let _permit = queries.admit(Op::Read, 4096)?;
            file.read_at(&mut [0; 4096], block * 4096)?;
        }
        writer.join().map_err(|_| "the writer panicked")??;
        Ok::<_, Box<dyn Error>>(())
    })?;
    let disk = scheduler.snapshot().disks.into_iter().find(|disk| disk.name == "data");
    for class in disk.iter().flat_map(|disk| &disk.classes) {
        if class.total.count() == 0 {
            continue;
        }
        let millis = |permille| class.in_queue.percentile_nanos(permille).unwrap_or(0) as f64 / 1e6;
        let (count, median, p99) = (class.in_queue.count(), millis(500), millis(990));
        println!("{:9} {count:5} permits, waited p50 {median:.3} ms, p99 {p99:.3} ms", class.name);
    }
    Ok(())
}
