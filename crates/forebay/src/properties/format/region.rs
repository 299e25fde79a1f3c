//! The regions of a disk.

use std::time::Duration;

use forebay_config::{ConfigError, Located, Quantity, Source};
use serde::Deserialize;

use super::{BANDWIDTH_MAX, IOPS_MAX};
use crate::properties::{MixRegion, RADIUS_ONE, REGION_RADII, REGIONS_MAX};

/// A longer latency is a slip.
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

/// The regions of a disk whose rates are to be multiplied by `factor`.
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
            let message = "the same latency as of a region before; remove one of the two";
            return Err(source.error(region.at, message));
        }
        checked.push(next);
    }
    Ok(checked)
}

fn one(source: Source<'_>, region: &Region, factor: f64) -> Result<MixRegion, ConfigError> {
    let Region { read_percentile, latency_us, write_bandwidth, read_iops, radii } = region;
    if !(read_percentile.value > 0.0 && read_percentile.value < 100.0) {
        let message = format!("found {}; expected a percentile, such as 95", read_percentile.value);
        return Err(source.error(read_percentile.at, message));
    }
    let nanos = (latency_us.value * 1e3).round();
    if !(1.0..=LATENCY_US_MAX * 1e3).contains(&nanos) {
        let found = latency_us.value;
        let message = format!("found {found}; expected more than 0, to {LATENCY_US_MAX}");
        return Err(source.error(latency_us.at, message));
    }
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
        read_percentile: read_percentile.value,
        latency: Duration::from_nanos(nanos as u64),
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
