//! A measured latency surface: latencies of reads, or of writes, over write bandwidth and read rate.

use std::ops::RangeInclusive;

use forebay_config::{ConfigError, Position};

/// A minute.
pub(super) const LATENCY_MAX_US: f64 = 60e6;
/// A surface that a disk is fitted to has at least this many cells,
const CELLS_MIN: usize = 16;
/// and this many different loads along each axis: the fit takes time for every combination of them.
const LOADS: RangeInclusive<usize> = 3..=32;
/// The most cells of any surface.
const CELLS_MAX: usize = 32 * 32;

/// One measured load, and the latencies under it: of reads, unless its surface is of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Bytes written per second, in writes of 128 KiB.
    pub write_bandwidth: f64,
    /// Small reads per second; 0 stands for a few probes.
    pub read_iops: f64,
    /// Their median latency in microseconds.
    pub p50_us: f64,
    /// The 95th percentile of their latency in microseconds.
    pub p95_us: f64,
    /// The 99th, where it was measured.
    pub p99_us: Option<f64>,
    /// The 99.9th, where it was measured.
    pub p999_us: Option<f64>,
    /// The 95th percentile lies at the end of the scale: it is a lower bound,
    /// and so is the median if it is the same.
    pub clipped: bool,
}

impl Cell {
    /// Whether the median is a lower bound too.
    pub fn median_clipped(&self) -> bool {
        self.clipped && self.p50_us >= self.p95_us
    }
}

/// What lies along the axes of a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axes {
    /// Bytes written per second, and small reads per second.
    #[default]
    Rates,
    /// Bytes read per second by large reads, and small reads per second.
    LargeReads,
    /// Bytes of a write and of a read, at fixed rates of both.
    Sizes,
}

impl Axes {
    /// Their columns in a CSV file.
    pub const fn columns(self) -> [&'static str; 2] {
        match self {
            Self::Rates => ["write_bandwidth_bytes_per_sec", "read_iops"],
            Self::LargeReads => ["large_read_bandwidth", "read_iops"],
            Self::Sizes => ["write_bytes", "read_bytes"],
        }
    }

    /// The name of each axis with its unit, and the size of that unit in those of the surface.
    pub const fn words(self) -> [(&'static str, f64); 2] {
        match self {
            Self::Rates => [("MB/s of writes", 1e6), ("reads/s", 1.0)],
            Self::LargeReads => [("MB/s of large reads", 1e6), ("reads/s", 1.0)],
            Self::Sizes => [("KiB of a write", 1024.0), ("KiB of a read", 1024.0)],
        }
    }
}

/// A measured latency surface.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The cells that were measured.
    pub(crate) cells: Vec<Cell>,
    /// The loads, as (bytes written per second, reads per second), that the
    /// disk did not carry: those without a cell.
    pub(crate) missed: Vec<(f64, f64)>,
    pub(super) remarks: Vec<String>,
    /// Whether the latencies are those of writes.
    pub(super) is_of_writes: bool,
    pub(super) axes: Axes,
}

impl Grid {
    /// The surface of these cells, and of the loads that the disk did not carry, as (bytes written
    /// per second, reads per second); no load stands in it twice.
    pub fn new(cells: Vec<Cell>, missed: Vec<(f64, f64)>) -> Self {
        Self { cells, missed, remarks: Vec::new(), is_of_writes: false, axes: Axes::Rates }
    }

    /// The same surface over these axes.
    #[must_use]
    pub fn over(self, axes: Axes) -> Self {
        Self { axes, ..self }
    }

    /// What lies along its axes.
    pub fn axes(&self) -> Axes {
        self.axes
    }

    /// The same surface, of latencies of writes.
    #[must_use]
    pub fn of_writes(self) -> Self {
        Self { is_of_writes: true, ..self }
    }

    /// Whether the latencies are those of writes.
    pub fn is_of_writes(&self) -> bool {
        self.is_of_writes
    }

    /// The cells that were measured.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The loads, as (bytes written per second, reads per second), that the disk did not carry.
    pub fn missed(&self) -> &[(f64, f64)] {
        &self.missed
    }

