//! The file of an interrupted measurement, to continue it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_config::{ConfigError, Position};
use forebay_explore::Goal;
use forebay_sim::surface::{Cell, Grid};
use serde::{Deserialize, Serialize};

use crate::console::{json, note};
use crate::failure::Failure;
use crate::whole_file;

/// Version of the file.
const VERSION: u32 = 1;
/// No disk does more per second, be it bytes or reads.
const RATE_MAX: f64 = 1e12;

/// The task of a measurement: an interrupted one continues only with the same task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    version: u32,
    /// As it is shown: a path may be no text.
    place: String,
    rates: u32,
    full: bool,
    goals: Vec<String>,
    seconds: f64,
    read_bytes: u64,
    write_bytes: u64,
    data_bytes: u64,
    trim: bool,
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    task: Task,
    /// Where the rates end: bytes written and reads per second.
    write_bandwidth: f64,
    read_iops: f64,
    /// CSV.
    surface: String,
}

/// The loads measured so far, which are written down after each.
pub(super) struct Kept {
    path: PathBuf,
    task: Task,
    /// Where the rates end, if that is known.
    pub(super) most: Option<(f64, f64)>,
    known: HashMap<(u64, u64), Option<Cell>>,
}

fn key((write, read): (f64, f64)) -> (u64, u64) {
    (write.to_bits(), read.to_bits())
}

impl Task {
    pub(super) fn new(options: &super::Options, place: &Path, goals: &[Goal]) -> Self {
        let load = &options.load;
        Self {
            version: VERSION,
            place: place.display().to_string(),
            rates: options.rates(),
            full: options.is_full(),
            goals: goals.iter().map(ToString::to_string).collect(),
            seconds: load.duration().as_secs_f64(),
            read_bytes: load.read_size.0,
            write_bytes: load.write_size.0,
            data_bytes: load.data_bytes(),
            trim: load.trim,
        }
    }
}

impl Task {
    /// In which options another task differs, and how.
    fn differences(&self, now: &Self) -> Vec<String> {
        let shown = |name: &str, then: &dyn Display, now: &dyn Display| {
            let (then, now) = (then.to_string(), now.to_string());
            (then != now).then(|| format!("{name} was {then} and is {now}"))
        };
        let goals = [self, now].map(|task| task.goals.join(" "));
        [
            shown("the version of the file", &self.version, &now.version),
            shown("DIR", &self.place, &now.place),
            shown("the number of rates (--grid)", &self.rates, &now.rates),
            shown("--full", &self.full, &now.full),
            shown("--goal", &goals[0], &goals[1]),
            shown("--seconds", &self.seconds, &now.seconds),
            shown("--read-size", &self.read_bytes, &now.read_bytes),
            shown("--write-size", &self.write_bytes, &now.write_bytes),
            shown("--data-size", &self.data_bytes, &now.data_bytes),
            shown("--trim", &self.trim, &now.trim),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Kept {
    /// Loads that will be kept alongside `save`. Those that are there already are taken where
    /// `resume` says so, and otherwise in the way.
    pub(super) fn open(save: &Path, task: Task, resume: bool) -> Result<Self, Failure> {
        let mut name = OsString::from(save);
        name.push(".partial.json");
        let path = PathBuf::from(name);
        let shown = path.display();
        let mut kept = Self { path: path.clone(), task, most: None, known: HashMap::new() };
        if resume {
            kept.read()?;
        } else if path.exists() {
            return Err(Failure::Input(format!(
                "`{shown}` holds the loads of an interrupted measurement; continue it with \
                 --resume, or remove it"
            )));
        }
        Ok(kept)
    }

    fn read(&mut self) -> Result<(), Failure> {
        let shown = self.path.display().to_string();
        if !self.path.exists() {
            return Err(Failure::Input(format!(
                "there is no `{shown}` to continue; leave out --resume, or name the --save of the \
                 interrupted measurement"
            )));
        }
        let text = forebay_config::read(&self.path)?;
        let file: File = serde_json::from_str(&text).map_err(|error| {
            let line = Position { line: error.line() as u64, column: error.column() as u64 };
            let message = format!("{error}; remove the file, and measure again");
            ConfigError::at(&shown, line, None, message)
        })?;
        let differences = file.task.differences(&self.task);
        if !differences.is_empty() {
            return Err(Failure::Input(format!(
                "`{shown}` is of a measurement with other options: {}; give the same ones with \
                 --resume, or remove it",
                differences.join(", ")
            )));
        }
        let wrong = |why: &dyn Display| {
            Failure::Input(format!("`{shown}`: {why}; remove the file, and measure again"))
        };
        let rates = (file.write_bandwidth, file.read_iops);
        if !(1.0..=RATE_MAX).contains(&rates.0) || !(1.0..=RATE_MAX).contains(&rates.1) {
            return Err(wrong(&format_args!(
                "its highest rates are {} bytes written and {} reads per second",
                rates.0, rates.1
            )));
        }
        let surface = Grid::parse_csv(&shown, &file.surface)
            .map_err(|error| wrong(&format_args!("its surface is invalid: {error}")))?;
        for (at, cell) in surface.loads_with_cells() {
            self.known.insert(key(at), cell.copied());
        }
        self.most = Some(rates);
        Ok(())
    }

    /// The rates up to which an interrupted measurement went, if what properties state now is the
    /// same.
    pub(super) fn check_rates(
        &self,
        rates: (f64, f64),
        stated: Option<(f64, f64)>,
    ) -> Result<(f64, f64), Failure> {
        let Some(other) = stated.filter(|&stated| stated != rates) else { return Ok(rates) };
        let said = |(writes, reads)| format!("{reads:.0} reads/s and {writes:.0} bytes/s written");
        Err(Failure::Input(format!(
            "`{}` is of a measurement up to {}, and --properties states {}; leave out --properties \
             with --resume, or remove the file",
            self.path.display(),
            said(rates),
            said(other)
        )))
    }

    /// How many loads there are.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// What was measured at this load, if it was.
    pub(super) fn get(&self, at: (f64, f64)) -> Option<Option<Cell>> {
        self.known.get(&key(at)).copied()
    }

    /// Writes down one more load.
    pub(super) fn put(&mut self, at: (f64, f64), cell: Option<Cell>) -> Result<(), Failure> {
        self.known.insert(key(at), cell);
        let (write_bandwidth, read_iops) = self.most.unwrap_or_default();
        let cells = self.known.values().flatten().copied().collect();
        let missed = self.known.iter().filter(|(_, cell)| cell.is_none());
        let load = |(&(write, read), _)| (f64::from_bits(write), f64::from_bits(read));
        let surface = Grid::new(cells, missed.map(load).collect()).to_csv();
        let task = self.task.clone();
        whole_file::put(&self.path, &json(&File { task, write_bandwidth, read_iops, surface })?)
    }

    /// Removes what was written down.
    pub(super) fn forget(&self) {
        // not there if nothing was measured
        let _ = fs::remove_file(&self.path);
    }

    /// Prints how to continue the measurement, if a part of it is saved.
    pub(super) fn offer_to_go_on(&self) {
        if self.path.exists() {
            let (count, path) = (self.count(), self.path.display());
            let loads = if count == 1 { "load is" } else { "loads are" };
            note(format_args!(
                "{count} {loads} saved in `{path}`; continue with the same command and --resume"
            ));
        }
    }
}
