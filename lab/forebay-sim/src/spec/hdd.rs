//! The keys of a hard disk.

use forebay_config::{ConfigError, Located, Quantity, Span};

use super::Model;
use super::checks::Checks;
use super::raw::{RawCommon, disk_keys};
use crate::disk::Hdd;

const QUEUE_DEFAULT: u32 = 32;

disk_keys!(RawHdd {
    rpm: Located<u64>,
    seek_min: Located<Span>,
    seek_max: Located<Span>,
    bandwidth: Located<Quantity>,
    queue: Option<Located<u64>>,
});

pub(super) fn parse(checks: Checks<'_>) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawHdd = checks.source.parse()?;
    let queue = raw.queue.as_ref();
    let model = Hdd {
        rpm: checks.source.number(&raw.rpm, 60..=100_000, "turns per minute")?,
        seek_min: checks.pause(&raw.seek_min)?,
        seek_max: checks.latency(&raw.seek_max)?,
        bandwidth: checks.rate(&raw.bandwidth, "bytes per second")?,
        queue: queue
            .map_or(Ok(QUEUE_DEFAULT), |given| checks.source.number(given, 1..=1024, "commands"))?,
    };
    if model.seek_max < model.seek_min {
        let message = format!("less than `seek_min`, {:?}; exchange them", model.seek_min);
        return Err(checks.source.error(raw.seek_max.at, message));
    }
    Ok((raw.common(), Model::Hdd(model)))
}
