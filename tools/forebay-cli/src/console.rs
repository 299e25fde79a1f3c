//! What the program says.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// JSON
    Json,
}

/// Says something to the user, on stderr. Nobody listening is no failure.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A line of progress on a terminal, which is gone with what is returned; nothing elsewhere.
pub(crate) fn progress_bar(length: u64, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Writes results to stdout. A reader that has had enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("cannot write the results: {error}")))
        }
        _ => Ok(()),
    }
}

/// Results for programs.
pub(crate) fn json(results: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(results);
    json.map(|json| json + "\n")
        .map_err(|error| Failure::Run(format!("cannot format the results: {error}")))
}
