//! SQLite through the VFS, compared with SQLite without it.
#![cfg(not(feature = "extension"))]
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod classes;
mod file_controls;
mod names;
mod several_files;
mod waits;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay::{DiskConfig, DiskRates, Scheduler};
use forebay_sqlite::{Options, Vfs, register_with};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// A VFS, and a directory on a disk of its scheduler.
pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    pub(crate) scheduler: Scheduler,
    pub(crate) vfs: Vfs,
    pub(crate) name: String,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::around(None)
    }

    pub(crate) fn around(base: Option<&str>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let rates = DiskRates {
            read_iops: 200_000,
            write_iops: 200_000,
            read_bandwidth: 2_000_000_000,
            write_bandwidth: 2_000_000_000,
        };
        let disk = DiskConfig::new("data", rates).mountpoint(dir.path());
        let scheduler = Scheduler::builder().disk(disk).build().unwrap();
        let name = format!("forebay{}", LAST.fetch_add(1, Relaxed));
        let base = base.map(str::to_owned);
        let options = Options { name: name.clone(), base, is_default: false };
        let vfs = register_with(&scheduler, &options).unwrap();
        Self { dir, scheduler, vfs, name }
    }

    /// Opens a database of the directory by a URI with these parameters.
    pub(crate) fn try_open(&self, parameters: &str) -> rusqlite::Result<Connection> {
        self.open_file("t.db", parameters)
    }

    pub(crate) fn open_file(&self, file: &str, parameters: &str) -> rusqlite::Result<Connection> {
        let path = self.dir.path().join(file);
        let flags = OpenFlags::default();
        Connection::open_with_flags_and_vfs(
            format!("file:{}?{parameters}", path.display()),
            flags,
            self.name.as_str(),
        )
    }

    pub(crate) fn open(&self) -> Connection {
        self.try_open("").unwrap()
    }

    /// Operations with a permit in a class, by kind.
    pub(crate) fn operations(&self, class: &str) -> [u64; 4] {
        let class = self.scheduler.class(class).unwrap();
        let disk = self.scheduler.disk("data").unwrap();
        class.on(&disk).unwrap().permit_counters().operations
    }

    /// Reads in a class, from memory or from the disk.
    pub(crate) fn reads(&self, class: &str) -> u64 {
        let counters = self.scheduler.class(class).unwrap().page_cache_counters();
        counters.hits + counters.misses
    }
}

/// Fills a table with rows of 1,000 bytes.
pub(crate) fn fill(connection: &Connection, rows: u32) {
    connection
        .execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, v BLOB);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO t(v) SELECT randomblob(1000) FROM n;"
        ))
        .unwrap();
}

pub(crate) fn pragma(connection: &Connection, sql: &str) -> String {
    connection
        .query_row(&format!("PRAGMA {sql}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        })
        .unwrap()
}

pub(crate) fn check(path: &Path) {
    let plain = Connection::open(path).unwrap();
    assert_eq!(pragma(&plain, "integrity_check"), "ok");
}
