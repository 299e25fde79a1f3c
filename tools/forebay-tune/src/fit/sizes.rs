//! Throughput by request size.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use forebay_core::{IOPS_MAX, SATURATION_LENGTH_DEFAULT};
use serde::Serialize;

use super::{Figure, RESOLUTION};
use crate::phase::{Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Rate;
use crate::statistics::{Spread, deviation, mean};

/// A bandwidth is reached by requests that come so close to it.
const SATURATED: f64 = 0.95;
/// A bandwidth that is known no better than to this part decides nothing.
const MARGIN_MAX: f64 = 0.05;
const TWO_ERRORS: f64 = 2.0;
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

    /// Half of the 95 % confidence interval of that.
    fn unsure(&self) -> f64 {
        self.margin * f64::from(self.bytes)
    }

    /// By rates of requests of this many bytes that were measured at several times.
    pub fn of_rates(bytes: u32, rates: &[f64]) -> Self {
        let rate = mean(rates);
        Self { bytes, rate, margin: Spread::of_rounds(rates).margin(rates.len()) * rate }
    }

    fn of(measured: &MeasuredPhase) -> Self {
        let rate = measured.samples.rate();
        Self { bytes: measured.phase.request_bytes, rate: rate.mean, margin: rate.margin }
    }
}

/// From which size on streams reach their bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saturation {
    /// The size, in bytes; nothing where the rates were too uneven to tell.
    pub bytes: Option<u64>,
    /// The bandwidth from there on, in bytes per second.
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
    /// and as the figures say. Empty where the rates changed while sizes were measured, and on a
    /// disk that seeks.
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
    let random: Vec<CostPoint> = run.of(Purpose::Sizes, work).map(CostPoint::of).collect();
    let stream = streams(run, work);
    let saturation = saturation_of(&stream);
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
    let joined_at = saturation.bytes.unwrap_or(SATURATION_LENGTH_DEFAULT);
    // What is smaller than a sector costs more than a sector, and must not make that dearer.
    let counts = |point: &&CostPoint| {
        let cheaper = small.bytes <= SMALL && point.rate >= small.rate;
        u64::from(point.bytes) < joined_at && (point.bytes >= small.bytes || cheaper)
    };
    let before = random.iter().filter(counts).map(|point| {
        let rate = point.rate * by_iops;
        let most = bandwidth.value / f64::from(point.bytes);
        CostPoint { rate: if point.bytes > small.bytes { rate.min(most) } else { rate }, ..*point }
    });
    let behind = stream.iter().filter(|point| u64::from(point.bytes) >= joined_at);
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

/// Streams by size: all passes of a size as one.
pub(crate) fn streams(run: &Run, work: Work) -> Vec<CostPoint> {
    let mut passes: BTreeMap<u32, Vec<Rate>> = BTreeMap::new();
    for measured in run.of(Purpose::Stream, work) {
        let rates = passes.entry(measured.phase.request_bytes).or_default();
        rates.push(measured.samples.rate_of_spans());
    }
    let sizes: Vec<(u32, Passes)> =
        passes.into_iter().map(|(bytes, rates)| (bytes, Passes::of(&rates))).collect();
    let between = between(sizes.iter().map(|(_, passes)| passes));
    let point = |(bytes, passes): (u32, Passes)| {
        let margin = TWO_ERRORS * ((passes.within + between) / passes.count).sqrt() * passes.rate;
        CostPoint { bytes, rate: passes.rate, margin }
    };
    sizes.into_iter().map(point).collect()
}

/// The same load at several times.
struct Passes {
    count: f64,
    rate: f64,
    /// The variance of one as seen within them, as a part of the square of the rate.
    within: f64,
    /// The same as seen between them.
    between: f64,
}

impl Passes {
    fn of(passes: &[Rate]) -> Self {
        let rates: Vec<f64> = passes.iter().map(|pass| pass.mean).collect();
        let rate = mean(&rates);
        let part =
            |value: f64| (value / rate.max(f64::MIN_POSITIVE)).powi(2).max(RESOLUTION.powi(2));
        let within: Vec<f64> = passes.iter().map(|pass| part(pass.margin / TWO_ERRORS)).collect();
        let between = part(deviation(&rates));
        Self { count: rates.len() as f64, rate, within: mean(&within), between }
    }
}

/// The variance from one time to another that is more than what is seen within passes: of all
/// sizes, since each has few, and by how well each is known.
fn between<'a>(sizes: impl Iterator<Item = &'a Passes>) -> f64 {
    let (mut more, mut weights) = (0.0, 0.0);
    for passes in sizes.filter(|passes| passes.count > 1.0) {
        more += passes.between / passes.within - 1.0;
        weights += passes.within.recip();
    }
    if weights > 0.0 { f64::max(more / weights, 0.0) } else { 0.0 }
}

/// From which size on streams of one direction reach their bandwidth.
pub(crate) fn saturation(run: &Run, work: Work) -> Saturation {
    saturation_of(&streams(run, work))
}

