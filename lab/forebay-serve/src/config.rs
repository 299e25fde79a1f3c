//! The settings of a served disk, next to its model.

use std::io;
use std::path::PathBuf;

use crate::refusal::refuse;
use crate::write_cache::WriteCacheConfig;

/// How a simulated disk is served.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Size of the disk in bytes: a multiple of the sector, at least one.
    pub capacity: u64,
    /// Size of a sector in bytes, 512 or 4096. What is not aligned to it is
    /// refused with `EINVAL`.
    pub sector: u32,
    /// Where the data is kept: in this file, which is created, or emptied; in
    /// memory if not given.
    pub backing: Option<PathBuf>,
    /// The most bytes of data kept in memory, at least a sector; writes beyond
    /// it fail with `ENOSPC`. Without meaning where the data is in a file.
    pub memory_max: u64,
    /// Whether to ask for real-time priority (`SCHED_FIFO`) for the threads that
    /// serve.
    pub realtime: bool,
    /// A write cache that loses data when the power goes; none if not given, and what was written
    /// stays.
    pub write_cache: Option<WriteCacheConfig>,
}

impl ServeConfig {
    /// A disk of `capacity` bytes with sectors of 512 bytes, its data in at most
    /// 1 GiB of memory, served with real-time priority where that is allowed, and no power cuts.
    pub const fn new(capacity: u64) -> Self {
        Self {
            capacity,
            sector: 512,
            backing: None,
            memory_max: 1 << 30,
            realtime: true,
            write_cache: None,
        }
    }

    /// Whether it can be served.
    pub(crate) fn check(&self) -> io::Result<()> {
        if !matches!(self.sector, 512 | 4096) {
            return Err(refuse(format!("sector: {} bytes; use 512 or 4096", self.sector)));
        }
        let sector = u64::from(self.sector);
        if self.capacity == 0 || !self.capacity.is_multiple_of(sector) {
            return Err(refuse(format!(
                "capacity: {} bytes; use a multiple of the sector, {sector} bytes, above zero",
                self.capacity
            )));
        }
        if i64::try_from(self.capacity).is_err() {
            return Err(refuse(format!("capacity: {} bytes; use at most 2^63 - 1", self.capacity)));
        }
        if self.backing.is_none() && self.memory_max < sector {
            return Err(refuse(format!(
                "memory: {} bytes; use at least a sector, {sector} bytes",
                self.memory_max
            )));
        }
        Ok(())
    }
}
