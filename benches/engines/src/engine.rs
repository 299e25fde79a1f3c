//! What the load asks of an engine.

use std::error::Error;
use std::path::Path;

use forebay_load::Rng;

use crate::mode::Mode;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Rows that are read.
pub(crate) const ROWS: u64 = 200_000;
pub(crate) const ROW_LEN: usize = 1000;
/// Rows of a batch, which is durable when it is written.
pub(crate) const BATCH_ROWS: u64 = 256;

/// What engines may keep of blocks: a twenty-fifth of the rows.
pub(crate) const CACHE_LEN: u64 = 8 << 20;

pub(crate) trait Engine {
    /// Makes a store with all rows below `base`.
    fn fill(&self, base: &Path) -> Result<(), Failure>;

    /// Opens a copy of that.
    fn open(&self, dir: &Path, mode: &Mode, writers: u64) -> Result<Box<dyn Store>, Failure>;

    /// How a file of the base is to be had in a copy for this many writers.
    fn how_to_copy(&self, path: &Path, writers: u64) -> Copied;

    /// Bytes of all rows, with their keys.
    fn live_bytes(&self, writers: u64) -> u64 {
        let _ = writers;
        ROWS * row_bytes()
    }
}

/// How a copy has a file.
pub(crate) enum Copied {
    /// By a link: the engine never writes to it.
    Linked,
    /// With bytes of its own.
    Whole,
    /// Not at all.
    Left,
}

pub(crate) trait Store: Sync {
    /// Reads a row.
    fn read(&self, row: u64) -> Result<(), Failure>;

    /// Overwrites a batch of rows as the writer of this number, durably; returns how many bytes.
    fn write(&self, writer: u64, rng: &mut Rng) -> Result<u64, Failure>;

    fn close(self: Box<Self>) -> Result<(), Failure>;
}

pub(crate) const fn row_bytes() -> u64 {
    ROW_LEN as u64 + size_of::<u64>() as u64
}

/// A row that nothing compresses.
pub(crate) fn row(rng: &mut Rng) -> Vec<u8> {
    let words = ROW_LEN.div_ceil(size_of::<u64>());
    let mut row: Vec<u8> = (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    row.truncate(ROW_LEN);
    row
}

pub(crate) fn checked(row: Option<&[u8]>) -> Result<(), Failure> {
    match row {
        Some(row) if row.len() == ROW_LEN => Ok(()),
        Some(_) => Err("a row is not as it was written".into()),
        None => Err("a row is missing".into()),
    }
}
