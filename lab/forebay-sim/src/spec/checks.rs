//! Bounds of parameters.

use std::ops::RangeInclusive;
use std::time::Duration;

use forebay_config::{ByteSize, ConfigError, Located, Quantity, Source, Span};

pub(super) const CAPACITY_DEFAULT: u64 = 64 << 30;
/// Offsets on Linux are signed.
pub(super) const CAPACITY_MAX: u64 = i64::MAX as u64;
pub(super) const SECTOR_DEFAULT: u64 = 512;
/// Far above any disk, and far below what would overflow.
pub(super) const RATE_MAX: u64 = 1 << 50;
const LATENCY_MIN: Duration = Duration::from_nanos(1);
const LATENCY_MAX: Duration = Duration::from_secs(60);
const LONG_MIN: Duration = Duration::from_millis(1);
const LONG_MAX: Duration = Duration::from_secs(3600);

/// What parameters are checked against.
#[derive(Clone, Copy)]
pub(super) struct Checks<'a> {
    pub(super) source: &'a Source<'a>,
}

impl Checks<'_> {
    pub(super) fn sector(&self, given: Option<&Located<u64>>) -> Result<u64, ConfigError> {
        match given {
            None => Ok(SECTOR_DEFAULT),
            Some(&Located { value: value @ (512 | 4096), .. }) => Ok(value),
            Some(given) => {
                let message = format!("sectors of {} bytes; write 512 or 4096", given.value);
                Err(self.source.error(given.at, message))
            }
        }
    }

    /// As given, or else `default`; not more than `max`.
    pub(super) fn capacity(
        &self,
        given: Option<&Located<ByteSize>>,
        sector: u64,
        default: u64,
        max: u64,
    ) -> Result<u64, ConfigError> {
        given.map_or(Ok(default), |given| self.size(given, sector, max))
    }

    /// A multiple of `unit`, from one `unit` to `max` bytes.
    pub(super) fn size(
        &self,
        given: &Located<ByteSize>,
        unit: u64,
        max: u64,
    ) -> Result<u64, ConfigError> {
        let bytes = given.value.0;
        if !(unit..=max).contains(&bytes) || !bytes.is_multiple_of(unit) {
            let message = format!("{bytes} bytes; expected a multiple of {unit} up to {max}");
            return Err(self.source.error(given.at, message));
        }
        Ok(bytes)
    }

    /// A rate of `things`, which must not be zero.
    pub(super) fn rate(&self, given: &Located<Quantity>, things: &str) -> Result<u64, ConfigError> {
        let given = Located { value: given.value.0, at: given.at };
        self.source.number(&given, 1..=RATE_MAX, things)
    }

    /// A length of time that a command takes, which must not be zero.
    pub(super) fn latency(&self, given: &Located<Span>) -> Result<Duration, ConfigError> {
        self.within(given, LATENCY_MIN..=LATENCY_MAX)
    }

    /// A length of time between events, of minutes perhaps.
    pub(super) fn long(&self, given: &Located<Span>) -> Result<Duration, ConfigError> {
        self.within(given, LONG_MIN..=LONG_MAX)
    }

    /// A length of time that may be zero.
    pub(super) fn pause(&self, given: &Located<Span>) -> Result<Duration, ConfigError> {
        self.within(given, Duration::ZERO..=LATENCY_MAX)
    }

    fn within(
        &self,
        given: &Located<Span>,
        range: RangeInclusive<Duration>,
    ) -> Result<Duration, ConfigError> {
        let length = given.value.0;
        if !range.contains(&length) {
            let (min, max) = range.into_inner();
            let message = format!("{length:?}; expected {min:?} to {max:?}");
            return Err(self.source.error(given.at, message));
        }
        Ok(length)
    }
}
