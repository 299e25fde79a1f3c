//! The regions of a disk.

use std::time::Duration;

use forebay_config::{ConfigError, Located, Quantity, Source};
use serde::Deserialize;

use super::{BANDWIDTH_MAX, IOPS_MAX};
use crate::properties::{MixRegion, RADIUS_ONE, REGION_RADII, REGIONS_MAX, RegionGoal};

/// The highest accepted latency in microseconds.
const LATENCY_US_MAX: f64 = 1e8;

/// A region as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    read_percentile: Located<f64>,
    latency_us: Located<f64>,
    write_bandwidth: Located<Quantity>,
    read_iops: Located<Quantity>,
    radii: Located<Vec<Located<u64>>>,
}

/// A goal as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Goal {
    read_percentile: Located<f64>,
    latency_us: Located<f64>,
}

/// Checks the goal that chooses one of the regions of a disk.
pub(super) fn check_goal(
    source: Source<'_>,
    goal: Option<&Located<Goal>>,
) -> Result<Option<RegionGoal>, ConfigError> {
    let Some(Located { value: Goal { read_percentile, latency_us }, .. }) = goal else {
        return Ok(None);
    };
    let read_percentile = percentile(source, *read_percentile)?;
    let latency = latency(source, *latency_us)?;
    Ok(Some(RegionGoal { read_percentile, latency }))
}

/// Checks the regions of a disk whose rates are to be multiplied by `factor`.
pub(super) fn check(
    source: Source<'_>,
    regions: Option<&Located<Vec<Located<Region>>>>,
    factor: f64,
) -> Result<Vec<MixRegion>, ConfigError> {
    let Some(regions) = regions else { return Ok(Vec::new()) };
    if regions.value.len() > REGIONS_MAX {
        let message = format!("{} regions; expected at most {REGIONS_MAX}", regions.value.len());
        return Err(source.error(regions.at, message));
    }
    let mut checked: Vec<MixRegion> = Vec::new();
    for region in &regions.value {
        let next = one(source, &region.value, factor)?;
        let same = |other: &MixRegion| {
            (other.read_percentile, other.latency) == (next.read_percentile, next.latency)
        };
        if checked.iter().any(same) {
            let message = "an earlier region has the same latency; remove one of the two";
            return Err(source.error(region.at, message));
        }
        checked.push(next);
    }
    Ok(checked)
}

fn one(source: Source<'_>, region: &Region, factor: f64) -> Result<MixRegion, ConfigError> {
    let Region { read_percentile, latency_us, write_bandwidth, read_iops, radii } = region;
    let read_percentile = percentile(source, *read_percentile)?;
    let latency = latency(source, *latency_us)?;
    if radii.value.len() != REGION_RADII {
        let message = format!("{} radii; expected {REGION_RADII}", radii.value.len());
        return Err(source.error(radii.at, message));
    }
    let most = 2 * u64::from(RADIUS_ONE);
    let radius = |radius: &Located<u64>| {
        let value = u32::try_from(radius.value).ok().filter(|_| radius.value <= most);
        value.filter(|&value| value > 0).ok_or_else(|| {
            source.error(radius.at, format!("found {}; expected 1 to {most}", radius.value))
        })
    };
    Ok(MixRegion {
        read_percentile,
        latency,
        write_bandwidth: super::scaled_rate(
            source,
            *write_bandwidth,
            factor,
            BANDWIDTH_MAX,
            "bytes per second",
        )?,
        read_iops: super::scaled_rate(source, *read_iops, factor, IOPS_MAX, "reads per second")?,
        radii: radii.value.iter().map(radius).collect::<Result<_, _>>()?,
    })
}

fn percentile(source: Source<'_>, given: Located<f64>) -> Result<f64, ConfigError> {
    if given.value > 0.0 && given.value < 100.0 {
        return Ok(given.value);
    }
    let message = format!("found {:?}; expected a percentile, such as 95", given.value);
    Err(source.error(given.at, message))
}

fn latency(source: Source<'_>, given: Located<f64>) -> Result<Duration, ConfigError> {
    let nanos = (given.value * 1e3).round();
    if (1.0..=LATENCY_US_MAX * 1e3).contains(&nanos) {
        return Ok(Duration::from_nanos(nanos as u64));
    }
    let message = format!("found {:?}; expected more than 0, to {LATENCY_US_MAX}", given.value);
    Err(source.error(given.at, message))
}
