//! Which mixes of reads and writes keep a latency, as measured.

use std::time::Duration;

/// This many radii describe a region.
pub const REGION_RADII: usize = 33;
/// What a radius of 1 is.
pub const RADIUS_ONE: u32 = 1 << 16;
/// The most regions of a disk.
pub const REGIONS_MAX: usize = 16;

/// Which of several regions the scheduler goes by: the one nearest to this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionGoal {
    /// Which percentile of the latency of reads, above 0 and below 100.
    pub read_percentile: f64,
    /// How long it is at most, above 0 and at most 100 seconds.
    pub latency: Duration,
}

/// The mixes of reads and writes that keep a latency of reads. Under
/// [`Policy::PaceWindow`](crate::Policy::PaceWindow) the disk gets no more of a mix than the region
/// holds; reads without writes, and writes without reads, have their full rate.
///
/// Counted in disk time as a straight line between two figures has it, a second of the disk holds
/// as much as the radius at the part that writes have of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MixRegion {
    /// Which percentile of the latency of reads, above 0 and below 100.
    pub read_percentile: f64,
    /// How long it is at most, above 0 and at most 100 seconds.
    pub latency: Duration,
    /// The end of the line at writes alone, in bytes per second.
    pub write_bandwidth: u64,
    /// The end of the line at reads alone, in reads per second.
    pub read_iops: u64,
    /// [`REGION_RADII`] of them at equal steps of the part of writes, from reads alone to writes
    /// alone: 1 to twice [`RADIUS_ONE`], which is a radius of 1.
    pub radii: Vec<u32>,
}
