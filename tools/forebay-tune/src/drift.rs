//! Drift: whether a disk keeps its speed.

use serde::Serialize;

use crate::phase::{Pattern, Purpose, Work};
use crate::run::Run;
use crate::statistics::{mean, slope};

/// SNIA's rule of the steady state: over this many last rounds, the range of the rates is at most
/// `RANGE_MAX` of their mean, and the line through them rises or falls by at most `SLOPE_MAX` of it.
const WINDOW: usize = 5;
const RANGE_MAX: f64 = 0.2;
const SLOPE_MAX: f64 = 0.1;
/// A disk is only called steady after this many seconds, because some become slower after half an hour.
pub(crate) const KNOWN_AFTER: f64 = 35.0 * 60.0;
/// A change below this fraction is noise.
const CHANGE_MIN: f64 = 0.03;
/// A fall by this fraction at once, between two level rates, is the end of burst credits.
const BURST_MIN: f64 = 0.2;
/// Rates that differ by at most this fraction are level.
pub(crate) const LEVEL: f64 = 0.1;
/// The least number of rounds at the lower level.
const AFTER_MIN: usize = 3;

/// The rate of one load at some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Observation {
    /// The middle of the phase, in seconds since the measurement began.
    pub at: f64,
    /// The rate in requests per second.
    pub rate: f64,
    /// Half of the 95 % confidence interval of the rate.
    pub margin: f64,
}

/// A higher rate at first, until burst credits were used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Burst {
    /// The requests per second with credits.
    pub high: f64,
    /// The requests per second without credits.
    pub low: f64,
    /// When the credits ran out, in seconds since the measurement began.
    pub seconds: f64,
}

/// Whether a disk keeps its speed, as far as it was observed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// The rates of the same load at several times.
    pub trace: Vec<Observation>,
    /// The seconds from the first to the last of them.
    pub observed_seconds: f64,
    /// The range of the last rounds, as a fraction of their mean.
    pub range: f64,
    /// The rise or fall of the line through the last rounds, as a fraction of their mean.
    pub slope: f64,
    /// Whether SNIA's rule holds for the last rounds.
    pub level: bool,
    /// By how much the first rate exceeds that of the last rounds, as a fraction of the latter. 0 if
    /// the difference is noise.
    #[serde(rename = "first_excess")]
    pub burst_excess: f64,
    /// The burst on credits, if there was one.
    pub burst: Option<Burst>,
}

impl Steadiness {
    /// Whether the disk was level for long enough to be called steady.
    pub fn is_known(&self) -> bool {
        self.level && self.observed_seconds >= KNOWN_AFTER
    }
}

/// The steadiness of the small requests of one direction in `run`.
pub fn steadiness(run: &Run, work: Work) -> Steadiness {
    let purposes = [Purpose::First, Purpose::Steady];
    let phases = run.phases.iter().filter(|measured| {
        measured.phase.work == work
            && measured.phase.pattern == Pattern::Random
            && purposes.contains(&measured.purpose)
    });
    let trace: Vec<Observation> = phases
        .map(|measured| {
            let (rate, samples) = (measured.samples.rate(), &measured.samples);
            let at = samples.began + samples.seconds / 2.0;
            Observation { at, rate: rate.mean, margin: rate.margin }
        })
        .collect();
    of(trace)
}

fn of(trace: Vec<Observation>) -> Steadiness {
    let rates: Vec<f64> = trace.iter().map(|seen| seen.rate).collect();
    let window = rates.get(rates.len().saturating_sub(WINDOW)..).unwrap_or_default();
    let middle = mean(window).max(f64::MIN_POSITIVE);
    let (least, most) = window.iter().fold((f64::MAX, 0.0), |(least, most), &rate| {
        (f64::min(least, rate), f64::max(most, rate))
    });
    let range = if window.is_empty() { 0.0 } else { (most - least) / middle };
    let slope = slope(window).abs() * (window.len().max(1) - 1) as f64 / middle;
    let observed_seconds = match (trace.first(), trace.last()) {
        (Some(first), Some(last)) => last.at - first.at,
        _ => 0.0,
    };
    let level = window.len() == WINDOW && range <= RANGE_MAX && slope <= SLOPE_MAX;
    Steadiness {
        observed_seconds,
        range,
        slope,
        level,
        burst_excess: burst_excess(&trace),
        burst: burst(&trace),
        trace,
    }
}

