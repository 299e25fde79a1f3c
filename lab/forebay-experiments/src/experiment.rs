//! What an experiment is: a function from a setting to a report.

use crate::known::Known;
use crate::report::Report;

/// How long experiments run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Shortened, so that all of them take a minute or two.
    Short,
    /// As long as published.
    Full,
}

impl Scale {
    /// `full` seconds, or `short` of them.
    pub const fn seconds(self, short: u64, full: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Full => full,
        }
    }
}

/// What all chance in an experiment follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// A striped array and the load on it, where they are not as published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArraySetting {
    /// Shards that append to files.
    pub shards: Option<u32>,
    /// Requests of each shard in flight.
    pub fibers: Option<u32>,
    /// Bytes of a chunk.
    pub chunk: Option<u64>,
    /// Disks of the array.
    pub members: Option<u32>,
}

/// How an experiment is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How long.
    pub scale: Scale,
    /// With which chances.
    pub seed: Seed,
    /// On which array; only of [`ARRAYS`].
    pub array: ArraySetting,
}

/// Experiments whose array and load can be set.
pub const ARRAYS: [&str; 2] = ["2025-parallelism", "2025-raid0-placement"];

/// An experiment that can be repeated.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name on the command line, and of its folder: what it shows, after the year of the
    /// article that it repeats.
    pub name: &'static str,
    /// Another name: the number of the published item.
    pub alias: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Two paragraphs: what it shows, and where our figures differ from the published ones.
    pub(crate) about: &'static str,
    /// Values that went in, and what was fitted to which figures.
    pub(crate) known: &'static str,
    /// What is measured.
    pub(crate) run: fn(Setting) -> Result<Report, String>,
}

/// An experiment whose text, known values and function `run` are in its folder.
macro_rules! experiment {
    ($($field:ident: $value:expr),+ $(,)?) => {
        Experiment {
            $($field: $value,)+
            about: include_str!("about.txt"),
            known: include_str!("known.yaml"),
            run,
        }
    };
}
pub(crate) use experiment;

/// Those that take longest, the longest first; 2022-latency simulates what other experiments of its
/// article report on too.
pub(crate) const LONGEST: [&str; 8] = [
    "2022-latency",
    "2022-half-duplex",
    "2024-sync-period",
    "design-target",
    "design-window",
    "2022-second-disk",
    "2016-shares",
    "2022-hard-disk",
];

impl Experiment {
    /// Its place among all, by the time that it takes: longest first.
    pub fn place_by_length(&self) -> usize {
        LONGEST.iter().position(|&name| name == self.name).unwrap_or(LONGEST.len())
    }

    /// Repeats it.
    ///
    /// # Errors
    /// A sentence, if a simulation could not be set up.
    pub fn repeat(&self, setting: Setting) -> Result<Report, String> {
        let joined = |lines: &str| lines.split_whitespace().collect::<Vec<_>>().join(" ");
        let (shows, differs) = self.about.split_once("\n\n").unwrap_or((self.about, ""));
        let known = Known::parse(self.known)?;
        let mut report = (self.run)(setting)?;
        known.judge(&mut report.figures);
        let known = known.lines();
        Ok(Report { shows: joined(shows), differs: joined(differs), known, ..report })
    }
}
