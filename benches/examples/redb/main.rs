//! redb, an embedded database, over forebay: point reads alongside bulk loaders.
//!
//! Several loaders fill databases of their own while others read rows of
//! another at random; all are on one disk. The same is done without and with
//! the scheduler, several times in turn.
//!
//! On a simulated disk in real time, as root or with fusermount3:
//!
//! ```text
//! mkdir /tmp/disk
//! cargo run --release -- disk serve --disk examples/i3en-scaled.yaml \
//!     --memory 4GB --io-properties /tmp/io-properties.yaml /tmp/disk
//! cargo run --release --manifest-path benches/Cargo.toml --example redb -- /tmp/disk/disk
//! /tmp/io-properties.yaml
//! ```
//!
//! On a directory of your own: `-- DIR [IO-PROPERTIES]`. Without io-properties
//! the disk is taken for the vendor's figures below.
//!
//! It prints, on a machine with two cores that was building something else:
//!
//! ```text
//!                 reads p50    reads p99         loaded
//! unscheduled      25.01 ms     76.29 ms      13.9 MB/s
//! scheduled         3.64 ms     10.53 ms      13.9 MB/s
//! with the scheduler: reads p99 7.2 times lower, 100 % of the loading
//! ```

mod backend;

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use backend::Region;
use forebay::properties::Properties;
use forebay::{Class, DiskConfig, DiskRates, File, FileOptions, Policy, Scheduler};
use redb::{Builder, Database, ReadableDatabase, TableDefinition};

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
/// A row that is read.
const ROW_LEN: usize = 1000;
const ROWS_COUNT: u64 = 40_000;
/// A row that is loaded; each loader overwrites its rows again and again.
const BULK_LEN: usize = 100_000;
const BULK_ROWS: u64 = 40;
const BULK_ROWS_PER_COMMIT: u64 = 10;
const LOADERS: u64 = 16;
const READERS: u64 = 8;
/// A reader wants a row so often: rarely enough for it to be answered without
/// the scheduler, too.
const READ_EVERY: Duration = Duration::from_millis(250);
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(5);
/// Each database has so much of the file.
const REGION_LEN: u64 = 192 << 20;

type Failure = Box<dyn Error + Send + Sync>;

/// A scheduler with the databases on the disk, one to read and several to load.
struct Side {
    name: &'static str,
    reads: Class,
    bulk: Class,
    table: Database,
    loads: Vec<Database>,
    latencies: Vec<Duration>,
    loaded: u64,
}

fn main() -> Result<(), Failure> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let Some(path) = arguments.next() else {
        return Err("usage: redb FILE|DIR [IO-PROPERTIES]".into());
    };
    let properties = arguments.next().map(|file| Properties::load(&file)).transpose()?;
    let is_dir = path.is_dir();
    let file = if is_dir { path.join("forebay-redb-example") } else { path };
    let run = || {
        let mut sides = [
            Side::new("unscheduled", &file, properties.as_ref(), Some(Policy::Unlimited), 0)?,
            Side::new("scheduled", &file, properties.as_ref(), None, 1 + LOADERS)?,
        ];
        for _ in 0..ROUNDS {
            for side in &mut sides {
                side.round()?;
            }
        }
        print(&mut sides);
        Ok(())
    };
    let result = run();
    if is_dir {
        fs::remove_file(&file)?;
    }
    result
}

impl Side {
    fn new(
        name: &'static str,
        path: &Path,
        properties: Option<&Properties>,
        policy: Option<Policy>,
        first_region: u64,
    ) -> Result<Self, Failure> {
        let options = FileOptions::new().read(true).write(true).create(true);
        // the file has to be there to be found on its disk
        options.open(path)?;
        let mut disk = match properties {
            Some(properties) => DiskConfig::from_properties(properties.disk_for(path)?),
            None => DiskConfig::new("vendor's figures", RATES).mountpoint(path),
        };
        if let Some(policy) = policy {
            disk = disk.policy(policy);
        }
        let scheduler = Scheduler::builder().disk(disk).build()?;
        let (reads, bulk) =
            (scheduler.add_class("reads", 1000)?, scheduler.add_class("bulk", 100)?);
        let file = scheduler.open(path, &options)?;
        let database = |number: u64| database(&scheduler, &file, first_region + number);
        let _entered = bulk.enter();
        let (table, loads) = (database(0)?, (1..=LOADERS).map(database).collect::<Result<_, _>>()?);
        insert(&table, 0..ROWS_COUNT, ROW_LEN)?;
        Ok(Self { name, reads, bulk, table, loads, latencies: Vec::new(), loaded: 0 })
    }

