//! Throughput by request size.

use serde::Serialize;

use crate::phase::{Purpose, Work};
use crate::run::{Measured, Run};

/// A bandwidth is reached by requests that come so close to it.
const SATURATED: f64 = 0.95;

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostPoint {
    /// Their size.
    pub bytes: u32,
    /// How many per second.
    pub rate: f64,
    /// Half of its 95 % confidence interval.
    pub margin: f64,
}

impl CostPoint {
    /// Bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.rate * f64::from(self.bytes)
    }

    fn of(measured: &Measured) -> Self {
        let rate = measured.samples.rate();
        Self { bytes: measured.phase.request_bytes, rate: rate.mean, margin: rate.margin }
    }
}

/// From which size on streams reach their bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// The size, in bytes.
    pub bytes: u64,
    /// The best bandwidth, in bytes per second.
    pub bandwidth: f64,
}

/// One direction by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// At random places.
    pub random: Vec<CostPoint>,
    /// In sequence.
    pub stream: Vec<CostPoint>,
    /// From which size on streams reach their bandwidth.
    pub saturation: Saturation,
    /// What requests cost: at random places up to the saturation length, in sequence from there.
    pub cost: Vec<CostPoint>,
}

pub(super) fn sizes(run: &Run, work: Work) -> Sizes {
    let points = |purpose| run.of(purpose, work).map(CostPoint::of).collect::<Vec<_>>();
    let (random, stream) = (points(Purpose::Sizes), points(Purpose::Stream));
    let saturation = saturation(run, work);
    let is_small = |point: &&CostPoint| u64::from(point.bytes) < saturation.bytes;
    let small = random.iter().filter(is_small);
    let large = stream.iter().filter(|point| !is_small(point));
    let cost = small.chain(large).copied().collect();
    Sizes { cost, random, stream, saturation }
}

/// The smallest size of streams that reaches the bandwidth.
pub(crate) fn saturation(run: &Run, work: Work) -> Saturation {
    let points: Vec<CostPoint> = run.of(Purpose::Stream, work).map(CostPoint::of).collect();
    let bandwidth = points.iter().map(CostPoint::bandwidth).fold(0.0, f64::max);
    let first = points.iter().find(|point| point.bandwidth() >= bandwidth * SATURATED);
    Saturation { bytes: first.map_or(0, |point| point.bytes.into()), bandwidth }
}
