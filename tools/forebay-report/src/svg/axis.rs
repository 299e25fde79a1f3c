//! Axes with equal steps, or with marks that double.

use core::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

use crate::chart::Scale;
use crate::format::{scaled, size};

/// From zero, or from the least value if that is below, to a little beyond the greatest.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, greatest) = values
        .filter(|value| value.is_finite())
        .fold((0.0_f64, 0.0_f64), |(least, greatest), value| {
            (least.min(value), greatest.max(value))
        });
    let greatest = if greatest > least { greatest } else { least + 1.0 };
    least..greatest + (greatest - least) * 0.05
}

/// The x axis of a chart.
pub(super) enum Axis {
    Linear(RangedCoordf64),
    /// From the least value to the greatest.
    Doubling(Range<f64>),
}

impl Axis {
    pub(super) fn over(values: impl Iterator<Item = f64>, scale: Scale) -> Self {
        if scale == Scale::Linear {
            return Self::Linear(extent(values).into());
        }
        let (least, most) = values
            .fold((f64::MAX, 0.0), |(least, most), x| (f64::min(least, x), f64::max(most, x)));
        let least = least.min(most).max(1.0);
        Self::Doubling(least..most.max(least * 2.0))
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Linear(linear) => linear.map(value, limit),
            Self::Doubling(Range { start, end }) => {
                let part = (value.max(*start) / start).ln() / (end / start).ln();
                limit.0 + (part.clamp(0.0, 1.0) * f64::from(limit.1 - limit.0)) as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Self::Linear(linear) => linear.key_points(hint),
            Self::Doubling(Range { start, end }) => {
                let most = hint.max_num_points().clamp(2, 8);
                let all = (end / start).log2().floor() as usize + 1;
                let step = all.div_ceil(most).max(1);
                (0..all).step_by(step).map(|power| start * 2f64.powi(power as i32)).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Linear(linear) => linear.range(),
            Self::Doubling(range) => range.clone(),
        }
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        match self {
            Self::Doubling(_) if *value >= 1024.0 => size(value.round() as u64).replace("iB", ""),
            _ => scaled(*value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_that_doubles_has_equal_steps() {
        let axis = Axis::over([512.0, 4_194_304.0].into_iter(), Scale::Doubling);
        let places = [512.0, 1024.0, 2048.0].map(|bytes| axis.map(&bytes, (0, 1300)));
        assert_eq!(places, [0, 100, 200]);
        assert_eq!(axis.format_ext(&131_072.0), "128 K");
    }
}
