//! Tables: rows of one length, sorted by key, in a file; the keys are in memory, too.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use rustix::fs::{Advice, fadvise};

use crate::io::{Io, Reader, TableWriter};

/// The bytes of a row; the first eight are its key.
pub(crate) const ROW_LEN: usize = 1024;
/// Rows that compaction reads at once, and that are written at once.
const ROWS_AT_ONCE: usize = 256;

pub(crate) struct Table {
    keys: Vec<u64>,
    file: File,
    path: PathBuf,
}

impl Table {
    /// Of sorted rows.
    pub(crate) fn write(
        io: &Io,
        path: PathBuf,
        rows: impl Iterator<Item = io::Result<(u64, u8)>>,
    ) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let (mut keys, mut chunk) = (Vec::new(), Vec::with_capacity(ROWS_AT_ONCE * ROW_LEN));
        let mut writer = io.writer(&file)?;
        let write = |writer: &mut TableWriter<'_>, chunk: &mut Vec<u8>| {
            writer.write_all(chunk)?;
            chunk.clear();
            Ok::<_, io::Error>(())
        };
        for row in rows {
            let (key, value) = row?;
            keys.push(key);
            chunk.extend_from_slice(&key.to_le_bytes());
            chunk.resize(chunk.len() + ROW_LEN - 8, value);
            if chunk.len() == chunk.capacity() {
                write(&mut writer, &mut chunk)?;
            }
        }
        if !chunk.is_empty() {
            write(&mut writer, &mut chunk)?;
        }
        writer.sync()?;
        // A store that is larger than memory has most of it on the disk alone.
        fadvise(&file, 0, None, Advice::DontNeed)?;
        fadvise(&file, 0, None, Advice::Random)?;
        Ok(Self { keys, file, path })
    }

    /// Reads a row, if it is here.
    pub(crate) fn get(&self, io: &Io, key: u64, row: &mut [u8; ROW_LEN]) -> io::Result<bool> {
        let Ok(place) = self.keys.binary_search(&key) else { return Ok(false) };
        let offset = (place * ROW_LEN) as u64;
        io.read(Reader::Query, &self.file, row, offset)?;
        let page = std::num::NonZeroU64::new(4096);
        fadvise(&self.file, offset - offset % 4096, page, Advice::DontNeed)?;
        Ok(true)
    }

    /// The table is not needed any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// All rows of some tables in order of their keys, of each the one of the first table that has it.
pub(crate) struct Merge<'a> {
    io: &'a Io,
    cursors: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    table: &'a Table,
    next: usize,
    chunk: Vec<u8>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(io: &'a Io, tables: impl Iterator<Item = &'a Table>) -> Self {
        let cursor = |table| Cursor { table, next: 0, chunk: Vec::new() };
        Self { io, cursors: tables.map(cursor).collect() }
    }
}

impl Iterator for Merge<'_> {
    type Item = io::Result<(u64, u8)>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.cursors.iter().filter_map(Cursor::key).min()?;
        let same = self.cursors.iter_mut().filter(|cursor| cursor.key() == Some(key));
        let values: io::Result<Vec<u8>> = same.map(|cursor| cursor.take(self.io)).collect();
        Some(values.map(|values| (key, values[0])))
    }
}

impl Cursor<'_> {
    fn key(&self) -> Option<u64> {
        self.table.keys.get(self.next).copied()
    }

    /// The value of the next row.
    fn take(&mut self, io: &Io) -> io::Result<u8> {
        let place = self.next % ROWS_AT_ONCE;
        if place == 0 {
            let rows = ROWS_AT_ONCE.min(self.table.keys.len() - self.next);
            self.chunk.resize(rows * ROW_LEN, 0);
            let offset = (self.next * ROW_LEN) as u64;
            io.read(Reader::Compaction, &self.table.file, &mut self.chunk, offset)?;
        }
        self.next += 1;
        Ok(self.chunk[place * ROW_LEN + 8])
    }
}
