//! Two results of a load compared.

use forebay_load::results::difference::{Outcome, difference, text};
use forebay_load::results::model::Report;

use crate::console::{json, print};
use crate::failure::Failure;
use crate::gate;
use crate::load_options::Format;

/// Shows what changed, and fails where at least the part `least` of something was lost, or where
/// that cannot be told.
pub(super) fn show(old: &Report, new: &Report, format: Format, least: f64) -> Result<(), Failure> {
    let difference = difference(old, new).map_err(Failure::Input)?;
    match format {
        Format::Text => print(&text(&difference))?,
        Format::Json | Format::Yaml => print(&json(&difference)?)?,
    }
    match difference.outcome(least) {
        Outcome::Passed => Ok(()),
        Outcome::Lost(lost) => gate::outcome(&lost),
        Outcome::Undecided(why) => Err(Failure::Input(why)),
    }
}
