//! What mixes of reads and writes a disk can carry.

/// The mixes with (w / `write_bandwidth`)^`exponent` + (r / `read_iops`)^`exponent` at most 1,
/// w in bytes written per second and r in reads per second.
///
/// An exponent of 1 is a straight line between the extremes; below 1 mixes are
/// dearer than that, above 1 cheaper, up to independent directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Bytes per second when only writing.
    pub write_bandwidth: f64,
    /// Reads per second when only reading.
    pub read_iops: f64,
    /// The shape of the edge between.
    pub exponent: f64,
}

impl Region {
    /// How far out a load lies: 1 on the edge, less inside.
    pub fn gauge(&self, write_bandwidth: f64, read_iops: f64) -> f64 {
        norm(write_bandwidth / self.write_bandwidth, read_iops / self.read_iops, self.exponent)
    }
}

/// (`x`^`exponent` + `y`^`exponent`)^(1/`exponent`).
pub(crate) fn norm(x: f64, y: f64, exponent: f64) -> f64 {
    let (small, large) = if x < y { (x, y) } else { (y, x) };
    if small <= 0.0 {
        return large;
    }
    // with the larger one taken out nothing overflows
    let ratio = libm::pow(small / large, exponent);
    large * libm::pow(1.0 + ratio, 1.0 / exponent)
}

/// By how much a mix of reads and writes is dearer than the sum of its parts,
/// as a table over the part of writes: the edge of a [`Region`] seen from
/// the origin. Takes no powers at run time.
#[derive(Clone, Debug)]
pub(crate) struct Price {
    by_write_part: Vec<f64>,
}

/// Steps of the table.
const STEPS: usize = 256;

impl Price {
    pub(crate) fn new(exponent: f64) -> Self {
        let part = |step: usize| step as f64 / STEPS as f64;
        let price = |step: usize| norm(part(step), 1.0 - part(step), exponent);
        Self { by_write_part: (0..=STEPS).map(price).collect() }
    }

    /// The price where `write_part` (0 to 1) of the work is writes.
    pub(crate) fn of(&self, write_part: f64) -> f64 {
        let place = write_part.clamp(0.0, 1.0) * STEPS as f64;
        let step = (place as usize).min(STEPS - 1);
        let (low, high) = (self.by_write_part[step], self.by_write_part[step + 1]);
        low + (high - low) * (place - step as f64)
    }
}
