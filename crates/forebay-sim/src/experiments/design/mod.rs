//! The comparisons that the design rests on.

mod cost;
mod shards;
mod window;

use super::{Experiment, Report, Scale};

const SOURCE: &str = "ARCHITECTURE.md";

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "D3-cost",
        title: "What a request costs: exact where the disk was measured",
        source: SOURCE,
        run: cost::run,
    },
    Experiment {
        name: "D4-window",
        title: "Pace and window: what waits in the disk when the model is wrong",
        source: SOURCE,
        run: window::run,
    },
    Experiment {
        name: "D5-shards",
        title: "Shares across shards",
        source: SOURCE,
        run: shards::run,
    },
];

#[cfg(test)]
mod tests {
    #[test]
    fn reports_are_as_recorded() {
        crate::experiments::scenario::are_as_recorded(super::ALL);
    }
}
