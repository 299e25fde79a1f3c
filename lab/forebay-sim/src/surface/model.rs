//! A disk whose latencies follow a measured surface, as a queueing model.

/// A disk that drains work at the rate of its region, and whose reads wait for
/// the dies that they need.
///
/// A request passes a gate first, which lets work through at the rate that the
/// region allows for the present mix of reads and writes. A backlog up to the
/// slack does not wait there: it is work inside the disk, done side by side.
/// A read then needs one of the dies, at random, for a while. Written bytes
/// occupy dies for much longer, a program operation at a time, so a few reads
/// wait behind them: that is what makes the 95th percentile rise long before
/// the median. All times inside are exponentially distributed, so that the
/// latencies under random load have a closed form, which the fit uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceModel {
    /// What mixes of reads and writes the disk can carry.
    pub region: Region,
    /// What a read takes at least, in microseconds.
    pub latency_us: f64,
    /// The mean of what it takes beyond that on an idle disk, in microseconds.
    pub jitter_us: f64,
    /// How many dies there are.
    pub dies: u32,
    /// How long a read keeps a die busy, in microseconds: the mean.
    pub die_read_us: f64,
    /// How much longer a read takes after a write, in microseconds: the mean.
    /// It keeps the die busy for as much longer.
    pub turn_us: f64,
    /// How long a program operation keeps a die busy, in microseconds: the mean.
    pub program_us: f64,
    /// The part of the dies' time that program operations take when the disk
    /// writes as fast as it can, 0 to 1.
    pub program_share: f64,
    /// How much work, in microseconds, may be behind the gate before a request
    /// waits for it.
    pub slack_us: f64,
    /// After so long without reads the disk dozes off, in microseconds,
    pub lull_us: f64,
    /// and the next read takes longer by this, in microseconds: the mean.
    pub lull_extra_us: f64,
}

impl SurfaceModel {
    /// The part of the dies' time that reads take at the highest read rate.
    pub fn die_load(&self) -> f64 {
        self.die_read_us * self.region.read_iops / 1e6 / f64::from(self.dies.max(1))
    }
}

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
