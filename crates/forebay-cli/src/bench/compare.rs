//! Two results of a load compared.

use forebay_load::results::difference::{Change, difference, name, text};
use forebay_load::results::model::Report;

use crate::console::{json, print};
use crate::failure::Failure;
use crate::gate::{self, percent_of};
use crate::load_options::Format;

/// Shows what changed, and fails where at least the part `least` of something was lost.
pub(super) fn show(old: &Report, new: &Report, format: Format, least: f64) -> Result<(), Failure> {
    let difference = difference(old, new).map_err(Failure::Input)?;
    match format {
        Format::Text => print(&text(&difference))?,
        Format::Json | Format::Yaml => print(&json(&difference)?)?,
    }
    let lost = |change: &Change| {
        let judged = change.judged?;
        change.loss().filter(|&loss| loss >= least)?;
        Some(format!("{} {} {}", change.job, name(change.figure), percent_of(judged.change)))
    };
    let lost: Vec<String> = difference.changes.iter().filter_map(lost).collect();
    match difference.busy {
        Some(_) if !lost.is_empty() => Err(Failure::Input(format!(
            "not comparable: {} may be lost, or the machine was too busy; measure both when less \
             else runs",
            lost.join("; ")
        ))),
        _ => gate::outcome(&lost),
    }
}
