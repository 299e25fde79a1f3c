//! Where what was seen goes, and how it is printed.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::console::{Format, json, print};
use crate::failure::Failure;
use crate::whole_file;

/// Where what was seen goes.
#[derive(Args)]
pub(super) struct OutputOptions {
    /// The file for the results, instead of stdout, to which the command writes too
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Whether a file called `path` can be written, and is not the trace that is read.
pub(super) fn check(path: &Path, from: Option<&Path>) -> Result<(), Failure> {
    whole_file::check_other(path, from.as_slice())?;
    whole_file::check(path)
}

impl OutputOptions {
    /// Whether it can go there, and not into the trace that is read: better known before anything is
    /// traced.
    pub(super) fn check(&self, from: Option<&Path>) -> Result<(), Failure> {
        self.output.as_deref().map_or(Ok(()), |output| check(output, from))
    }

    /// Puts it there, as JSON of `report` or as the text of it.
    pub(super) fn put(
        &self,
        report: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let results = match self.json || self.format == Format::Json {
            true => json(report)?,
            false => text(),
        };
        match &self.output {
            Some(output) => whole_file::put(output, &results),
            None => print(&results),
        }
    }
}
