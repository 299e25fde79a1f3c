//! What is asked of reads: a percentile of their latency, and how long it may be.

use core::fmt;
use core::str::FromStr;

use forebay_sim::surface::Cell;

/// A percentile of the latency of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// The 95th.
    P95,
    /// The 99th.
    P99,
    /// The 99.9th.
    P999,
}

impl Percentile {
    /// All, in rising order.
    pub const ALL: [Self; 4] = [Self::P50, Self::P95, Self::P99, Self::P999];

    /// As it is written in a goal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// As a number.
    pub const fn number(self) -> f64 {
        match self {
            Self::P50 => 50.0,
            Self::P95 => 95.0,
            Self::P99 => 99.0,
            Self::P999 => 99.9,
        }
    }

    /// The latency in microseconds, if it was measured.
    pub fn of(self, cell: &Cell) -> Option<f64> {
        match self {
            Self::P50 => Some(cell.p50_us),
            Self::P95 => Some(cell.p95_us),
            Self::P99 => cell.p99_us,
            Self::P999 => cell.p999_us,
        }
    }

    /// Whether the latency of the cell is a lower bound only.
    pub fn is_bound(self, cell: &Cell) -> bool {
        if self == Self::P50 { cell.median_clipped() } else { cell.clipped }
    }
}

/// A percentile of the latency of reads, and how long it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The percentile.
    pub percentile: Percentile,
    /// The latency in microseconds, above 0 and at most a minute.
    pub latency_us: f64,
}

/// A longer latency is a slip.
pub(crate) const LATENCY_MAX_US: f64 = 60e6;

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{}` is no goal; write p50, p95, p99 or p99.9, `=` and a time, such as \
                     p95=1ms",
                text.escape_debug()
            )
        };
        let (name, time) = text.split_once('=').ok_or_else(wrong)?;
        let percentile = Percentile::ALL.into_iter().find(|percentile| percentile.name() == name);
        let end = time.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(time.len());
        let (number, unit) = time.split_at(end);
        let scale = match unit {
            "ns" => 1e-3,
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let latency_us = number * scale;
        if !(f64::MIN_POSITIVE..=LATENCY_MAX_US).contains(&latency_us) {
            return Err(format!(
                "`{time}` is not a valid latency; expected more than 0, up to a \
                                minute"
            ));
        }
        Ok(Self { percentile: percentile.ok_or_else(wrong)?, latency_us })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.percentile.name(), time(self.latency_us))
    }
}

/// A time in the unit that people read it in.
pub(crate) fn time(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "us"),
    };
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_back_as_they_are_written() {
        for text in ["p95=1ms", "p50=250us", "p99=1.5ms", "p99.9=2s"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
        for text in
            ["", "p95", "p95=", "p95=1", "p90=1ms", "p95=0ms", "p95=-1ms", "p95=1h", "p95=.ms"]
        {
            assert!(text.parse::<Goal>().is_err(), "{text}");
        }
    }
}
