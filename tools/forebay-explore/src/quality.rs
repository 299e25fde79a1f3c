//! How wrong a region is.

use serde::Serialize;

use crate::loads::Load;
use crate::region::Shape;

/// How wrong a region is about some loads; both 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// Of the loads that it allows, the part that breaks the goal.
    pub over: f64,
    /// Of the loads that keep the goal, the part that it forbids.
    pub waste: f64,
}

impl Quality {
    pub(crate) fn of(shape: &Shape, loads: &[Load]) -> Self {
        let count = |wanted: fn(bool, bool) -> bool| {
            loads.iter().filter(|load| wanted(shape.allows(load), load.safe)).count()
        };
        let part = |some: usize, all: usize| some as f64 / all.max(1) as f64;
        Self {
            over: part(count(|allowed, safe| allowed && !safe), count(|allowed, _| allowed)),
            waste: part(count(|allowed, safe| !allowed && safe), count(|_, safe| safe)),
        }
    }

    pub(crate) fn mean(all: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| {
            all.iter().map(figure).sum::<f64>() / all.len().max(1) as f64
        };
        Self { over: mean(|quality| quality.over), waste: mean(|quality| quality.waste) }
    }

    /// Both together, 0 to 2: what a fit makes as small as it can.
    pub fn sum(&self) -> f64 {
        self.over + self.waste
    }
}
