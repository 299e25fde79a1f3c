//! A disk whose latencies follow a measured surface, as a queueing model.

use super::region::Region;

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
