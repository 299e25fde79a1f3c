//! The options `--control` and `--fixed`: what decides how much work the disk gets.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay_core::{Control, FixedControl};

use crate::span;

/// Paces above this many times the figures' rate are typing errors.
const PACE_MAX: f64 = 1000.0;

/// What decides how much work --policy pace+window sends to the disk.
#[derive(Args)]
pub(crate) struct ControlOptions {
    /// How --policy pace+window sizes the window and the pace [default: adaptive]
    #[arg(long, alias = "ceiling", value_enum)]
    control: Option<ControlName>,
    /// A constant window in disk time, and a constant pace as a factor on the rates of the
    /// properties file, or off; for comparisons. An example is window=1.5ms,pace=off
    #[arg(long, value_name = "window=TIME,pace=FACTOR", conflicts_with = "control")]
    fixed: Option<Fixed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ControlName {
    /// Trials find the smallest window that gives the full throughput of the present mix of
    /// requests
    #[value(alias = "knee")]
    Adaptive,
    /// The rates of the properties file are upper limits, with at most two effective goals of disk
    /// time in flight
    #[value(alias = "figures")]
    Rates,
}

impl ControlOptions {
    /// What was asked for.
    pub(crate) fn control(&self) -> Control {
        match (self.fixed, self.control) {
            (Some(Fixed(constants)), _) => Control::Fixed(constants),
            (None, Some(ControlName::Rates)) => Control::Rates,
            (None, None | Some(ControlName::Adaptive)) => Control::Adaptive,
        }
    }

    /// The option that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match (self.fixed, self.control) {
            (Some(_), _) => Some("--fixed"),
            (None, Some(_)) => Some("--control"),
            (None, None) => None,
        }
    }
}

/// A window and a pace, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixed(FixedControl);

impl FromStr for Fixed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut window, mut pace_permille) = (None, None);
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("window", time)) => window = Some(span::parse_positive(time)?),
                Some(("pace", factor)) => pace_permille = pace(factor)?,
                _ => return Err(format!("found `{part}`; expected window=TIME or pace=FACTOR")),
            }
        }
        let window: Duration = window.ok_or("the window is missing; add window=TIME")?;
        Ok(Self(FixedControl { window, pace_permille }))
    }
}

/// Thousandths of the figures' rate; `None` for a pace that does not bind.
fn pace(text: &str) -> Result<Option<u32>, String> {
    if text == "off" {
        return Ok(None);
    }
    let factor = text.parse().ok().filter(|factor| (0.001..=PACE_MAX).contains(factor));
    let factor: f64 = factor.ok_or_else(|| {
        format!("invalid pace `{text}`; expected a factor from 0.001 to {PACE_MAX}, or off")
    })?;
    Ok(Some((factor * 1000.0).round() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_a_window_and_a_pace() {
        let of = |text: &str| text.parse::<Fixed>().map(|Fixed(constants)| constants);
        let window = Duration::from_micros(1500);
        assert_eq!(of("window=1.5ms"), Ok(FixedControl { window, pace_permille: None }));
        let half = FixedControl { window, pace_permille: Some(500) };
        assert_eq!(of("pace=0.5,window=1.5ms"), Ok(half));
        for wrong in ["", "pace=1", "window=0s", "window=1ms,pace=0", "window=1ms,pace=inf", "1ms"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
