//! A directory of earlier runs: one file each, of which the oldest go.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_report::{Chart, DrawError, Mark, Page, percent_of_change, svg};
use forebay_tune::history::{ChangePoint, History, RUNS_MIN, comparable, histories, new_losses};
use forebay_tune::{Fit, Run, fit};
use serde::Serialize;

use super::compare::{self, differences, read_runs};
use crate::console::note;
use crate::failure::Failure;
use crate::whole_file;

/// This many runs are kept.
const KEPT: usize = 200;
/// This many of the last are drawn in a line of text.
const DRAWN: usize = 24;
const PAGE: &str = "history.html";
/// The last second of the year 9999.
const LAST_UNIX: u64 = 253_402_300_799;

/// A directory of runs.
pub(super) struct Kept {
    dir: PathBuf,
}

/// One disk over all runs.
#[derive(Serialize)]
pub(super) struct DiskHistory {
    disk: String,
    /// When each run began, in seconds since 1970.
    began_unix: Vec<u64>,
    figures: Vec<History>,
    /// What this run brought to light.
    losses: Vec<String>,
    /// Why it was compared with the run before alone, if so.
    #[serde(skip)]
    comparison: String,
}

impl Kept {
    /// The directory `dir`, which is made unless it is there, if files can be written: better known
    /// before minutes of measuring.
    pub(super) fn at(dir: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(dir).map_err(|error| {
            let shown = dir.display();
            Failure::Input(format!("cannot make `{shown}`: {error}; name another with --history"))
        })?;
        whole_file::check(&dir.join(PAGE))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// All files with their runs, the oldest first. A file that is none is named and left alone.
    fn runs(&self) -> Result<Vec<(PathBuf, Vec<Run>)>, Failure> {
        let mut files = Vec::new();
        for path in self.files()? {
            match read_runs(&path) {
                Ok(runs) => files.push((path, runs)),
                Err(failure) => note(format_args!("left out: {failure}")),
            }
        }
        files.sort_by_key(|(_, runs)| runs.first().map(|run| run.began_unix));
        Ok(files)
    }

    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let entries = fs::read_dir(&self.dir).map_err(|error| {
            Failure::Input(format!("cannot read `{}`: {error}", self.dir.display()))
        })?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        Ok(files)
    }

    /// Keeps `runs`, and says how they compare with the earlier ones.
    pub(super) fn add(&self, runs: &[Run], least: f64) -> Result<Vec<DiskHistory>, Failure> {
        let files = self.runs()?;
        let earlier: Vec<Run> = files.iter().flat_map(|(_, runs)| runs).cloned().collect();
        let disks =
            runs.iter().map(|run| disk(&earlier, run, least)).collect::<Result<Vec<_>, _>>();
        let began = runs.first().map_or(0, |run| run.began_unix);
        let budget = runs.first().map_or("", |run| run.budget.as_str());
        let name = format!("{}-{budget}", utc(began).replace([':', ' '], "-"));
        // by name they are in the order of their runs, also those of one second
        let free = (0..).map(|more: u32| self.dir.join(format!("{name}-{more:03}.json")));
        let path = free.into_iter().find(|path| !path.exists()).unwrap_or_default();
        whole_file::put(&path, &Run::to_json(runs)?)?;
        let old = (files.len() + 1).saturating_sub(KEPT);
        for (path, _) in files.iter().take(old) {
            // Another run may have taken it away.
            let _ = fs::remove_file(path);
        }
        let disks = disks?;
        whole_file::put(&self.dir.join(PAGE), &html(&disks)?)?;
        Ok(disks)
    }

    /// The line that names the page.
    pub(super) fn listed(&self) -> String {
        format!("{}: the figures over time\n", self.dir.join(PAGE).display())
    }
}