    /// Reads and loads for a while.
    fn round(&mut self) -> Result<(), Failure> {
        let (reads, bulk, table) = (&self.reads, &self.bulk, &self.table);
        let begin = Instant::now();
        let (latencies, loaded) = thread::scope(|scope| {
            let load = |database| move || load(database, bulk, begin + ROUND);
            let loaders: Vec<_> =
                self.loads.iter().map(|database| scope.spawn(load(database))).collect();
            let read = |seed| move || read(table, reads, seed, begin);
            let readers: Vec<_> = (1..=READERS).map(|seed| scope.spawn(read(seed))).collect();
            let latencies: Result<Vec<_>, _> = readers.into_iter().map(joined).collect();
            let loaded: Result<Vec<_>, _> = loaders.into_iter().map(joined).collect();
            Ok::<_, Failure>((latencies?.concat(), loaded?.iter().sum::<u64>()))
        })?;
        self.latencies.extend(latencies);
        self.loaded += loaded;
        Ok(())
    }

    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
        self.latencies.get(rank - 1).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }

    fn loaded_per_second(&self) -> f64 {
        self.loaded as f64 / 1e6 / (ROUND.as_secs_f64() * ROUNDS as f64)
    }
}

/// Vendor's figures are enough to begin with: these are of a usual NVMe disk.
const RATES: DiskRates = DiskRates {
    read_iops: 400_000,
    write_iops: 100_000,
    read_bandwidth: 3_000_000_000,
    write_bandwidth: 1_500_000_000,
};

fn database(scheduler: &Scheduler, file: &File, number: u64) -> Result<Database, Failure> {
    let region = Region::new(scheduler, file.clone(), number * REGION_LEN, REGION_LEN);
    // a region may hold an older database, which redb would open
    region.clear()?;
    Ok(Builder::new().set_cache_size(1 << 20).create_with_backend(region)?)
}

fn insert(database: &Database, rows: Range<u64>, len: usize) -> Result<(), Failure> {
    let row = vec![7; len];
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(ROWS)?;
        for key in rows {
            table.insert(key, row.as_slice())?;
        }
    }
    Ok(transaction.commit()?)
}

/// Overwrites rows until then; returns how many bytes.
fn load(database: &Database, class: &Class, until: Instant) -> Result<u64, Failure> {
    let _entered = class.enter();
    let (mut loaded, mut first) = (0, 0);
    while Instant::now() < until {
        insert(database, first..first + BULK_ROWS_PER_COMMIT, BULK_LEN)?;
        first = (first + BULK_ROWS_PER_COMMIT) % BULK_ROWS;
        loaded += BULK_ROWS_PER_COMMIT * BULK_LEN as u64;
    }
    Ok(loaded)
}

/// Reads rows at fixed times; a read counts from when it was due.
fn read(
    database: &Database,
    class: &Class,
    seed: u64,
    begin: Instant,
) -> Result<Vec<Duration>, Failure> {
    let _entered = class.enter();
    let mut latencies = Vec::new();
    let mut key = seed;
    for number in 1.. {
        let due = READ_EVERY * number;
        if due > ROUND {
            break;
        }
        thread::sleep((begin + due).saturating_duration_since(Instant::now()));
        // a multiplicative generator goes through all rows in no order
        key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let table = database.begin_read()?.open_table(ROWS)?;
        let row = table.get((key >> 33) % ROWS_COUNT)?.ok_or("a row is missing")?;
        if row.value().len() != ROW_LEN {
            return Err("a row is not as it was written".into());
        }
        latencies.push(begin.elapsed().saturating_sub(due));
    }
    Ok(latencies)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))
}

fn print(sides: &mut [Side; 2]) {
    println!("{:12} {:>12} {:>12} {:>14}", "", "reads p50", "reads p99", "loaded");
    for side in sides.iter_mut() {
        side.latencies.sort_unstable();
        let (p50, p99) = (side.percentile(50), side.percentile(99));
        let loaded = side.loaded_per_second();
        println!("{:12} {p50:9.2} ms {p99:9.2} ms {loaded:9.1} MB/s", side.name);
    }
    let [without, with] = sides;
    let p99 = without.percentile(99) / with.percentile(99);
    let loaded = with.loaded_per_second() / without.loaded_per_second() * 100.0;
    println!("with the scheduler: reads p99 {p99:.1} times lower, {loaded:.0} % of the loading");
}
