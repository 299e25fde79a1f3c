//! The keys of a `forebay.yaml` in addition to Seastar's.

use std::time::Duration;

use forebay_config::{ConfigError, Located, Quantity, Source};
use forebay_core::{Ceiling, IOPS_MAX, LADDER_POINTS_MAX, REQUEST_LEN_MAX};

use super::{Disk, Ladder, Word, region, scaled_rate};
use crate::properties::measured::contradiction;
use crate::properties::{CostAt, DiscardCost, Lasting, Measured, MeasuredDirection, Steadiness};

/// The highest accepted time in microseconds.
const TIME_US_MAX: f64 = 1e8;
const COST_NANOS_MAX: u64 = 100_000_000_000;
const KNEE_MAX: f64 = 1e6;
const EXCESS_MAX: f64 = 1e6;
const OBSERVED_SECONDS_MAX: u64 = 1 << 32;

/// Checks the keys of one disk, whose rates are to be multiplied by `factor`.
pub(super) fn check(source: Source<'_>, disk: &Disk, factor: f64) -> Result<Measured, ConfigError> {
    let time = |value: &Option<Located<f64>>| value.map(|us| micros(source, us)).transpose();
    let direction = |raw: Raw<'_>| raw.check(source, disk.max_cost_function, factor);
    let read = direction(Raw {
        cost: disk.read_cost_ns.as_ref(),
        knee: disk.read_knee,
        sequential: disk.read_sequential_iops,
        steady: disk.read_steady,
        burst_excess: disk.read_burst_excess,
        observed: disk.read_observed_s,
        lasting: [disk.read_iops_sustained, disk.read_bandwidth_sustained],
        iops: disk.read_iops,
        bandwidth: disk.read_bandwidth,
    })?;
    let write = direction(Raw {
        cost: disk.write_cost_ns.as_ref(),
        knee: disk.write_knee,
        sequential: disk.write_sequential_iops,
        steady: disk.write_steady,
        burst_excess: disk.write_burst_excess,
        observed: disk.write_observed_s,
        lasting: [disk.write_iops_sustained, disk.write_bandwidth_sustained],
        iops: disk.write_iops,
        bandwidth: disk.write_bandwidth,
    })?;
    let discard = match (disk.discard_us, disk.discard_gib_us) {
        (None, None) => None,
        (Some(command), Some(gib)) => {
            Some(DiscardCost { command: micros(source, command)?, gib: micros(source, gib)? })
        }
        (Some(alone), None) | (None, Some(alone)) => {
            let message = "discards have two costs; give discard_us and discard_gib_us";
            return Err(source.error(alone.at, message));
        }
    };
    let (base_latency, flush) = (time(&disk.base_latency_us)?, time(&disk.flush_us)?);
    if let (Some(Duration::ZERO), Some(given)) = (base_latency, disk.base_latency_us) {
        return Err(source.error(given.at, "no disk answers at once; measure again"));
    }
    let regions = region::check(source, disk.regions.as_ref(), factor)?;
    let region_goal = region::check_goal(source, disk.region_goal.as_ref())?;
    let seeks = disk.seeks;
    let ceiling = match (disk.ceiling || factor < 1.0, disk.burst) {
        (true, _) => Ceiling::Always,
        (false, true) => Ceiling::AfterBurst,
        (false, false) => Ceiling::Never,
    };
    Ok(Measured {
        base_latency,
        seeks,
        ceiling,
        read,
        write,
        flush,
        discard,
        regions,
        region_goal,
        ..Measured::default()
    })
}

/// One direction as it is written.
struct Raw<'a> {
    cost: Option<&'a Located<Ladder>>,
    knee: Option<Located<f64>>,
    sequential: Option<Located<Quantity>>,
    steady: Option<Located<bool>>,
    burst_excess: Option<Located<f64>>,
    observed: Option<Located<u64>>,
    /// Whether operations and bytes are sustained.
    lasting: [Option<Located<Word>>; 2],
    iops: Located<Quantity>,
    bandwidth: Located<Quantity>,
}

