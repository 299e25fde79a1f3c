//! Regions: the mixes of reads and writes that meet a latency, as measured.

use std::time::Duration;

/// The number of radii of a region.
pub const REGION_RADII: usize = 33;
/// The integer that stands for a radius of 1.
pub const RADIUS_ONE: u32 = 1 << 16;
/// The most regions of a disk.
pub const REGIONS_MAX: usize = 16;

/// The goal by which the scheduler chooses one of several regions: the nearest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionGoal {
    /// The percentile of the latency of reads, above 0 and below 100.
    pub read_percentile: f64,
    /// The highest value of that percentile, above 0 and at most 100 seconds.
    pub latency: Duration,
}

/// The mixes of reads and writes that meet a latency of reads.
///
/// Under [`Policy::PaceWindow`](crate::Policy::PaceWindow) mixes are limited to the region; reads
/// without writes, and writes without reads, have their full rate. Disk time is counted by the
/// straight line between two rates. The radius at a fraction of writes is how much of this disk
/// time the disk does per second.
#[derive(Clone, Debug, PartialEq)]
pub struct MixRegion {
    /// The percentile of the latency of reads, above 0 and below 100.
    pub read_percentile: f64,
    /// The highest value of that percentile, above 0 and at most 100 seconds.
    pub latency: Duration,
    /// The end of the line at writes alone, in bytes per second.
    pub write_bandwidth: u64,
    /// The end of the line at reads alone, in reads per second.
    pub read_iops: u64,
    /// [`REGION_RADII`] radii at equal steps of the fraction of writes, from reads alone to writes
    /// alone: 1 to twice [`RADIUS_ONE`], which stands for a radius of 1.
    pub radii: Vec<u32>,
}