/// The disk of `newest` over time.
fn disk(earlier: &[Run], newest: &Run, least: f64) -> Result<DiskHistory, Failure> {
    let earlier = comparable(earlier, newest);
    let runs: Vec<&Run> = earlier.iter().copied().chain([newest]).collect();
    let fits = runs.iter().map(|run| fit(run)).collect::<Result<Vec<Fit>, _>>()?;
    let (mut losses, mut comparison) = (Vec::new(), String::new());
    if runs.len() > RUNS_MIN {
        let began = |point: &ChangePoint| runs.get(point.run).map_or(0, |run| run.began_unix);
        let lost = new_losses(&fits, least).into_iter().map(|(name, point)| {
            format!("{name} {} since {}", percent_of_change(point.change), utc(began(&point)))
        });
        losses = lost.collect();
    } else if let Some(last) = earlier.last() {
        let last = [(*last).clone()];
        let differences = differences(&last, std::slice::from_ref(newest), false)?;
        losses = compare::losses(&differences, least);
        comparison = format!("Compared with the last run, as long as there are only {RUNS_MIN}:\n");
        comparison += &compare::text(&differences);
    }
    Ok(DiskHistory {
        disk: newest.target.paths.join(", "),
        began_unix: runs.iter().map(|run| run.began_unix).collect(),
        figures: histories(&fits),
        losses,
        comparison,
    })
}

/// What this run brought to light.
pub(super) fn losses(disks: &[DiskHistory]) -> Vec<String> {
    disks.iter().flat_map(|disk| disk.losses.clone()).collect()
}

/// What became of the disks, for people, in 80 columns.
pub(super) fn text(disks: &[DiskHistory]) -> String {
    let mut text = String::new();
    for DiskHistory { disk, began_unix, figures, losses, comparison } in disks {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{disk}: {}", runs(began_unix));
        for history in figures {
            let now = history.values.last().copied().unwrap_or_default();
            let (name, unit) = (history.name, history.unit);
            let _ = writeln!(text, "{name:<19}{now:>10.0} {unit:<6} {}", drawn(&history.values));
        }
        for line in changes(figures, began_unix) {
            let _ = writeln!(text, "{line}");
        }
        text += comparison;
        let new = if losses.is_empty() { "There are no new losses." } else { "New:" };
        let _ = writeln!(text, "{new}");
        losses.iter().for_each(|loss| text.push_str(&format!("  LOST {loss}\n")));
    }
    text
}

fn runs(began_unix: &[u64]) -> String {
    let since = began_unix.first().copied().unwrap_or_default();
    match began_unix.len() {
        1 => String::from("the first run of this kind"),
        count => format!("{count} runs since {}", utc(since)),
    }
}

/// The last values as a line of bars from the least to the most of all.
fn drawn(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = values.get(values.len().saturating_sub(DRAWN)..).unwrap_or_default();
    let (least, most) = values.iter().fold((f64::MAX, 0.0), |(least, most), &value| {
        (f64::min(least, value), f64::max(most, value))
    });
    // what is within a tenth looks level
    let span = (most - least).max(most / 10.0).max(f64::MIN_POSITIVE);
    let from = most - span;
    let bar = |value: &f64| {
        let height = ((value - from) / span * 7.0).round().clamp(0.0, 7.0) as usize;
        BARS.get(height).copied().unwrap_or('█')
    };
    last.iter().map(bar).collect()
}

/// The change points of all figures, a line each.
fn changes(figures: &[History], began_unix: &[u64]) -> Vec<String> {
    let line = |history: &History, point: &ChangePoint| {
        let began = began_unix.get(point.run).copied().unwrap_or_default();
        let since = began_unix.len() - point.run;
        format!(
            "{}: {} from the run of {} on ({} before, {since} since).",
            history.name,
            percent_of_change(point.change),
            utc(began),
            point.run
        )
    };
    let of = |history: &History| {
        history.changes.iter().map(|point| line(history, point)).collect::<Vec<_>>()
    };
    figures.iter().flat_map(of).collect()
}

