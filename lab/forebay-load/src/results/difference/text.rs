//! What changed between two runs, for people, in 80 columns.

use std::fmt::Write;

use forebay_report::{paragraph_within, percent_of_change};

use super::uneven::uneven;
use super::{Change, Difference, Figure};
use crate::results::figures::{duration, megabytes};

/// What changed, as a table and in words.
pub fn text(difference: &Difference) -> String {
    let Difference { failed, stalled, changes, control, disk: lost, other_loads, notes, busy } =
        difference;
    let mut text = String::new();
    for failed in failed {
        let head = if failed.is_more { "FAILED " } else { "Failed too: " };
        paragraph_within(&mut text, head, &failed.in_words(), COLUMNS);
    }
    for job in stalled {
        paragraph_within(&mut text, "LOST ", &job.in_words(), COLUMNS);
    }
    let _ = writeln!(text, "{:<28}{:>10}{:>10}", "", "before", "now");
    changes.iter().filter(|change| is_shown(change)).for_each(|change| text += &row(change));
    for loss in lost {
        let said = format!("The disk itself lost speed: {}.", loss.in_words());
        paragraph_within(&mut text, "LOST ", &said, COLUMNS);
    }
    let found = changes.iter().filter(|change| is_significant(change)).count();
    if found == 0
        && lost.is_empty()
        && stalled.is_empty()
        && !failed.iter().any(|failed| failed.is_more)
    {
        text += "Nothing changed by more than chance.\n";
    }
    let moved: Vec<String> =
        control.iter().filter(|change| is_significant(change)).map(in_words).collect();
    if let Some(busiest) = uneven(control, 0.0) {
        let said = format!(
            "{} without the scheduler: the disk varies too much to judge latencies, or to detect \
             a loss of a tenth.",
            in_words(busiest)
        );
        paragraph_within(&mut text, "", &said, COLUMNS);
    }
    if !moved.is_empty() {
        text += "Without the scheduler the same load changed too: the disk or the machine \
                 has\nchanged. The margins allow for that.\n";
        moved.iter().for_each(|change| text += &format!("  {change}\n"));
    }
    let notes = other_loads.iter().chain(notes);
    notes.for_each(|note| paragraph_within(&mut text, "Not the same: ", note, COLUMNS));
    if let Some(busy) = busy {
        let said =
            format!("The machine was busy: {}. This may be the reason for changes.", waits(*busy));
        paragraph_within(&mut text, "", &said, COLUMNS);
    }
    text + LEGEND
}

const COLUMNS: usize = 80;

const LEGEND: &str = "\
Latencies are from when a request should have begun. A margin says how far a
change may be chance, by how uneven both runs are in themselves, and by how much
they differ without the scheduler; it holds for all rows at once, in 95 of 100
comparisons.
";

/// The 99.9th percentile is shown where it can be judged.
fn is_shown(change: &Change) -> bool {
    change.judged.is_some() || change.figure != Figure::P999
}

fn is_significant(change: &Change) -> bool {
    change.judged.is_some_and(|judged| judged.significant)
}

/// A change in a few words: `bulk MB/s -9.8 %`.
pub(super) fn in_words(change: &Change) -> String {
    let by = change.judged.map_or(0.0, |judged| judged.change);
    format!("{} {} {}", change.job, name(change.figure), factor_or_percent(by))
}

/// A change as people read it: `-9.8 %`, or `x25` from ten times on.
pub(super) fn factor_or_percent(change: f64) -> String {
    match change + 1.0 {
        ratio if ratio >= FACTOR_MIN => format!("x{ratio:.0}"),
        _ => percent_of_change(change),
    }
}

/// From here on a change is printed as a factor.
const FACTOR_MIN: f64 = 10.0;

/// For how much of the time threads waited for a processor.
pub(super) fn waits(busy: [Option<f64>; 2]) -> String {
    let of = |part: Option<f64>| {
        part.map_or_else(
            || String::from("an unknown part"),
            |part| format!("{:.0} %", part * 100.0),
        )
    };
    let [old, new] = busy.map(of);
    format!("threads waited for a processor {old} of the time before, {new} now")
}

/// What a figure is called.
pub(super) fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Throughput => "MB/s",
        Figure::P50 => "p50",
        Figure::P99 => "p99",
        Figure::P999 => "p99.9",
    }
}

fn row(change: &Change) -> String {
    let shown = if change.figure == Figure::Throughput { megabytes } else { duration };
    let job: String = change.job.chars().take(21).collect();
    let figures = format!(
        "{job:<22}{:<6}{:>10}{:>10}",
        name(change.figure),
        shown(change.old),
        shown(change.new)
    );
    let Some(judged) = change.judged else { return format!("{figures}  {}\n", unjudged(change)) };
    let mark = match change.loss() {
        _ if !judged.significant => "",
        Some(_) => "LOST",
        None => "better",
    };
    let margin = match judged.margin {
        None => String::from("+- unknown "),
        Some(margin) if judged.change + 1.0 >= FACTOR_MIN => {
            format!("+-{:>9}", format!("x{margin:.1}"))
        }
        Some(margin) => format!("+-{:>7.1} %", margin * 100.0),
    };
    let by = factor_or_percent(judged.change);
    format!("{figures}{by:>11} {margin} {mark}").trim_end().to_owned() + "\n"
}

/// Why a figure is not judged.
fn unjudged(change: &Change) -> String {
    let [requests, least] = change.requests;
    let nothing =
        if change.figure == Figure::Throughput { "no bytes moved" } else { "nothing done" };
    let why = match [change.old, change.new].map(|value| value > 0.0) {
        [false, false] => format!("{nothing} in both"),
        [false, true] => format!("{nothing} before"),
        [true, false] => format!("{nothing} now"),
        [true, true] if requests < least => format!("{requests} of {least} needed"),
        [true, true] => String::from("all in one part of a run"),
    };
    format!("not judged: {why}")
}
