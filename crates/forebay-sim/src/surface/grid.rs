//! A measured latency surface: read latencies over write bandwidth and read rate.

use std::ops::RangeInclusive;

use forebay_config::{ConfigError, Position};

/// The columns of a surface file, in their order, and their largest figures:
/// far above any disk.
const COLUMNS: [(&str, f64); 5] = [
    ("w_bw_Bps", 1e15),
    ("r_iops", 1e12),
    ("p50_ms", LATENCY_MAX_US / 1e3),
    ("p95_ms", LATENCY_MAX_US / 1e3),
    ("p95_clipped", 1.0),
];
/// A minute.
pub(super) const LATENCY_MAX_US: f64 = 60e6;
/// So many characters of what is wrong are quoted.
const QUOTED_MAX: usize = 80;
/// A surface has at least so many cells, or there is nothing to fit.
const CELLS_MIN: usize = 16;
/// A surface has so many different loads along each axis: the fit takes time for every
/// combination of them.
const LOADS: RangeInclusive<usize> = 3..=32;
const CELLS_MAX: usize = 32 * 32;

/// One measured load, and the read latencies under it.
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

/// A measured latency surface.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The cells that were measured.
    pub(crate) cells: Vec<Cell>,
    /// The loads, as (bytes written per second, reads per second), that the
    /// disk did not carry: those without a cell.
    pub(crate) missed: Vec<(f64, f64)>,
}

impl Grid {
    /// Reads the CSV `text` of the file called `file`: a line with the names
    /// `w_bw_Bps,r_iops,p50_ms,p95_ms,p95_clipped`, then a line for each load.
    /// Lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// A line without these five figures, a figure out of bounds, a load given
    /// twice, or too few loads.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut cells: Vec<Cell> = Vec::new();
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
        let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let (number, header) = lines.next().unwrap_or((1, ""));
        let names = COLUMNS.map(|(name, _)| name).join(",");
        if header.trim() != names {
            let header: String = header.trim().chars().take(QUOTED_MAX).collect();
            let message = format!("the first line is `{}`; write `{names}`", header.escape_debug());
            return Err(error(file, number, None, &message));
        }
        for (number, line) in lines {
            let cell = cell(file, number, line)?;
            let same = |other: &Cell| load(other) == load(&cell);
            if cells.iter().any(same) {
                return Err(error(file, number, None, "this load was given before; remove it"));
            }
            if cells.len() == CELLS_MAX {
                let message = format!("more than {CELLS_MAX} loads; leave some out");
                return Err(error(file, number, None, &message));
            }
            cells.push(cell);
        }
        let grid = Self { missed: missed(&cells), cells };
        grid.check(file)?;
        Ok(grid)
    }

    /// The cells that were measured.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The two halves of the surface, like the fields of a chess board: every
    /// cell of one has its neighbours in the other.
    pub fn checkerboard(&self) -> [Self; 2] {
        let (writes, reads) = (self.axis(|load| load.0), self.axis(|load| load.1));
        let half = |(write, read): (f64, f64)| {
            let place = |axis: &[f64], value: f64| axis.iter().take_while(|&&v| v < value).count();
            (place(&writes, write) + place(&reads, read)) % 2
        };
        [0, 1].map(|wanted| Self {
            cells: self.cells.iter().copied().filter(|cell| half(load(cell)) == wanted).collect(),
            missed: self.missed.iter().copied().filter(|&load| half(load) == wanted).collect(),
        })
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

    fn loads(&self) -> impl Iterator<Item = (f64, f64)> {
        self.cells.iter().map(load).chain(self.missed.iter().copied())
    }

    fn axis(&self, figure: fn((f64, f64)) -> f64) -> Vec<f64> {
        sorted(self.loads().map(figure))
    }

    /// Whether there is enough to fit a disk to.
    fn check(&self, file: &str) -> Result<(), ConfigError> {
        let whole = Position::default();
        if self.cells.len() < CELLS_MIN {
            let count = self.cells.len();
            let message = format!("{count} cells; a surface needs at least {CELLS_MIN}");
            let keys = format!("{}, {}", COLUMNS[0].0, COLUMNS[1].0);
            return Err(ConfigError::at(file, whole, Some(keys), message));
        }
        let axes = [self.axis(|load| load.0), self.axis(|load| load.1)];
        for ((name, _), values) in COLUMNS.iter().zip(axes) {
            let fail = |message| ConfigError::at(file, whole, Some((*name).to_owned()), message);
            let count = values.len();
            if !LOADS.contains(&count) {
                let (least, most) = (LOADS.start(), LOADS.end());
                let message = format!("{count} different loads; expected {least} to {most}");
                return Err(fail(message));
            }
            if values.first() != Some(&0.0) {
                return Err(fail("no load with 0; measure each direction alone too".to_owned()));
            }
        }
        Ok(())
    }
}

fn load(cell: &Cell) -> (f64, f64) {
    (cell.write_bandwidth, cell.read_iops)
}

/// The combinations of the loads along both axes that have no cell.
fn missed(cells: &[Cell]) -> Vec<(f64, f64)> {
    let writes = sorted(cells.iter().map(|cell| cell.write_bandwidth));
    let reads = sorted(cells.iter().map(|cell| cell.read_iops));
    let all = writes.iter().flat_map(|&write| reads.iter().map(move |&read| (write, read)));
    all.filter(|&wanted| cells.iter().all(|cell| load(cell) != wanted)).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn cell(file: &str, line: u64, text: &str) -> Result<Cell, ConfigError> {
    let mut figures = [0.0; COLUMNS.len()];
    let mut fields = text.split(',');
    for (index, figure) in figures.iter_mut().enumerate() {
        let field = fields.next().map_or("", str::trim);
        let max = COLUMNS[index].1;
        let value: Option<f64> = field.parse().ok();
        let value = value.filter(|value| (0.0..=max).contains(value)).ok_or_else(|| {
            let field: String = field.chars().take(QUOTED_MAX).collect();
            let field = field.escape_debug();
            let message = format!("found `{field}`; expected a number from 0 to {max}");
            error(file, line, Some(index), &message)
        })?;
        // a negative zero becomes a zero
        *figure = value + 0.0;
    }
    if fields.next().is_some() {
        let message = format!("more than {} figures; remove some", COLUMNS.len());
        return Err(error(file, line, None, &message));
    }
    let [write_bandwidth, read_iops, p50_ms, p95_ms, clipped] = figures;
    if p50_ms <= 0.0 {
        return Err(error(file, line, Some(2), "a latency of 0; expected more"));
    }
    if p95_ms < p50_ms {
        let message = format!("{p95_ms} is below the median, {p50_ms}; expected at least as much");
        return Err(error(file, line, Some(3), &message));
    }
    let (p50_us, p95_us) = (p50_ms * 1e3, p95_ms * 1e3);
    Ok(Cell { write_bandwidth, read_iops, p50_us, p95_us, clipped: clipped != 0.0 })
}

fn error(file: &str, line: u64, column: Option<usize>, message: &str) -> ConfigError {
    let key = column.map(|column| COLUMNS[column].0.to_owned());
    ConfigError::at(file, Position { line, column: 1 }, key, message)
}