/// The first of `points`, the smallest first, whose bandwidth may be as good as the best that was
/// seen: none where it is not known well, or what is larger may be better for all that is known.
pub fn saturation_of(points: &[CostPoint]) -> Saturation {
    let is_known = |point: &&CostPoint| point.rate > 0.0 && point.margin <= point.rate * MARGIN_MAX;
    let [least, most] =
        [-1.0, 1.0].map(|sign| move |point: &CostPoint| point.bandwidth() + sign * point.unsure());
    let best = points.iter().filter(is_known).map(&least).fold(0.0, f64::max);
    let as_good = |point: &&CostPoint| best > 0.0 && most(point) >= best * SATURATED;
    let first = points.iter().find(as_good).filter(is_known).filter(|first| {
        let behind = || points.iter().filter(|point| point.bytes > first.bytes);
        let uneven = Joined::of(behind().filter(|point| !is_known(point)));
        let better = |joined: Joined| joined.mean - joined.margin > most(first) / SATURATED;
        let seen = behind().any(|point| is_known(&point))
            || uneven.is_none_or(|joined| joined.margin <= joined.mean * MARGIN_MAX);
        seen && !uneven.is_some_and(better)
    });
    let from = first.map_or(0, |first| first.bytes);
    let level = points.iter().filter(|point| point.bytes >= from).filter(as_good).filter(is_known);
    let bandwidth = Joined::of(level).map_or_else(
        || points.iter().map(CostPoint::bandwidth).fold(0.0, f64::max),
        |joined| joined.mean,
    );
    Saturation { bytes: first.map(|first| first.bytes.into()), bandwidth }
}

/// Bandwidths of several sizes as one, each by how well it is known.
#[derive(Clone, Copy)]
struct Joined {
    mean: f64,
    margin: f64,
}

impl Joined {
    fn of<'a>(points: impl Iterator<Item = &'a CostPoint>) -> Option<Self> {
        let (mut weights, mut sum) = (0.0, 0.0);
        for point in points.filter(|point| point.rate > 0.0) {
            let weight = point.unsure().max(point.bandwidth() * RESOLUTION).powi(2).recip();
            weights += weight;
            sum += weight * point.bandwidth();
        }
        (weights > 0.0).then(|| Self { mean: sum / weights, margin: weights.sqrt().recip() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on sizes from 4 KiB on, by MB/s and their margins in percent.
    fn said(points: &[(f64, f64)]) -> Option<u64> {
        let point = |(place, &(mb, percent)): (usize, &(f64, f64))| {
            let bytes = 4096 << place;
            let rate = mb * 1e6 / f64::from(bytes);
            CostPoint { bytes, rate, margin: rate * percent / 100.0 }
        };
        let points: Vec<CostPoint> = points.iter().enumerate().map(point).collect();
        saturation_of(&points).bytes.map(|bytes| bytes >> 10)
    }

    #[test]
    fn a_noisy_rate_of_a_large_size_decides_nothing() {
        let known = [(906.0, 1.1), (999.0, 0.8), (1072.0, 2.4), (1103.0, 4.0)];
        let noisy = [(1100.0, 7.9), (1090.0, 12.6), (1110.0, 14.0), (1180.0, 26.0)];
        assert_eq!(said(&[known, noisy].concat()), Some(8));
        let faster = [(1133.0, 7.9), (1104.0, 12.6), (1143.0, 14.0), (1221.0, 26.0)];
        assert_eq!(said(&[known, faster].concat()), None, "together they are above 8 KiB");
    }

    #[test]
    fn a_size_that_is_known_to_do_more_is_the_one_however_large() {
        let rising: Vec<(f64, f64)> =
            (0..10).map(|place| (16.0 * 2_f64.powi(place), 1.0)).collect();
        assert_eq!(said(&rising), Some(2048));
        assert_eq!(said(&[rising, vec![(8192.0, 1.0)]].concat()), Some(2048));
    }

    #[test]
    fn where_margins_do_not_tell_there_is_no_verdict() {
        assert_eq!(said(&[(500.0, 6.0), (510.0, 7.0), (505.0, 8.0)]), None);
        assert_eq!(said(&[(250.0, 1.0), (500.0, 1.0), (900.0, 20.0)]), None, "it may rise on");
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn two_sizes_by_turns_differ_only_by_more_than_their_own_turns_do() {
        let said = |rates: [&[f64]; 2]| {
            let [large, largest] = rates;
            let sizes = [(128 << 10, large), (1 << 20, largest)];
            saturation_of(&sizes.map(|(bytes, rates)| CostPoint::of_rates(bytes, rates))).bytes
        };
        let [large, largest] = [[8000.0, 8100.0, 7900.0, 8050.0], [1075.0, 1060.0, 1090.0, 1070.0]];
        assert_eq!(said([&large, &largest]), Some(128 << 10));
        assert_eq!(said([&large, &largest.map(|rate| rate * 2.0)]), Some(1 << 20));
    }
}
