//! The keys of a solid state disk.

use std::time::Duration;

use forebay_config::{ByteSize, ConfigError, Located, Quantity, Span};

use super::Model;
use super::checks::{Checks, RATE_MAX};
use super::raw::{RawCommon, disk_keys};
use crate::disk::{Batches, Flash, PartialSectors};

const DIES_MAX: u64 = 65_536;
const BATCH_MAX: u64 = 1 << 32;
const PAGE_MAX: u64 = 64 << 20;
const WRITE_BUFFER_MAX: u64 = 1 << 40;

disk_keys!(RawFlash {
    read_command: Located<Span>,
    write_command: Located<Span>,
    bandwidth: Located<Quantity>,
    read_latency: Option<Located<Span>>,
    write_latency: Option<Located<Span>>,
    dies: Located<u64>,
    page: Located<ByteSize>,
    page_read: Located<Span>,
    program_bandwidth: Located<Quantity>,
    suspend: Option<Located<Span>>,
    program: Option<Located<ByteSize>>,
    write_buffer: Located<ByteSize>,
    physical_sector: Option<Located<ByteSize>>,
    partial_kept: Option<Located<ByteSize>>,
    partial_cost: Option<Located<Span>>,
    collect_every: Option<Located<ByteSize>>,
    collect_pause: Option<Located<Span>>,
    discard_command: Option<Located<Span>>,
    discard_bandwidth: Option<Located<Quantity>>,
    discard_log: Option<Located<Span>>,
    discard_log_write: Option<Located<Span>>,
    discard_batch: Option<Located<u64>>,
    discard_batch_bytes: Option<Located<ByteSize>>,
    discard_turns: Option<Located<u64>>,
    read_jitter: Option<Located<Span>>,
});

pub(super) fn parse(checks: Checks<'_>) -> Result<(RawCommon, Model), ConfigError> {
    let raw: RawFlash = checks.source.parse()?;
    let (collect_every, collect_pause) = match (raw.collect_every, raw.collect_pause) {
        (None, None) => (0, Duration::ZERO),
        (Some(every), Some(pause)) => (checks.size(&every, 512, 1 << 50)?, checks.latency(&pause)?),
        (Some(Located { at, .. }), None) => {
            return Err(checks
                .source
                .error(at, "`collect_every` needs `collect_pause`, the length of the pause"));
        }
        (None, Some(Located { at, .. })) => {
            return Err(checks
                .source
                .error(at, "`collect_pause` needs `collect_every`, the bytes between two pauses"));
        }
    };
    let discard_bandwidth = raw.discard_bandwidth;
    let model = Flash {
        read_command: checks.pause(&raw.read_command)?,
        write_command: checks.pause(&raw.write_command)?,
        bandwidth: checks.rate(&raw.bandwidth, "bytes per second")?,
        read_latency: checks.pause(&raw.read_latency.unwrap_or_default())?,
        read_jitter: checks.pause(&raw.read_jitter.unwrap_or_default())?,
        write_latency: checks.pause(&raw.write_latency.unwrap_or_default())?,
        dies: checks.source.number(&raw.dies, 1..=DIES_MAX, "dies")?,
        page: checks.size(&raw.page, 512, PAGE_MAX)?,
        page_read: checks.latency(&raw.page_read)?,
        program_bandwidth: checks.rate(&raw.program_bandwidth, "bytes per second")?,
        suspend: checks.pause(&raw.suspend.unwrap_or_default())?,
        program: raw.program.map_or(Ok(0), |given| checks.size(&given, 512, PAGE_MAX))?,
        write_buffer: checks.size(&raw.write_buffer, 512, WRITE_BUFFER_MAX)?,
        physical_sector: physical_sector(checks, raw.physical_sector.as_ref())?,
        partial_sectors: partial_sectors(checks, &raw)?,
        collect_every,
        collect_pause,
        discard_command: checks.pause(&raw.discard_command.unwrap_or(raw.write_command))?,
        discard_bandwidth: discard_bandwidth
            .map_or(Ok(RATE_MAX), |given| checks.rate(&given, "bytes per second"))?,
        discard_log: checks.pause(&raw.discard_log.unwrap_or_default())?,
        discard_log_write: checks.pause(&raw.discard_log_write.unwrap_or_default())?,
        discard_batches: discard_batches(checks, &raw)?,
    };
    Ok((raw.common(), Model::Flash(model)))
}

fn discard_batches(checks: Checks<'_>, raw: &RawFlash) -> Result<Option<Batches>, ConfigError> {
    let Some(discards) = &raw.discard_batch else {
        let bytes = raw.discard_batch_bytes.map(|given| given.at);
        let turns = raw.discard_turns.map(|given| given.at);
        return bytes.or(turns).map_or(Ok(None), |at| {
            Err(checks
                .source
                .error(at, "`discard_batch` is missing: the number of discards in a batch"))
        });
    };
    let count = |given: &Located<u64>, things| checks.source.number(given, 1..=BATCH_MAX, things);
    Ok(Some(Batches {
        discards: count(discards, "discards")?,
        bytes: (raw.discard_batch_bytes)
            .map_or(Ok(u64::MAX), |given| checks.size(&given, 512, 1 << 50))?,
        turns: raw.discard_turns.map_or(Ok(u64::MAX), |given| count(&given, "commands"))?,
    }))
}

fn partial_sectors(
    checks: Checks<'_>,
    raw: &RawFlash,
) -> Result<Option<PartialSectors>, ConfigError> {
    let Some(kept) = &raw.partial_kept else {
        return raw.partial_cost.map_or(Ok(None), |cost| {
            let message = "how long does a part of a sector wait? Add `partial_kept`";
            Err(checks.source.error(cost.at, message))
        });
    };
    let kept = checks.size(kept, 1, WRITE_BUFFER_MAX)?;
    Ok(Some(PartialSectors { kept, cost: checks.pause(&raw.partial_cost.unwrap_or_default())? }))
}

fn physical_sector(
    checks: Checks<'_>,
    given: Option<&Located<ByteSize>>,
) -> Result<u64, ConfigError> {
    let Some(given) = given else { return Ok(4096) };
    let bytes = given.value.0;
    if !(512..=1 << 20).contains(&bytes) || !bytes.is_power_of_two() {
        let message = format!("{bytes} bytes; expected a power of two from 512 to 1048576");
        return Err(checks.source.error(given.at, message));
    }
    Ok(bytes)
}