fn html(disks: &[DiskHistory]) -> Result<String, DrawError> {
    let mut page = Page::new("forebay tune: history");
    for DiskHistory { disk, began_unix, figures, losses, .. } in disks {
        page.title(disk);
        page.about(&format!("{}.", runs(began_unix)));
        page.heading("changes", "Changes");
        let lines = changes(figures, began_unix);
        let lost = losses.iter().map(|loss| (loss.as_str(), true));
        let known = lines.iter().map(|line| (line.as_str(), false));
        page.list(lost.chain(known));
        if lines.is_empty() && losses.is_empty() {
            page.paragraph("No figure has changed by more than the runs usually differ.");
        }
        page.heading("figures", "Figures over time");
        let charts = figures.iter().map(|history| svg(&chart(history, began_unix)));
        page.charts(&charts.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(page.finish())
}

fn chart(history: &History, began_unix: &[u64]) -> Chart {
    let first = began_unix.first().copied().unwrap_or_default();
    let last = began_unix.last().copied().unwrap_or_default();
    let (unit, seconds) = match last.saturating_sub(first) {
        ..7200 => ("minutes", 60.0),
        7200..172_800 => ("hours", 3600.0),
        _ => ("days", 86_400.0),
    };
    let since = |began: &u64| began.saturating_sub(first) as f64 / seconds;
    let points = began_unix.iter().map(since).zip(history.values.iter().copied()).collect();
    let mut chart = Chart::new(history.name, &format!("{unit} since the first run"), history.unit)
        .with("each run", Mark::Line, points);
    for point in &history.changes {
        let at = began_unix.get(point.run).map_or(0.0, since);
        chart = chart.marked(&percent_of_change(point.change), at);
    }
    chart
}

/// A moment in seconds since 1970 as `2026-11-24 08:26`, in UTC.
fn utc(unix: u64) -> String {
    let unix = unix.min(LAST_UNIX);
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    let (mut year, mut left) = (1970, days);
    while left >= days_of(year) {
        left -= days_of(year);
        year += 1;
    }
    let february = if days_of(year) == 366 { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (hour, minute) = (seconds / 3600, seconds % 3600 / 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}", left + 1)
}

fn days_of(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_tune::{Budget, TargetInfo};

    #[test]
    fn a_line_of_bars_shows_a_step_and_not_the_noise() {
        let mut values = vec![1000.0, 1002.0, 998.0, 1001.0];
        assert_eq!(drawn(&values), "████");
        values.extend([700.0, 702.0]);
        assert_eq!(drawn(&values), "████▁▁");
        assert_eq!(drawn(&[]), "");
        assert_eq!(drawn(&[5.0; 100]).chars().count(), DRAWN);
    }

    #[test]
    fn old_runs_go_and_neither_the_newest_nor_what_is_no_run() {
        let dir = tempfile::tempdir().unwrap();
        let run =
            |began_unix| Run { began_unix, ..Run::new(&Budget::QUICK, TargetInfo::default()) };
        for began in 0..KEPT as u64 + 2 {
            let text = Run::to_json(&[run(1_700_000_000 + began)]).unwrap();
            fs::write(dir.path().join(format!("2023-{began:03}.json")), text).unwrap();
        }
        fs::write(dir.path().join("0-notes.json"), "{}").unwrap();
        let kept = Kept::at(dir.path()).unwrap();
        // a clock that was set back
        assert!(kept.add(&[run(7)], 0.1).is_err(), "nothing was measured");
        let files = kept.files().unwrap();
        let names: Vec<_> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(
            names[..3],
            ["0-notes.json", "1970-01-01-00-00-quick-000.json", "2023-003.json"]
        );
        assert_eq!(names.len(), KEPT + 1);
    }

    #[test]
    fn seconds_since_1970_are_dates() {
        for (unix, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (1_798_675_200, "2026-12-31 00:00"),
            (4_107_542_400, "2100-03-01 00:00"),
            (u64::MAX, "9999-12-31 23:59"),
        ] {
            assert_eq!(utc(unix), text);
        }
    }
}
