//! The files that are written: each whole, or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use forebay_report::paragraph_within;
use forebay_tune::{Error, Fit, Run, files};

use super::page;
use super::text::{COLUMNS, Tuned};
use crate::console::note;
use crate::failure::Failure;
use crate::info;
use crate::whole_file;

pub(super) const PROPERTIES: &str = "io-properties.yaml";
const FOREBAY: &str = "forebay.yaml";
const REPORT: &str = "tune.html";
pub(super) const RUN: &str = "tune.json";
/// What an interrupted run has measured so far.
pub(super) const PARTIAL: &str = "tune.partial.json";

/// Where the files go.
pub(super) struct Output {
    dir: PathBuf,
}

impl Output {
    /// The directory `dir`, which is made unless it is there, if the files can be written: better
    /// known before minutes of measuring.
    pub(super) fn at(dir: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(dir).map_err(|error| {
            Failure::Input(format!(
                "cannot make `{}`: {error}; name another directory with --out",
                dir.display()
            ))
        })?;
        for name in [PROPERTIES, FOREBAY, REPORT, RUN, PARTIAL] {
            whole_file::check(&dir.join(name))?;
        }
        Ok(Self { dir: dir.to_owned() })
    }

    /// Where the files will be.
    pub(super) fn announcement(&self) -> String {
        let names = [PROPERTIES, FOREBAY, REPORT, RUN].join(", ");
        format!("the results are written to `{}`: {names}", self.dir.display())
    }

    /// Writes all files.
    pub(super) fn write(&self, tuned: &[Tuned]) -> Result<(), Failure> {
        let disks: Vec<(&Run, &Fit)> = tuned.iter().map(|one| (&one.run, &one.fit)).collect();
        let report = page::html(tuned)?;
        let properties = files::properties(&disks);
        // first, what all others can be made of again
        let runs: Vec<Run> = tuned.iter().map(|one| one.run.clone()).collect();
        self.put(RUN, &Run::to_json(&runs)?)?;
        self.put(PROPERTIES, &properties.to_yaml())?;
        self.put(FOREBAY, &files::forebay_yaml(&properties, PROPERTIES))?;
        self.put(REPORT, &report)?;
        self.forget();
        Ok(())
    }

    /// Writes down what is measured so far.
    pub(super) fn keep(&self, runs: &[Run]) -> Result<(), Error> {
        let path = self.dir.join(PARTIAL);
        whole_file::write(&path, &Run::to_json(runs)?)
            .map_err(|source| Error::Io { what: format!("write `{}`", path.display()), source })
    }

    /// Removes what [`Output::keep`] wrote.
    fn forget(&self) {
        // Not there if the first phase failed.
        let _ = fs::remove_file(self.dir.join(PARTIAL));
    }

    /// Prints how to continue a measurement, if a part of it is saved.
    pub(super) fn offer_to_go_on(&self, name: &str) {
        let path = self.dir.join(name);
        if path.exists() {
            let (path, dir) = (path.display(), self.dir.display());
            note(format_args!("continue with `forebay tune --resume {path} --out {dir}`"));
        }
    }

    /// How many I/O queues to have with what was written, for each disk.
    pub(super) fn queues(&self) -> Result<String, Failure> {
        let mut text = String::new();
        for said in info::queues(&self.dir.join(FOREBAY))? {
            paragraph_within(&mut text, "I/O queues: ", &said, COLUMNS);
        }
        Ok(text)
    }

    /// The paths of the files for people to read, and what they are, a line each.
    pub(super) fn listed(&self) -> String {
        let files = [
            (PROPERTIES, "the disk, for Seastar and for forebay"),
            (FOREBAY, "the properties that only forebay uses"),
            (REPORT, "curves and verdicts"),
            (RUN, "all measurements, for --fit-from and --diff"),
        ];
        let line = |(name, what)| format!("{}: {what}\n", self.dir.join(name).display());
        files.map(line).concat()
    }

    fn put(&self, name: &str, text: &str) -> Result<(), Failure> {
        whole_file::put(&self.dir.join(name), text)
    }
}
