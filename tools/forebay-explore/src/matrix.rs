//! The loads that may be measured.

use forebay_sim::surface::{Cell, Grid};

/// Rates of writes alongside rates of reads: every combination is a load that may be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    writes: Vec<f64>,
    reads: Vec<f64>,
}

/// A load of a [`Matrix`], as the places of its writes and its reads.
pub(crate) type Place = (usize, usize);

impl Matrix {
    /// `steps` + 1 rates of each direction, from none to the most: bytes written and reads per
    /// second, in whole numbers. 1 to 31 steps.
    pub fn even((write_bandwidth, read_iops): (f64, f64), steps: u32) -> Self {
        let steps = steps.clamp(1, 31);
        let axis = |most: f64| {
            let rate = |step| (most * f64::from(step) / f64::from(steps)).round();
            (0..=steps).map(rate).collect()
        };
        Self { writes: axis(write_bandwidth), reads: axis(read_iops) }
    }

    /// The rates that stand in `surface`.
    pub fn of(surface: &Grid) -> Self {
        Self { writes: surface.axis(|load| load.0), reads: surface.axis(|load| load.1) }
    }

    /// How many loads there are.
    pub fn cells(&self) -> u32 {
        (self.writes.len() * self.reads.len()) as u32
    }

    /// Rates of each direction above the least: the last places.
    pub(crate) fn last(&self) -> Place {
        (self.writes.len().saturating_sub(1), self.reads.len().saturating_sub(1))
    }

    /// Bytes written and reads per second.
    pub(crate) fn load(&self, (write, read): Place) -> (f64, f64) {
        let (last_write, last_read) = self.last();
        (self.writes[write.min(last_write)], self.reads[read.min(last_read)])
    }

    /// Measures all of its loads.
    ///
    /// # Errors
    /// The first of `measure`, which is given bytes written and reads per second, and answers
    /// nothing where the disk does not carry them.
    pub fn full<E>(
        &self,
        mut measure: impl FnMut((f64, f64)) -> Result<Option<Cell>, E>,
    ) -> Result<Grid, E> {
        let (mut cells, mut missed) = (Vec::new(), Vec::new());
        for &write in &self.writes {
            for &read in &self.reads {
                match measure((write, read))? {
                    Some(cell) => cells.push(cell),
                    None => missed.push((write, read)),
                }
            }
        }
        Ok(Grid::new(cells, missed))
    }
}
