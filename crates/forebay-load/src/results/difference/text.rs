//! What changed between two runs, for people, in 80 columns.

use std::fmt::Write;

use forebay_report::paragraph_within;

use super::{Change, Difference, Figure};
use crate::results::figures::{duration, megabytes};

/// What changed, as a table and in words.
pub fn text(difference: &Difference) -> String {
    let Difference { changes, control, notes, busy } = difference;
    let mut text = format!("{:<28}{:>10}{:>10}\n", "", "before", "now");
    changes.iter().filter(|change| is_shown(change)).for_each(|change| text += &row(change));
    let found = changes.iter().filter(|change| is_significant(change)).count();
    if found == 0 {
        text += "Nothing changed by more than chance.\n";
    }
    let moved: Vec<String> =
        control.iter().filter(|change| is_significant(change)).map(in_words).collect();
    if !moved.is_empty() {
        text += "Without the scheduler the same load changed too: the disk or the machine is not\n\
                 as it was. The margins allow for that.\n";
        moved.iter().for_each(|change| text += &format!("  {change}\n"));
    }
    notes.iter().for_each(|note| paragraph_within(&mut text, "Not the same: ", note, COLUMNS));
    if let Some([old, new]) = busy.map(|waits| waits.map(|part| part * 100.0)) {
        let _ = writeln!(
            text,
            "The machine was busy: threads waited for a processor {old:.0} % of the time before,\n\
             {new:.0} % now. What changed may be that."
        );
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

fn in_words(change: &Change) -> String {
    let percent = change.judged.map_or(0.0, |judged| judged.change * 100.0);
    format!("{} {} {percent:+.0} %", change.job, name(change.figure))
}

/// What a figure is called.
pub fn name(figure: Figure) -> &'static str {
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
    let Some(judged) = change.judged else {
        let [requests, least] = change.requests;
        return format!("{figures}  not judged: {requests} of {least} needed\n");
    };
    let mark = match change.loss() {
        _ if !judged.significant => "",
        Some(_) => "LOST",
        None => "better",
    };
    let (change, margin) = (judged.change * 100.0, judged.margin * 100.0);
    format!("{figures}{change:>+9.1} % +-{margin:>6.1} % {mark}").trim_end().to_owned() + "\n"
}
