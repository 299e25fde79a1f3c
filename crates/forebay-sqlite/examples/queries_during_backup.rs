//! Point reads and commits on one database, alongside a backup of another one on the same disk.
//!
//! `queries_during_backup fill DIR` makes the databases; `queries_during_backup run DIR MODE
//! PROPERTIES` prints a line of JSON. MODE is `without`, `control` (forebay with
//! `Policy::Unlimited`) or `scheduled`.
#![cfg_attr(feature = "extension", allow(unused, reason = "SQLite is then that of a host"))]

use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use forebay::properties::Properties;
use forebay::{DiskConfig, Policy, Scheduler};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::Advice;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROWS: i64 = 300_000;
const BACKUP_ROWS: i64 = 400_000;
const ROW_LEN: usize = 1000;
const ROWS_OF_A_COMMIT: u32 = 256;
const READERS: u64 = 4;
const BETWEEN_READS: Duration = Duration::from_millis(10);

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    const fn row(&mut self) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % ROWS as u64) as i64
    }
}

fn open(path: &Path, parameters: &str) -> Fallible<Connection> {
    let uri = format!("file:{}?{parameters}", path.display());
    let connection = Connection::open_with_flags(uri, OpenFlags::default())?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -1024",
    )?;
    Ok(connection)
}

fn fill(path: &Path, rows: i64) -> Fallible<()> {
    let mut connection = open(path, "")?;
    let all = connection.transaction()?;
    all.execute("CREATE TABLE rows(id INTEGER PRIMARY KEY, v BLOB) STRICT", [])?;
    let mut insert = all.prepare("INSERT INTO rows VALUES(?, ?)")?;
    for id in 0..rows {
        insert.execute((id, [7u8; ROW_LEN]))?;
    }
    drop(insert);
    all.commit()?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(Into::into)
}

/// Evicts the file from the page cache.
fn evict(path: &Path) -> Fallible<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Commits until `stop` is set; returns the latency of each commit.
fn update(path: &Path, stop: &AtomicBool) -> Fallible<Vec<Duration>> {
    let mut connection = open(path, "")?;
    let (mut random, mut took) = (Random(77), Vec::new());
    while !stop.load(Relaxed) {
        let began = Instant::now();
        let all = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut update = all.prepare_cached("UPDATE rows SET v = ? WHERE id = ?")?;
            for _ in 0..ROWS_OF_A_COMMIT {
                update.execute(([9u8; ROW_LEN], random.row()))?;
            }
        }
        all.commit()?;
        took.push(began.elapsed());
    }
    Ok(took)
}

/// Reads a row at each multiple of [`BETWEEN_READS`]; returns the latencies since these times.
fn read(path: &Path, number: u64, stop: &AtomicBool) -> Fallible<Vec<Duration>> {
    let connection = open(path, "")?;
    let mut query = connection.prepare("SELECT v FROM rows WHERE id = ?")?;
    let (mut random, mut took, mut due) = (Random(1_234_567 + number), Vec::new(), Instant::now());
    while !stop.load(Relaxed) {
        due += BETWEEN_READS;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let row: Vec<u8> = query.query_row([random.row()], |row| row.get(0))?;
        assert_eq!(row.len(), ROW_LEN);
        took.push(due.elapsed());
    }
    Ok(took)
}

/// Copies a database; returns bytes per second.
fn back_up(dir: &Path) -> Fallible<f64> {
    let (began, to) = (Instant::now(), dir.join("copy.db"));
    let connection = open(&dir.join("backup.db"), "forebay_class=backup")?;
    connection.execute("VACUUM INTO ?", [format!("file:{}?forebay_class=backup", to.display())])?;
    File::open(&to)?.sync_all()?;
    let rate = fs::metadata(&to)?.len() as f64 / began.elapsed().as_secs_f64();
    fs::remove_file(&to)?;
    Ok(rate)
}

fn percentile(took: &mut [Duration], percent: usize) -> f64 {
    took.sort();
    took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3
}

fn register(dir: &Path, mode: &str, properties: &str) -> Fallible<()> {
    if mode == "without" {
        return Ok(());
    }
    let mut disk =
        DiskConfig::from_properties(Properties::load(properties.as_ref())?.disk_for(dir)?);
    if mode == "control" {
        disk = disk.policy(Policy::Unlimited);
    }
    forebay_sqlite::register(&Scheduler::builder().disk(disk).build()?)?;
    Ok(())
}

fn run(dir: &Path, mode: &str, properties: &str) -> Fallible<()> {
    register(dir, mode, properties)?;
    let rows = dir.join("rows.db");
    evict(&rows)?;
    evict(&dir.join("backup.db"))?;
    let stop = AtomicBool::new(false);
    let (mut reads, mut commits, rate, wal) = thread::scope(|scope| -> Fallible<_> {
        let (stop, rows) = (&stop, &rows);
        let readers: Vec<_> =
            (0..READERS).map(|number| scope.spawn(move || read(rows, number, stop))).collect();
        let updates = scope.spawn(move || update(rows, stop));
        let rate = back_up(dir);
        let wal = fs::metadata(dir.join("rows.db-wal")).map_or(0, |wal| wal.len());
        stop.store(true, Relaxed);
        let mut reads = Vec::new();
        for reader in readers {
            reads.extend(reader.join().map_err(|_| "a reader panicked")??);
        }
        Ok((reads, updates.join().map_err(|_| "the updater panicked")??, rate?, wal))
    })?;
    println!(
        r#"{{"mode":"{mode}","p50_ms":{:.3},"p99_ms":{:.3},"commit_p50_ms":{:.3},"commit_p99_ms":{:.3},"commits":{},"backup_mb_s":{:.3},"wal_mb":{:.3}}}"#,
        percentile(&mut reads, 50),
        percentile(&mut reads, 99),
        percentile(&mut commits, 50),
        percentile(&mut commits, 99),
        commits.len(),
        rate / 1e6,
        wal as f64 / 1e6,
    );
    Ok(())
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["fill", dir] => {
            fill(&Path::new(dir).join("rows.db"), ROWS)?;
            fill(&Path::new(dir).join("backup.db"), BACKUP_ROWS)
        }
        ["run", dir, mode, properties] => run(Path::new(dir), mode, properties),
        _ => Err("queries_during_backup fill DIR | run DIR MODE PROPERTIES".into()),
    }
}