impl Raw<'_> {
    fn check(
        self,
        source: Source<'_>,
        max_cost_function: Option<Located<bool>>,
        factor: f64,
    ) -> Result<MeasuredDirection, ConfigError> {
        let cost = match (self.cost, max_cost_function) {
            (None, _) => Vec::new(),
            (Some(cost), Some(Located { value: false, .. })) => {
                let message = "measured costs contradict `max_cost_function: false`, which asks \
                               for those of Seastar; keep one of the two";
                return Err(source.error(cost.at, message));
            }
            (Some(cost), _) => {
                let points = ladder(source, cost)?;
                let (iops, bandwidth) = (self.iops.value.0, self.bandwidth.value.0);
                if let Some(contradiction) = contradiction(&points, iops, bandwidth) {
                    let message = format!("{contradiction}; measure again, or remove the costs");
                    return Err(source.error(cost.at, message));
                }
                scaled(source, cost, &points, factor)?
            }
        };
        let knee = self.knee.map(|knee| number(source, knee, 0.0, KNEE_MAX)).transpose()?;
        let in_sequence =
            |rate| scaled_rate(source, rate, factor, IOPS_MAX, "operations per second");
        let sequential_iops = self.sequential.map(in_sequence).transpose()?;
        let lasting = |word: Option<Located<Word>>| {
            word.map(|word| match word.value {
                Word::True => Lasting::Yes,
                Word::Unknown => Lasting::Unknown,
            })
        };
        let [iops_sustained, bandwidth_sustained] = self.lasting.map(lasting);
        let steadiness = self.steadiness(source)?;
        Ok(MeasuredDirection {
            cost,
            knee,
            sequential_iops,
            steadiness,
            iops_sustained,
            bandwidth_sustained,
        })
    }

    fn steadiness(&self, source: Source<'_>) -> Result<Option<Steadiness>, ConfigError> {
        let Some(steady) = self.steady else { return Ok(None) };
        let excess = |value| number(source, value, -1.0, EXCESS_MAX);
        let seconds = |value| source.number(&value, 0..=OBSERVED_SECONDS_MAX, "seconds");
        Ok(Some(Steadiness {
            steady: steady.value,
            burst_excess: self.burst_excess.map_or(Ok(0.0), excess)?,
            observed: Duration::from_secs(self.observed.map_or(Ok(0), seconds)?),
        }))
    }
}

/// A list of `[bytes, nanoseconds]`, sizes rising.
fn ladder(source: Source<'_>, cost: &Located<Ladder>) -> Result<Vec<CostAt>, ConfigError> {
    if !(1..=LADDER_POINTS_MAX).contains(&cost.value.len()) {
        let found = cost.value.len();
        let message = format!("{found} sizes; expected 1 to {LADDER_POINTS_MAX}");
        return Err(source.error(cost.at, message));
    }
    let mut last = 0;
    let check = |point: &Located<(u64, u64)>| {
        let (bytes, nanos) = point.value;
        if bytes <= last || bytes > REQUEST_LEN_MAX {
            let message = format!(
                "{bytes} bytes behind {last}; expected sizes that rise, to {REQUEST_LEN_MAX}"
            );
            return Err(source.error(point.at, message));
        }
        if !(1..=COST_NANOS_MAX).contains(&nanos) {
            let message =
                format!("{nanos} nanoseconds; expected 1 to {COST_NANOS_MAX}; measure again");
            return Err(source.error(point.at, message));
        }
        last = bytes;
        Ok(CostAt { bytes, cost: Duration::from_nanos(nanos) })
    };
    cost.value.iter().map(check).collect()
}

/// The costs of requests on a disk that is `factor` times as fast.
fn scaled(
    source: Source<'_>,
    cost: &Located<Ladder>,
    points: &[CostAt],
    factor: f64,
) -> Result<Vec<CostAt>, ConfigError> {
    let scale = |at: &CostAt| {
        let nanos = (at.cost.as_nanos() as f64 / factor).round();
        (1.0..=COST_NANOS_MAX as f64)
            .contains(&nanos)
            .then(|| CostAt { cost: Duration::from_nanos(nanos as u64), ..*at })
    };
    points.iter().map(scale).collect::<Option<_>>().ok_or_else(|| {
        let message =
            format!("divided by the rate_factor {factor:?}, a cost is below 1 ns or too high");
        source.error(cost.at, message)
    })
}

/// A time in microseconds, to the nanosecond.
fn micros(source: Source<'_>, us: Located<f64>) -> Result<Duration, ConfigError> {
    let us = number(source, us, 0.0, TIME_US_MAX)?;
    Ok(Duration::from_nanos((us * 1e3).round() as u64))
}

fn number(source: Source<'_>, given: Located<f64>, min: f64, max: f64) -> Result<f64, ConfigError> {
    if (min..=max).contains(&given.value) {
        return Ok(given.value);
    }
    let message = format!("found {:?}; expected {min} to {max}; measure again", given.value);
    Err(source.error(given.at, message))
}
