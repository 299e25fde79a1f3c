//! The keys of a cloud volume.

use forebay_config::{ByteSize, ConfigError, Located, Quantity, Span};

use super::Model;
use super::checks::Checks;
use super::raw::{RawCommon, disk_keys};
use crate::disk::Cloud;

/// Credits that take longer than this to come back never do, for a simulation.
const CREDITS_SECONDS_MAX: u64 = 10_000_000;
pub(super) const OPERATION_BYTES_DEFAULT: u64 = 256 << 10;

disk_keys!(RawCloud {
    iops: Option<Located<Quantity>>,
    burst_iops: Option<Located<Quantity>>,
    burst_credits: Option<Located<Quantity>>,
    burst_credits_left: Option<Located<Quantity>>,
    bandwidth: Located<Quantity>,
    operation_bytes: Option<Located<ByteSize>>,
    latency: Located<Span>,
    jitter: Option<Located<Span>>,
});

pub(super) fn parse(checks: Checks<'_>) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawCloud = checks.source.parse()?;
    let Some(iops) = raw.iops else {
        let at = raw.burst_credits.or(raw.burst_iops).unwrap_or(raw.bandwidth).at;
        let message = "there is no baseline rate; add `iops`, at which credits come back too";
        return Err(checks.source.error(at, message));
    };
    let iops = checks.rate(&iops, "operations per second")?;
    let (burst_iops, burst_credits) = burst(checks, &raw, iops)?;
    let model = Cloud {
        iops,
        burst_iops,
        burst_credits,
        burst_credits_left: left(checks, &raw, burst_credits)?,
        bandwidth: checks.rate(&raw.bandwidth, "bytes per second")?,
        operation_bytes: raw
            .operation_bytes
            .map_or(Ok(OPERATION_BYTES_DEFAULT), |given| checks.size(&given, 512, 1 << 30))?,
        latency: checks.latency(&raw.latency)?,
        jitter: checks.pause(&raw.jitter.unwrap_or_default())?,
    };
    Ok((raw.common(), Model::Cloud(model)))
}

/// The credits at the beginning, of this many at most.
fn left(checks: Checks<'_>, raw: &RawCloud, credits: u64) -> Result<u64, ConfigError> {
    let Some(left) = raw.burst_credits_left else { return Ok(credits) };
    checks.source.number(&Located { value: left.value.0, at: left.at }, 0..=credits, "credits")
}

fn burst(checks: Checks<'_>, raw: &RawCloud, iops: u64) -> Result<(u64, u64), ConfigError> {
    let (burst, credits) = match (raw.burst_iops, raw.burst_credits) {
        (None, None) => return Ok((iops, 0)),
        (Some(burst), Some(credits)) => (burst, credits),
        (Some(Located { at, .. }), None) => {
            return Err(checks.source.error(at, "a burst needs credits; add `burst_credits`"));
        }
        (None, Some(Located { at, .. })) => {
            return Err(checks.source.error(at, "credits are for a burst; add `burst_iops`"));
        }
    };
    let burst_iops = checks.rate(&burst, "operations per second")?;
    if burst_iops <= iops {
        let message = format!("{burst_iops} is no burst; expected more than `iops`, {iops}");
        return Err(checks.source.error(burst.at, message));
    }
    let given = Located { value: credits.value.0, at: credits.at };
    let max = iops.saturating_mul(CREDITS_SECONDS_MAX);
    Ok((burst_iops, checks.source.number(&given, 1..=max, "credits")?))
}