/// By how much the first rate exceeds the last, as a fraction of the latter.
fn burst_excess(trace: &[Observation]) -> f64 {
    let (Some(first), Some(last)) = (trace.first(), trace.last()) else { return 0.0 };
    let excess = (first.rate - last.rate) / last.rate.max(f64::MIN_POSITIVE);
    let noise = (first.margin + last.margin) / last.rate.max(f64::MIN_POSITIVE);
    if excess.abs() > noise.max(CHANGE_MIN) { excess } else { 0.0 }
}

/// The fall of the rate from one level to another, if there is one.
fn burst(trace: &[Observation]) -> Option<Burst> {
    let rates: Vec<f64> = trace.iter().map(|seen| seen.rate).collect();
    let falls = (1..rates.len()).map(|at| (at, rates[at - 1] - rates[at]));
    let (at, _) = falls.max_by(|one, other| one.1.total_cmp(&other.1))?;
    // The round in which the credits ran out lies between the levels.
    let after = if (at + 1) < rates.len() && rates[at + 1] < rates[at] * (1.0 - LEVEL) {
        at + 1
    } else {
        at
    };
    let (before, behind) = (rates.get(..at)?, rates.get(after..)?);
    let (high, low) = (mean(before), mean(behind));
    let level =
        |rates: &[f64], mean: f64| rates.iter().all(|rate| (rate - mean).abs() <= mean * LEVEL);
    let sure = trace.iter().all(|seen| seen.margin <= seen.rate * LEVEL);
    let is_burst = sure
        && behind.len() >= AFTER_MIN
        && low < high * (1.0 - BURST_MIN)
        && level(before, high)
        && level(behind, low);
    let seconds = trace.get(at).map_or(0.0, |seen| seen.at);
    is_burst.then_some(Burst { high, low, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(rates: &[f64], minutes: f64) -> Steadiness {
        let step = minutes * 60.0 / (rates.len() - 1) as f64;
        let observation =
            |(place, &rate)| Observation { at: place as f64 * step, rate, margin: rate / 100.0 };
        of(rates.iter().enumerate().map(observation).collect())
    }

    #[test]
    fn a_level_disk_is_steady_only_after_a_long_time() {
        let rates = [100.0, 101.0, 99.0, 100.0, 102.0, 100.0];
        assert!(trace(&rates, 3.0).level);
        assert!(!trace(&rates, 3.0).is_known());
        assert!(trace(&rates, 40.0).is_known());
        assert_eq!(trace(&rates, 40.0).burst_excess, 0.0);
    }

    #[test]
    fn range_and_slope_count_in_the_window_alone() {
        let settled = trace(&[300.0, 200.0, 100.0, 100.0, 100.0, 100.0, 100.0], 40.0);
        assert!(settled.level && settled.burst_excess == 2.0);
        assert!(!trace(&[100.0, 97.0, 94.0, 91.0, 88.0], 40.0).level, "falls by 13 %");
        assert!(!trace(&[100.0, 79.0, 100.0, 79.0, 100.0], 40.0).level, "ranges over 23 %");
        assert!(!trace(&[100.0, 100.0, 100.0], 40.0).level, "too few");
    }

    #[test]
    fn a_fall_between_two_levels_is_a_burst() {
        let burst = trace(&[3000.0, 2990.0, 3010.0, 1200.0, 300.0, 301.0, 300.0], 6.0).burst;
        let burst = burst.unwrap();
        assert!((burst.high - 3000.0).abs() < 10.0 && (burst.low - 300.0).abs() < 1.0, "{burst:?}");
        assert_eq!(burst.seconds, 180.0);
        assert_eq!(trace(&[100.0, 93.0, 93.0, 93.0], 40.0).burst, None);
        assert_eq!(trace(&[300.0, 200.0, 130.0, 90.0, 60.0], 6.0).burst, None, "wears off");
    }
}
