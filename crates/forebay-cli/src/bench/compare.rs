//! Two results of a load compared.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use forebay_load::results::difference::{Change, difference, name, text};
use forebay_load::results::model::Report;

use crate::console::{json, print};
use crate::failure::Failure;
use crate::gate::{self, percent_of};
use crate::load_options::Format;

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// The results in a file.
pub(super) fn read(path: &Path) -> Result<Report, Failure> {
    let refused = |why: String| {
        let shown = path.display();
        Failure::Input(format!(
            "cannot read `{shown}`: {why}; name results that `bench` or `sim run` printed with \
             `--format json`"
        ))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| refused(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| refused(error.to_string()))
}

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
    gate::outcome(&difference.changes.iter().filter_map(lost).collect::<Vec<_>>())
}
