//! What the published surface says that mixes cost within a latency, as `explore` has it.

use forebay_core::{MIX_PRICES, MixPrices, PRICE_ONE};
use forebay_explore::{Goal, Shape, fit};
use forebay_sim::surface::Grid;

const SURFACE: &str = include_str!("../../../../forebay-sim/presets/i3.2xlarge.csv");

/// The prices of mixes in the region of the loads whose reads keep `goal` in the disk.
pub(crate) fn prices(goal: &str) -> Result<MixPrices, String> {
    let grid = Grid::parse_csv("i3.2xlarge.csv", SURFACE).map_err(|error| error.to_string())?;
    let goal: Goal = goal.parse()?;
    let fitted = fit(&grid, goal).map_err(|error| error.to_string())?;
    Ok(priced(&fitted.shape))
}

fn priced(shape: &Shape) -> MixPrices {
    MixPrices::new(core::array::from_fn(|step| {
        let part = step as f64 / (MIX_PRICES - 1) as f64;
        (f64::from(PRICE_ONE) / shape.radius(part)).round() as u32
    }))
}
