//! What was measured, as it is written down.

use std::time::{SystemTime, UNIX_EPOCH};

use forebay_growth::Grown;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::error::Error;
use crate::phase::{Phase, Purpose, Work};
use crate::probe::{CreditProbe, DiskCounters};
use crate::samples::Samples;
use crate::target::TargetInfo;

/// The version of the format.
pub const RUN_VERSION: u32 = 3;

/// A phase, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPhase {
    /// What it was for.
    pub purpose: Purpose,
    /// What was run.
    pub phase: Phase,
    /// What came of it.
    pub samples: Samples,
}

/// The measurement of one disk, complete or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`RUN_VERSION`].
    pub version: u32,
    /// The name of the [`Budget`].
    pub budget: String,
    /// The most bytes that it may write.
    pub written_max: u64,
    /// When it began, in seconds since 1970, by the clock of the system.
    pub began_unix: u64,
    /// What was known of the disk.
    #[serde(rename = "facts")]
    pub target: TargetInfo,
    /// The phases so far.
    pub phases: Vec<MeasuredPhase>,
    /// Whether these are all.
    pub complete: bool,
    /// How files grow there; nothing where that was not tried.
    #[serde(default)]
    pub growth: Vec<Grown>,
    /// Bytes written in runs that were interrupted, alongside the phases.
    #[serde(default)]
    pub written_before: u64,
    /// For how many hours credits are looked for at most; 0 for not at all.
    #[serde(default)]
    pub watch_hours: u32,
    /// What the disk had done when that began, or went on.
    #[serde(default)]
    pub watch_began: DiskCounters,
    /// The probes for credits.
    #[serde(default, rename = "looks")]
    pub probes: Vec<CreditProbe>,
    /// From which phase on there were no credits.
    #[serde(default)]
    pub behind_credits: Option<usize>,
    /// The seed of a simulated disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// What all versions of a run have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Run {
    /// A run in which nothing was measured yet.
    pub fn new(budget: &Budget, target: TargetInfo) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            version: RUN_VERSION,
            budget: budget.name.to_owned(),
            written_max: budget.written_max,
            began_unix: now.map_or(0, |now| now.as_secs()),
            target,
            ..Self::default()
        }
    }

    /// Runs from the text of a file, one for each disk.
    ///
    /// # Errors
    /// The text is not that of a run, or of another version.
    pub fn parse(file: &str, text: &str) -> Result<Vec<Self>, Error> {
        let not_a_run = |error: serde_json::Error| {
            Error::Run(format!(
                "{file}: not a run of `forebay tune`: {error}; name a file that it wrote"
            ))
        };
        let versions: Vec<Versioned> = serde_json::from_str(text).map_err(not_a_run)?;
        if versions.is_empty() {
            return Err(Error::Run(format!("{file}: it contains no disk; measure again")));
        }
        match versions.iter().find(|run| run.version != RUN_VERSION) {
            Some(run) => Err(Error::Run(format!(
                "{file}: its version is {}, and this program reads {RUN_VERSION}; measure again",
                run.version
            ))),
            None => serde_json::from_str(text).map_err(not_a_run),
        }
    }

    /// The text of a file with these runs.
    ///
    /// # Errors
    /// Never: the types have nothing that JSON lacks.
    pub fn to_json(runs: &[Self]) -> Result<String, Error> {
        serde_json::to_string(runs)
            .map(|text| text + "\n")
            .map_err(|error| Error::Run(format!("cannot write the run to a file: {error}")))
    }

    /// Bytes written; what was discarded had been written for that.
    pub fn written(&self) -> u64 {
        let written = self.phases.iter().map(|measured| measured.samples.bytes_written);
        written.sum::<u64>() + self.looked() + self.grown() + self.written_before
    }

    /// Bytes written to look for credits.
    pub(crate) fn looked(&self) -> u64 {
        self.probes.iter().map(|probe| probe.bytes_written).sum()
    }

    /// Bytes of the files that grew.
    pub(crate) fn grown(&self) -> u64 {
        let grown = self.growth.iter();
        grown.map(|grown| u64::from(grown.files).saturating_mul(grown.file_bytes)).sum()
    }

    /// The phases for `purpose` that do `work`.
    pub fn of(&self, purpose: Purpose, work: Work) -> impl Iterator<Item = &MeasuredPhase> {
        self.phases
            .iter()
            .filter(move |measured| measured.purpose == purpose && measured.phase.work == work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_back_as_it_was() {
        let run = Run::new(&Budget::QUICK, TargetInfo::default());
        let text = Run::to_json(std::slice::from_ref(&run)).unwrap();
        assert_eq!(Run::parse("run.json", &text).unwrap(), [run]);
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_with_advice() {
        let later = String::from(r#"[{"version": 99, "phases": "of another kind"}]"#);
        for (text, words) in [("[]", "no disk"), ("{", "not a run"), (&later, "version is 99")] {
            let error = Run::parse("run.json", text).unwrap_err().to_string();
            assert!(error.contains(words) && error.starts_with("run.json: "), "{error}");
        }
    }
}
