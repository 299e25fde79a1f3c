//! The list of faults of a disk file.

use std::time::Duration;

use forebay_config::{ByteSize, ConfigError, Located, Position, Span};
use serde::Deserialize;

use super::checks::Checks;
use crate::disk::{Fault, Range};

/// More than any scenario needs; each is looked at for every command.
const FAULTS_MAX: usize = 100;
/// No simulation lasts longer.
const MOMENT_MAX: Duration = Duration::from_secs(1_000_000_000);

/// An entry of the list, as it stands in the text: the keys of all kinds.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFault {
    kind: Located<RawKind>,
    from: Option<Located<Span>>,
    to: Option<Located<Span>>,
    percent: Option<Located<u64>>,
    offset: Option<Located<ByteSize>>,
    length: Option<Located<ByteSize>>,
    spread: Option<Located<Span>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawKind {
    Slow,
    Error,
    Hang,
    Reorder,
}

/// The faults of a disk of `capacity` bytes.
pub(super) fn parse(
    checks: Checks<'_>,
    list: &[Located<RawFault>],
    capacity: u64,
) -> Result<Vec<Fault>, ConfigError> {
    if let Some(beyond) = list.get(FAULTS_MAX) {
        let message = format!("{} faults; expected at most {FAULTS_MAX}", list.len());
        return Err(checks.source.error(beyond.at, message));
    }
    list.iter().map(|raw| one(checks, raw, capacity)).collect()
}

fn one(checks: Checks<'_>, raw: &Located<RawFault>, capacity: u64) -> Result<Fault, ConfigError> {
    let (at, raw) = (raw.at, &raw.value);
    let missing =
        |key| checks.source.error(raw.kind.at, format!("this kind of fault needs `{key}`; add it"));
    match raw.kind.value {
        RawKind::Slow => {
            raw.only(checks, &["from", "to", "percent"])?;
            let (from, to) = moments(checks, raw)?;
            let percent = raw.percent.ok_or_else(|| missing("percent"))?;
            let percent = checks.source.number(&percent, 1..=99, "percent of the disk's speed")?;
            Ok(Fault::Slow { from, to, percent })
        }
        RawKind::Error => {
            raw.only(checks, &["offset", "length"])?;
            let range = range(checks, raw, at, capacity)?.ok_or_else(|| missing("length"))?;
            Ok(Fault::Error(range))
        }
        RawKind::Hang => {
            raw.only(checks, &["from", "to", "offset", "length"])?;
            let (from, to) = moments(checks, raw)?;
            Ok(Fault::Hang { from, to, range: range(checks, raw, at, capacity)? })
        }
        RawKind::Reorder => {
            raw.only(checks, &["spread"])?;
            let spread = raw.spread.ok_or_else(|| missing("spread"))?;
            Ok(Fault::Reorder { spread: checks.latency(&spread)? })
        }
    }
}

impl RawFault {
    /// Complains about the first key that is given and not one of `keys`.
    fn only(&self, checks: Checks<'_>, keys: &[&str]) -> Result<(), ConfigError> {
        let given = [
            ("from", self.from.map(|given| given.at)),
            ("to", self.to.map(|given| given.at)),
            ("percent", self.percent.map(|given| given.at)),
            ("offset", self.offset.map(|given| given.at)),
            ("length", self.length.map(|given| given.at)),
            ("spread", self.spread.map(|given| given.at)),
        ];
        for (key, at) in given {
            if let Some(at) = at.filter(|_| !keys.contains(&key)) {
                let message = format!("this kind of fault has only {}; remove it", keys.join(", "));
                return Err(checks.source.error(at, message));
            }
        }
        Ok(())
    }
}

fn moments(
    checks: Checks<'_>,
    raw: &RawFault,
) -> Result<(Duration, Option<Duration>), ConfigError> {
    let from = raw.from.unwrap_or_default().value.0;
    for given in [raw.from, raw.to].into_iter().flatten() {
        if given.value.0 > MOMENT_MAX {
            let message = format!("{:?}; expected at most {MOMENT_MAX:?}", given.value.0);
            return Err(checks.source.error(given.at, message));
        }
    }
    match raw.to {
        Some(to) if to.value.0 <= from => {
            let message = format!("it ends before it begins at {from:?}; write a later moment");
            Err(checks.source.error(to.at, message))
        }
        to => Ok((from, to.map(|to| to.value.0))),
    }
}

/// The bytes from `offset` (0 unless given) on, `length` of them.
fn range(
    checks: Checks<'_>,
    raw: &RawFault,
    at: Position,
    capacity: u64,
) -> Result<Option<Range>, ConfigError> {
    let Some(length) = raw.length else {
        return match raw.offset {
            Some(offset) => {
                Err(checks.source.error(offset.at, "a range needs `length` too; add it"))
            }
            None => Ok(None),
        };
    };
    let offset = raw.offset.map_or(0, |offset| offset.value.0);
    let len = checks.size(&length, 1, capacity)?;
    if offset.saturating_add(len) > capacity {
        let message = format!(
            "the range ends at {} and the disk at {capacity}; lower `offset` or `length`",
            offset.saturating_add(len)
        );
        return Err(checks.source.error(raw.offset.map_or(at, |offset| offset.at), message));
    }
    Ok(Some(Range { offset, len }))
}