    /// What in the file is not as names of jobs say, or not as expected, in sentences.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The two halves of the surface, like the fields of a chess board: every
    /// cell of one has its neighbours in the other.
    pub fn checkerboard(&self) -> [Self; 2] {
        let (writes, reads) = (self.axis(|load| load.0), self.axis(|load| load.1));
        let half = |(write, read): (f64, f64)| {
            let place = |axis: &[f64], value: f64| axis.iter().take_while(|&&v| v < value).count();
            (place(&writes, write) + place(&reads, read)) % 2
        };
        [0, 1].map(|wanted| {
            let cells = self.cells.iter().copied();
            let missed = self.missed.iter().copied();
            let cells = cells.filter(|cell| half(load(cell)) == wanted).collect();
            let missed = missed.filter(|&load| half(load) == wanted).collect();
            let Self { is_of_writes, axes, .. } = *self;
            Self { is_of_writes, axes, ..Self::new(cells, missed) }
        })
    }

    /// All loads, as (bytes written per second, reads per second), each with its cell if the disk
    /// carried it.
    pub fn loads_with_cells(&self) -> impl Iterator<Item = ((f64, f64), Option<&Cell>)> {
        let carried = self.cells.iter().map(|cell| (load(cell), Some(cell)));
        carried.chain(self.missed.iter().map(|&at| (at, None)))
    }

    /// All loads, carried or not, as (bytes written per second, reads per second).
    pub fn loads(&self) -> impl Iterator<Item = (f64, f64)> {
        self.loads_with_cells().map(|(at, _)| at)
    }

    /// The different values of a `figure` of the loads, rising.
    pub fn axis(&self, figure: fn((f64, f64)) -> f64) -> Vec<f64> {
        sorted(self.loads().map(figure))
    }

    /// Whether every combination of the loads along both axes was tried.
    pub fn is_matrix(&self) -> bool {
        self.axis(|load| load.0).len() * self.axis(|load| load.1).len() == self.loads().count()
    }

    /// The highest loads that were tried: bytes written per second, and reads
    /// per second.
    pub fn maxima(&self) -> (f64, f64) {
        let loads = || self.loads();
        (
            loads().map(|load| load.0).fold(0.0, f64::max),
            loads().map(|load| load.1).fold(0.0, f64::max),
        )
    }

    /// Whether the load `at` is a new one, for which there is room; if not, why, with `advice`
    /// where it was given before.
    pub(super) fn check_new(&self, at: (f64, f64), advice: &str) -> Result<(), String> {
        if self.loads().any(|other| other == at) {
            return Err(format!("this load was given before; {advice}"));
        }
        if self.loads().count() == CELLS_MAX {
            return Err(format!("more than {CELLS_MAX} loads; leave some out"));
        }
        Ok(())
    }

    /// Adds a load, with its cell if the disk carried it.
    pub(super) fn push(&mut self, at: (f64, f64), cell: Option<Cell>) {
        match cell {
            Some(cell) => self.cells.push(cell),
            None => self.missed.push(at),
        }
    }

    /// Whether there is enough to fit a disk to, in the file called `file`.
    ///
    /// # Errors
    /// Fewer than 16 cells, or other than 3 to 32 different loads along an axis, 0 among them.
    pub fn enough_for_a_disk(&self, file: &str) -> Result<(), ConfigError> {
        let fail = |keys: &str, message| {
            Err(ConfigError::at(file, Position::default(), Some(keys.to_owned()), message))
        };
        if self.is_of_writes {
            return fail("write_p50_ms", "a disk is fitted to latencies of reads".to_owned());
        }
        if self.axes != Axes::Rates {
            let [column, _] = self.axes.columns();
            return fail(column, "a disk is fitted to rates of writes and reads".to_owned());
        }
        if self.cells.len() < CELLS_MIN {
            let count = self.cells.len();
            let message = format!("{count} cells; a surface needs at least {CELLS_MIN}");
            return fail("w_bw_Bps, r_iops", message);
        }
        let axes = [("w_bw_Bps", self.axis(|load| load.0)), ("r_iops", self.axis(|load| load.1))];
        for (name, values) in axes {
            let count = values.len();
            if !LOADS.contains(&count) {
                let (least, most) = (LOADS.start(), LOADS.end());
                return fail(name, format!("{count} different loads; expected {least} to {most}"));
            }
            if values.first() != Some(&0.0) {
                return fail(name, "no load with 0; measure each direction alone too".to_owned());
            }
        }
        Ok(())
    }
}

/// Bytes written and reads, per second.
pub(super) fn load(cell: &Cell) -> (f64, f64) {
    (cell.write_bandwidth, cell.read_iops)
}

pub(super) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
