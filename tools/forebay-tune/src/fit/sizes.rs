//! Throughput by request size.

use core::ops::RangeInclusive;

use forebay_core::IOPS_MAX;
use serde::Serialize;

use super::Figure;
use crate::phase::{Purpose, Work};
use crate::run::{MeasuredPhase, Run};

/// A bandwidth is reached by requests that come so close to it.
const SATURATED: f64 = 0.95;
/// So far apart may a rate be that was measured twice.
const SAME: RangeInclusive<f64> = 0.67..=1.5;
/// The size of small requests, in bytes, where sectors are no larger.
const SMALL: u32 = 4096;

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

    fn of(measured: &MeasuredPhase) -> Self {
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
    /// What requests cost: at random places up to the saturation length, in sequence from there,
    /// and as the figures say. Empty where the rates changed while sizes were measured.
    pub cost: Vec<CostPoint>,
}

impl Sizes {
    /// How many of the smallest requests a stream has per second; none where nobody measured it.
    pub(crate) fn in_sequence(&self) -> Option<u64> {
        let rate = self.stream.first()?.rate.round();
        (1.0..=IOPS_MAX as f64).contains(&rate).then_some(rate as u64)
    }
}

/// One direction by size, whose figures are `iops` and `bandwidth`.
pub(super) fn sizes(run: &Run, work: Work, iops: Figure, bandwidth: Figure) -> Sizes {
    let points = |purpose| run.of(purpose, work).map(CostPoint::of).collect::<Vec<_>>();
    let (random, stream) = (points(Purpose::Sizes), points(Purpose::Stream));
    let saturation = saturation(run, work);
    let cost = cost(&random, &stream, saturation, iops, bandwidth).unwrap_or_default();
    Sizes { cost, random, stream, saturation }
}

/// The ladders, joined and raised or lowered to the figures, which were measured later. `None`
/// where the rates have changed so much meanwhile that the ladders say nothing.
fn cost(
    random: &[CostPoint],
    stream: &[CostPoint],
    saturation: Saturation,
    iops: Figure,
    bandwidth: Figure,
) -> Option<Vec<CostPoint>> {
    let small = random.iter().find(|point| point.bytes == iops.request_bytes)?;
    let by_iops = iops.value / small.rate.max(f64::MIN_POSITIVE);
    let by_bandwidth = bandwidth.value / saturation.bandwidth.max(f64::MIN_POSITIVE);
    if !SAME.contains(&by_iops) || !SAME.contains(&by_bandwidth) {
        return None;
    }
    // What is smaller than a sector costs more than a sector, and must not make that dearer.
    let counts = |point: &&CostPoint| {
        let cheaper = small.bytes <= SMALL && point.rate >= small.rate;
        u64::from(point.bytes) < saturation.bytes && (point.bytes >= small.bytes || cheaper)
    };
    let before = random.iter().filter(counts).map(|point| {
        let rate = point.rate * by_iops;
        let most = bandwidth.value / f64::from(point.bytes);
        CostPoint { rate: if point.bytes > small.bytes { rate.min(most) } else { rate }, ..*point }
    });
    let behind = stream.iter().filter(|point| u64::from(point.bytes) >= saturation.bytes);
    let behind = behind.map(|point| {
        let most = (point.rate + point.margin) * f64::from(point.bytes);
        // Each was measured for a moment; the figure is better known.
        let rate = if most >= saturation.bandwidth * SATURATED {
            bandwidth.value / f64::from(point.bytes)
        } else {
            point.rate * by_bandwidth
        };
        CostPoint { rate, ..*point }
    });
    Some(before.chain(behind).collect())
}

/// The smallest size of streams that reaches the bandwidth.
pub(crate) fn saturation(run: &Run, work: Work) -> Saturation {
    let points: Vec<CostPoint> = run.of(Purpose::Stream, work).map(CostPoint::of).collect();
    let bandwidth = points.iter().map(CostPoint::bandwidth).fold(0.0, f64::max);
    let first = points.iter().find(|point| point.bandwidth() >= bandwidth * SATURATED);
    Saturation { bytes: first.map_or(0, |point| point.bytes.into()), bandwidth }
}
