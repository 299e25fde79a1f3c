//! Two measurements of the same disks compared.

use std::fmt::Write;
use std::path::Path;

use forebay_report::{paragraph_within, percent_of_change};
use forebay_tune::Run;
use forebay_tune::diff::{Change, Difference, check_beforehand, diff};
use serde::Serialize;

use crate::failure::Failure;

use super::text::COLUMNS;

/// The longest file of runs that is read, in bytes. A disk takes some 100 KiB of it.
const RUNS_BYTES_MAX: usize = 16 << 20;
/// A figure whose margin is wider cannot show the loss of a tenth.
const MARGIN_MAX: f64 = 0.1;

/// What changed on one disk.
#[derive(Serialize)]
pub(super) struct DiskDifference {
    disk: String,
    #[serde(flatten)]
    difference: Difference,
}

/// The runs in a file.
pub(super) fn read_runs(path: &Path) -> Result<Vec<Run>, Failure> {
    let text = forebay_config::read_at_most(path, RUNS_BYTES_MAX)?;
    Ok(Run::parse(&path.display().to_string(), &text)?)
}

/// What changed from `old` to `new`, disk by disk.
pub(super) fn differences(
    old: &[Run],
    new: &[Run],
    other_disk: bool,
) -> Result<Vec<DiskDifference>, Failure> {
    check_disks(old.len(), new.len())?;
    let compared = paired(old, new).into_iter().map(|(old, new)| {
        let difference = diff(old, new, other_disk)?;
        Ok(DiskDifference { disk: name_of_both(old, new), difference })
    });
    compared.collect()
}

/// Whether there are as many disks in both.
pub(super) fn check_disks(old: usize, new: usize) -> Result<(), Failure> {
    if old == new {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "the runs have {old} and {new} disks; compare runs of the same directories"
    )))
}

/// Whether the disk at `index`, which is to be measured as `run`, will be comparable with its like in
/// `old`: better known before minutes of measuring.
pub(super) fn check_early(
    old: &[Run],
    run: &Run,
    index: usize,
    other_disk: bool,
) -> Result<(), Failure> {
    let same = old.iter().find(|old| old.target.paths == run.target.paths);
    let old = same.or_else(|| old.get(index));
    Ok(old.map_or(Ok(()), |old| check_beforehand(old, run, other_disk))?)
}

/// The disks of two measurements, side by side: of the same places, or where these are others, in
/// the order in which they were named.
fn paired<'a>(old: &'a [Run], new: &'a [Run]) -> Vec<(&'a Run, &'a Run)> {
    let same = |new: &Run| old.iter().find(|old| old.target.paths == new.target.paths);
    let by_place: Option<Vec<&Run>> = new.iter().map(same).collect();
    by_place.unwrap_or_else(|| old.iter().collect()).into_iter().zip(new).collect()
}

fn name_of_both(old: &Run, new: &Run) -> String {
    let name = |run: &Run| run.target.paths.join(", ");
    if old.target.paths == new.target.paths {
        return name(new);
    }
    format!("{} before, {} now", name(old), name(new))
}

/// What was lost, at least the part `least` of a figure, in a few words each.
pub(super) fn losses(disks: &[DiskDifference], least: f64) -> Vec<String> {
    let of_disk = |disk: &DiskDifference| {
        let is_lost = |change: &&Change| change.is_loss(least);
        let figures = disk.difference.figures.iter().filter(is_lost);
        let figures =
            figures.map(|lost| format!("{} {}", lost.name, percent_of_change(lost.change)));
        let sizes = match disk.difference.sizes.iter().filter(is_lost).count() {
            0 => None,
            count => Some(format!("requests of {count} sizes and kinds")),
        };
        figures.chain(sizes).collect::<Vec<_>>()
    };
    disks.iter().flat_map(of_disk).collect()
}

const LEGEND: &str = "\
Rates are means over all phases of a kind that both runs have; `in files` are
the four of io-properties.yaml, which are of the end of a measurement. Margins
hold for all rows at once, in 95 of 100 comparisons; what both runs do alike is
in none of them.
";

/// What changed, for people.
pub(super) fn text(disks: &[DiskDifference]) -> String {
    let mut text = String::new();
    for DiskDifference { disk, difference } in disks {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{disk}\n{:<27} {:>9} {:>9}", "", "before", "now");
        difference.figures.iter().for_each(|change| text.push_str(&row(change)));
        let sizes = difference.sizes.iter().filter(|change| change.significant);
        sizes.clone().for_each(|change| text.push_str(&row(change)));
        let all = difference.sizes.len();
        let _ = match sizes.count() {
            0 => writeln!(text, "{all} sizes: none changed by more than chance."),
            count => writeln!(text, "{count} of {all} sizes changed by more than chance."),
        };
        text += &unsure(difference);
        let bursts = difference.may_be_bursts.join(", ");
        if !bursts.is_empty() {
            let said = format!("{bursts}: not sustained; the change may be a burst.");
            paragraph_within(&mut text, "May be bursts: ", &said, COLUMNS);
        }
        let missing = difference.not_compared.join(", ");
        if !missing.is_empty() {
            let said = format!("{missing}: the runs share no comparable phases.");
            paragraph_within(&mut text, "Not compared: ", &said, COLUMNS);
        }
        let count = difference.changes().filter(|change| change.significant).count();
        if count == 0 && missing.is_empty() {
            text += "Nothing changed by more than chance.\n";
        }
    }
    text + LEGEND
}

/// A figure, in 80 columns.
fn row(change: &Change) -> String {
    let is_bytes = change.name.contains("bandwidth") || change.name.contains("stream");
    let (unit, scale) = if is_bytes { ("MB/s", 1e6) } else { ("/s", 1.0) };
    let mark = match change.change {
        _ if !change.significant => "",
        down if down < 0.0 => "LOST",
        _ => "more",
    };
    let line = format!(
        "{:<27} {:>9.0} {:>9.0} {unit:<4} {:>8} +-{:>5.1} % {mark}",
        change.name.replace(" bytes", ""),
        change.old / scale,
        change.new / scale,
        percent_of_change(change.change),
        change.margin * 100.0
    );
    line.trim_end().to_owned() + "\n"
}

/// What is too uneven to be judged.
fn unsure(difference: &Difference) -> String {
    let wide = difference.figures.iter().filter(|change| change.margin > MARGIN_MAX);
    let names: Vec<&str> = wide.map(|change| change.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "Too uneven to show the loss of a tenth:\n  {}.\n{}Measure for longer (--budget), or when \
         nothing else uses the disk.\n",
        names.join(",\n  "),
        uneven(&difference.uneven)
    )
}

/// Which figures make others unsure.
fn uneven(figures: &[String]) -> String {
    let mut text = String::new();
    if !figures.is_empty() {
        let said = format!(
            "These changed by more than 5 % within the runs: {}. Figures of a single phase (one \
             at a time, flushes, sizes) are assumed to be as uneven.",
            figures.join(", ")
        );
        paragraph_within(&mut text, "", &said, COLUMNS);
    }
    text
}

/// What was not compared at all, in a few words.
pub(super) fn not_compared(disks: &[DiskDifference]) -> Vec<String> {
    disks.iter().flat_map(|disk| disk.difference.not_compared.clone()).collect()
}
