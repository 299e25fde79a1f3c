//! The keys of an ideal disk.

use forebay_config::{ConfigError, Located, Quantity, Span};

use super::Model;
use super::checks::Checks;
use super::raw::{RawCommon, disk_keys};
use crate::disk::Ideal;

/// Some thousand are more than any disk has; memory is proportional to them.
const CHANNELS_MAX: u64 = 65_536;

disk_keys!(RawIdeal {
    channels: Located<u64>,
    read_latency: Located<Span>,
    write_latency: Located<Span>,
    bandwidth: Option<Located<Quantity>>,
    read_bandwidth: Option<Located<Quantity>>,
    write_bandwidth: Option<Located<Quantity>>,
});

pub(super) fn parse(checks: Checks<'_>) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawIdeal = checks.source.parse()?;
    let bandwidth = |own: Option<Located<Quantity>>, key| match own.or(raw.bandwidth) {
        Some(given) => checks.rate(&given, "bytes per second"),
        None => {
            let message = format!("there is no bandwidth; add `bandwidth`, or `{key}`");
            Err(checks.source.error(raw.channels.at, message))
        }
    };
    let model = Ideal {
        channels: checks.source.number(&raw.channels, 1..=CHANNELS_MAX, "channels")?,
        read_latency: checks.latency(&raw.read_latency)?,
        write_latency: checks.latency(&raw.write_latency)?,
        read_bandwidth: bandwidth(raw.read_bandwidth, "read_bandwidth")?,
        write_bandwidth: bandwidth(raw.write_bandwidth, "write_bandwidth")?,
    };
    Ok((raw.common(), Model::Ideal(model)))
}
