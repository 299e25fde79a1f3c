//! The engine: a log and a memtable, which is flushed to tables, which are compacted to one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::io::Io;
use crate::table::{Merge, ROW_LEN, Table};

/// Rows that there are.
pub(crate) const KEYS: u64 = 65_536;
/// Rows of a memtable.
const MEMTABLE_ROWS: usize = 8_192;
/// This many flushed tables are compacted; writes wait where there are twice as many.
const FLUSHED_MAX: usize = 4;
/// The log is synced after this many bytes, and goes round after this many.
const SYNC_EVERY: u64 = 256 << 10;
const LOG_LEN: u64 = 32 << 20;

type Memtable = BTreeMap<u64, u8>;

pub(crate) struct Engine {
    pub(crate) io: Io,
    dir: PathBuf,
    log: Mutex<(File, u64)>,
    state: Mutex<State>,
    changed: Condvar,
    tables: AtomicU64,
    pub(crate) is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    memtable: Memtable,
    /// Being flushed.
    full: Option<Arc<Memtable>>,
    /// The newest first.
    flushed: Vec<Arc<Table>>,
    compacted: Vec<Arc<Table>>,
}

impl Engine {
    /// With all rows in one table.
    pub(crate) fn new(io: Io, dir: PathBuf) -> io::Result<Self> {
        let log = File::create_new(dir.join("log"))?;
        let first =
            Table::write(&Io::Plain, dir.join("table-0"), (0..KEYS).map(|key| Ok((key, 0))))?;
        let state = State { compacted: vec![Arc::new(first)], ..State::default() };
        Ok(Self {
            io,
            dir,
            log: Mutex::new((log, 0)),
            state: Mutex::new(state),
            changed: Condvar::new(),
            tables: AtomicU64::new(1),
            is_over: AtomicBool::new(false),
        })
    }

    pub(crate) fn put(&self, key: u64, value: u8) -> io::Result<()> {
        let mut row = [value; ROW_LEN];
        row[..8].copy_from_slice(&key.to_le_bytes());
        self.append(&row)?;
        let mut state = self.lock();
        while state.memtable.len() >= MEMTABLE_ROWS && !self.is_over.load(Ordering::Relaxed) {
            if state.full.is_none() && state.flushed.len() < 2 * FLUSHED_MAX {
                state.full = Some(Arc::new(std::mem::take(&mut state.memtable)));
                self.changed.notify_all();
            } else {
                state = self.wait(state);
            }
        }
        state.memtable.insert(key, value);
        Ok(())
    }

    fn append(&self, row: &[u8]) -> io::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.0.write_all_at(row, log.1 % LOG_LEN)?;
        log.1 += row.len() as u64;
        if log.1.is_multiple_of(SYNC_EVERY) { self.io.sync_log(&log.0) } else { Ok(()) }
    }

    /// Reads a row into `row`; false if memory has it.
    pub(crate) fn get(&self, key: u64, row: &mut [u8; ROW_LEN]) -> io::Result<bool> {
        let (flushed, compacted) = {
            let state = self.lock();
            let full = state.full.as_ref().is_some_and(|full| full.contains_key(&key));
            if full || state.memtable.contains_key(&key) {
                return Ok(false);
            }
            (state.flushed.clone(), state.compacted.clone())
        };
        for table in flushed.iter().chain(&compacted) {
            if table.get(&self.io, key, row)? {
                return Ok(true);
            }
        }
        Err(io::Error::other("a row is not there"))
    }

    /// Flushes memtables until it is over.
    pub(crate) fn flush(&self) -> io::Result<()> {
        while let Some(full) = self.wait_for(|state| state.full.clone()) {
            let rows = full.iter().map(|(key, value)| Ok((*key, *value)));
            let table = Table::write(&self.io, self.path(), rows)?;
            let mut state = self.lock();
            state.flushed.insert(0, Arc::new(table));
            state.full = None;
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Compacts tables until it is over.
    pub(crate) fn compact(&self) -> io::Result<()> {
        let enough = |state: &State| {
            let tables = state.flushed.iter().chain(&state.compacted).cloned();
            (state.flushed.len() >= FLUSHED_MAX).then(|| tables.collect::<Vec<_>>())
        };
        while let Some(tables) = self.wait_for(enough) {
            let merge = Merge::new(&self.io, tables.iter().map(|table| &**table));
            let table = Arc::new(Table::write(&self.io, self.path(), merge)?);
            let mut state = self.lock();
            let newer = state.flushed.len() + 1 - tables.len();
            state.flushed.truncate(newer);
            state.compacted = vec![table];
            self.changed.notify_all();
            drop(state);
            tables.iter().try_for_each(|table| table.remove())?;
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("table-{}", self.tables.fetch_add(1, Ordering::Relaxed)))
    }

    /// `None` once it is over.
    fn wait_for<T>(&self, find: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        while !self.is_over.load(Ordering::Relaxed) {
            if let Some(found) = find(&state) {
                return Some(found);
            }
            state = self.wait(state);
        }
        None
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, Duration::from_millis(50));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
