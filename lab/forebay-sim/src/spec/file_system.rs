//! The keys of the file system on a disk.

use std::time::Duration;

use forebay_config::{ByteSize, ConfigError, Located, Span};
use serde::Deserialize;

use super::checks::Checks;
use crate::file_system::FileSystem;

const COUNT_MAX: u64 = 1 << 32;
const METADATA_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFileSystem {
    discard: Option<bool>,
    sync_period: Option<Located<Span>>,
    first_sync: Option<Located<Span>>,
    pending_max: Option<Located<u64>>,
    in_flight: Option<Located<u64>>,
    metadata: Option<Located<ByteSize>>,
}

pub(super) fn parse(
    checks: Checks<'_>,
    raw: &Located<RawFileSystem>,
) -> Result<FileSystem, ConfigError> {
    let raw = raw.value;
    let long = |given: Option<&Located<Span>>, default: Duration| {
        given.map_or(Ok(default), |given| checks.long(given))
    };
    let count = |given: Option<&Located<u64>>, default: u64, things| {
        given.map_or(Ok(default), |given| checks.source.number(given, 1..=COUNT_MAX, things))
    };
    let metadata = raw.metadata.as_ref();
    let usual = FileSystem::with_period(long(raw.sync_period.as_ref(), FileSystem::SYNC_PERIOD)?);
    Ok(FileSystem {
        discard: raw.discard.unwrap_or(usual.discard),
        first_sync: long(raw.first_sync.as_ref(), usual.first_sync)?,
        pending_max: count(raw.pending_max.as_ref(), usual.pending_max, "extents")?,
        metadata: metadata.map_or(Ok(0), |given| checks.size(given, 1, METADATA_MAX))?,
        in_flight: count(raw.in_flight.as_ref(), usual.in_flight, "discards")?,
        ..usual
    })
}
