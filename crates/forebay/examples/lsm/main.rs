//! An LSM engine whose files go through the page cache, and what scheduling does for it: point reads
//! alongside loaders, flushes and compaction, on one disk.
//!
//! What changes in such an engine, in the calls that are in `io.rs`:
//!
//! ```diff
//! +let scheduler = Scheduler::from_file("forebay.yaml".as_ref())?; // and its classes
//! -table.write_all(&rows)?;                       // table: File
//! +table.write_all(&rows)?;                       // table: tables.buffered_writer(file)?
//! -file.read_exact_at(&mut row, offset)?;
//! +queries.read_at(&file, &mut row, offset)?;     // tables.read_at in compaction
//! -log.sync_data()?;
//! +commits.sync_data(&log)?;
//! ```
//!
//! ```text
//! cargo run --release -p forebay --example lsm -- DIR IO-PROPERTIES [ROUNDS] [SECONDS] [COLUMN...]
//! ```
//!
//! in turns, this many rounds of each column (5 rounds of 8 s, all columns):
//! `plain`, without the library; `permits`, around the same calls, with `Policy::Unlimited`, which
//! orders nothing; `control`, with the changes and `Policy::Unlimited`; `scheduled`, with the
//! changes. `docs/measure/lsm-served` does so on a simulated disk with ext4.

mod engine;
mod io;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use std::{env, fs};

use engine::{Engine, KEYS};
use forebay::properties::Properties;
use forebay::{DiskConfig, Policy, Scheduler};
use io::{Classes, Io};
use table::ROW_LEN;

const COLUMNS: [&str; 4] = ["plain", "permits", "control", "scheduled"];
const LOADERS: u64 = 2;
const READERS: u64 = 4;
/// A reader wants a row so often.
const READ_EVERY: Duration = Duration::from_millis(20);

type Failure = Box<dyn Error + Send + Sync>;

/// Reads at p50, p99 and p99.9 in milliseconds, and MB/s loaded.
type Figures = [f64; 4];

fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let (Some(dir), Some(properties)) = (arguments.next(), arguments.next()) else {
        return Err("usage: lsm DIR IO-PROPERTIES [ROUNDS] [SECONDS] [COLUMN...]".into());
    };
    let rounds = arguments.next().map_or(Ok(5), |rounds| rounds.parse::<usize>())?;
    let length = Duration::from_secs(arguments.next().map_or(Ok(8), |seconds| seconds.parse())?);
    let mut columns: Vec<String> = arguments.collect();
    if columns.is_empty() {
        columns = COLUMNS.map(String::from).to_vec();
    }
    let properties = Properties::load(Path::new(&properties))?;
    let mut figures = vec![Vec::new(); columns.len()];
    for _ in 0..rounds {
        for (column, figures) in columns.iter().zip(&mut figures) {
            figures.push(round(column, Path::new(&dir), &properties, length)?);
        }
    }
    println!(
        "{:10} {:>22} {:>22} {:>22} {:>22}",
        "", "p50 ms", "p99 ms", "p99.9 ms", "MB/s loaded"
    );
    for (column, figures) in columns.iter().zip(&figures) {
        let cells = [0, 1, 2, 3].map(|n| spread(figures.iter().map(|figures| figures[n])));
        println!("{column:10} {:>22} {:>22} {:>22} {:>22}", cells[0], cells[1], cells[2], cells[3]);
    }
    Ok(())
}

/// The median, the least and the most.
fn spread(figures: impl Iterator<Item = f64>) -> String {
    let mut all: Vec<_> = figures.collect();
    all.sort_by(f64::total_cmp);
    let (first, median, last) = (all[0], all[all.len() / 2], all[all.len() - 1]);
    format!("{median:.2} ({first:.2}-{last:.2})")
}

/// Which I/O a column has, for an engine in `dir`.
fn io_of(column: &str, dir: &Path, properties: &Properties) -> Result<Io, Failure> {
    let mut disk = DiskConfig::from_properties(properties.disk_for(dir)?).mountpoint(dir);
    if column != "scheduled" {
        disk = disk.policy(Policy::Unlimited);
    }
    let scheduler = Scheduler::builder().disk(disk).build()?;
    let on = scheduler.disk_of(dir)?;
    let class = |name, shares| Ok::<_, Failure>(scheduler.add_class(name, shares)?.on(&on)?);
    let classes = Classes {
        queries: class("queries", 1000)?,
        log: class("log", 1000)?,
        tables: class("tables", 100)?,
    };
    match column {
        "plain" => Ok(Io::Plain),
        "permits" => Ok(Io::Permits(classes)),
        "control" | "scheduled" => Ok(Io::Changed(classes)),
        _ => Err(format!("no column {column}: {COLUMNS:?}").into()),
    }
}

/// A new engine that is loaded and read for a while.
fn round(
    column: &str,
    dir: &Path,
    properties: &Properties,
    length: Duration,
) -> Result<Figures, Failure> {
    let own: PathBuf = dir.join(format!("lsm-{}", std::process::id()));
    fs::create_dir(&own)?;
    let result = io_of(column, &own, properties)
        .and_then(|io| Ok(Engine::new(io, own.clone())?))
        .and_then(|engine| run(&engine, length));
    fs::remove_dir_all(&own)?;
    let figures = result?;
    eprintln!("{column}: {figures:.2?}");
    Ok(figures)
}

fn run(engine: &Engine, length: Duration) -> Result<Figures, Failure> {
    let (loaded, begin) = (AtomicU64::new(0), Instant::now());
    let mut latencies = thread::scope(|scope| {
        let background = [scope.spawn(|| engine.flush()), scope.spawn(|| engine.compact())];
        let loaded = &loaded;
        let load = |seed| scope.spawn(move || load(engine, seed, loaded));
        let loaders: Vec<_> = (0..LOADERS).map(load).collect();
        let read = |seed| scope.spawn(move || read(engine, seed, begin));
        let readers: Vec<_> = (1..=READERS).map(read).collect();
        thread::sleep(length);
        engine.is_over.store(true, Ordering::Relaxed);
        let latencies: Result<Vec<_>, _> = readers.into_iter().map(joined).collect();
        loaders.into_iter().chain(background).try_for_each(joined)?;
        Ok::<_, std::io::Error>(latencies?.concat())
    })?;
    latencies.sort();
    let at =
        |permille: usize| latencies[(latencies.len() - 1) * permille / 1000].as_secs_f64() * 1e3;
    let rate = loaded.into_inner() as f64 / 1e6 / begin.elapsed().as_secs_f64();
    Ok([at(500), at(990), at(999), rate])
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The next random key.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % KEYS
}

fn load(engine: &Engine, mut state: u64, loaded: &AtomicU64) -> std::io::Result<()> {
    while !engine.is_over.load(Ordering::Relaxed) {
        engine.put(next(&mut state), state as u8)?;
        loaded.fetch_add(ROW_LEN as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads rows at fixed times; a read counts from when it was due.
fn read(engine: &Engine, mut state: u64, begin: Instant) -> std::io::Result<Vec<Duration>> {
    let (mut row, mut took) = ([0; ROW_LEN], Vec::new());
    let mut due = begin + READ_EVERY / READERS as u32 * state as u32;
    while !engine.is_over.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let key = next(&mut state);
        if engine.get(key, &mut row)? {
            assert_eq!(row[..8], key.to_le_bytes(), "the row that was asked for");
            took.push(due.elapsed());
        }
        due += READ_EVERY;
    }
    Ok(took)
}
