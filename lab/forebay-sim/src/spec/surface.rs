//! The keys of a disk that follows a latency surface.

use forebay_config::{ConfigError, Located, Quantity, Span};

use super::Model;
use super::checks::Checks;
use super::raw::{RawCommon, disk_keys};
use crate::disk::Surface;
use crate::surface::{Region, SurfaceModel};

/// From a corner in the origin to a square.
const EXPONENTS: (f64, f64) = (0.2, 20.0);
/// Dies that were busy all the time would not catch up.
const PROGRAM_SHARES: (f64, f64) = (0.0, 0.99);
const DIES_MAX: u64 = 65_536;

disk_keys!(RawSurface {
    read_iops: Located<Quantity>,
    write_bandwidth: Located<Quantity>,
    exponent: Located<f64>,
    read_latency: Located<Span>,
    write_latency: Located<Span>,
    read_bandwidth: Option<Located<Quantity>>,
    write_iops: Option<Located<Quantity>>,
    jitter: Option<Located<Span>>,
    slack: Option<Located<Span>>,
    dies: Option<Located<u64>>,
    die_read: Option<Located<Span>>,
    turn: Option<Located<Span>>,
    program: Option<Located<Span>>,
    program_share: Option<Located<f64>>,
    lull: Option<Located<Span>>,
    lull_extra: Option<Located<Span>>,
});

/// A disk given by its region and latencies.
pub(super) fn parse(checks: Checks<'_>) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawSurface = checks.source.parse()?;
    let pause = |given: Option<Located<Span>>| -> Result<f64, ConfigError> {
        Ok(checks.pause(&given.unwrap_or_default())?.as_secs_f64() * 1e6)
    };
    let share =
        raw.program_share.map(|given| decimal(checks, &given, PROGRAM_SHARES)).transpose()?;
    let model = SurfaceModel {
        region: Region {
            write_bandwidth: checks.rate(&raw.write_bandwidth, "bytes per second")? as f64,
            read_iops: checks.rate(&raw.read_iops, "reads per second")? as f64,
            exponent: decimal(checks, &raw.exponent, EXPONENTS)?,
        },
        latency_us: checks.latency(&raw.read_latency)?.as_secs_f64() * 1e6,
        jitter_us: pause(raw.jitter)?,
        dies: raw.dies.map_or(Ok(1), |given| checks.source.number(&given, 1..=DIES_MAX, "dies"))?,
        die_read_us: pause(raw.die_read)?,
        turn_us: pause(raw.turn)?,
        program_us: pause(raw.program)?,
        program_share: share.unwrap_or(0.0),
        slack_us: pause(raw.slack)?,
        lull_us: pause(raw.lull)?,
        lull_extra_us: pause(raw.lull_extra)?,
    };
    if let Some(die_read) = raw.die_read.filter(|_| model.die_load() >= 1.0) {
        let most = f64::from(model.dies) * 1e9 / model.region.read_iops;
        let message = format!(
            "{:?} on {} dies are too slow for `read_iops`; write less than {most:.0}ns, or more \
             `dies`",
            die_read.value.0, model.dies
        );
        return Err(checks.source.error(die_read.at, message));
    }
    let mut surface = Surface::new(model);
    surface.write_latency = checks.latency(&raw.write_latency)?;
    if let Some(given) = &raw.read_bandwidth {
        surface.read_bandwidth = checks.rate(given, "bytes per second")?;
    }
    if let Some(given) = &raw.write_iops {
        surface.write_iops = checks.rate(given, "writes per second")?;
    }
    Ok((raw.common(), Model::Surface(surface)))
}

fn decimal(
    checks: Checks<'_>,
    given: &Located<f64>,
    (least, most): (f64, f64),
) -> Result<f64, ConfigError> {
    let value = given.value;
    if !(least..=most).contains(&value) {
        let message = format!("{value}; expected {least} to {most}");
        return Err(checks.source.error(given.at, message));
    }
    Ok(value)
}
