//! Commands of the system that tests need.

#[path = "../../../../crates/forebay/tests/shared/skipped.rs"]
mod skipped;

use std::process::Command;

pub(crate) use skipped::skipped;

/// Runs a command of the system; `None`, after saying why, where it is not to be had or fails.
pub(crate) fn system(command: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            skipped(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            None
        }
        Err(error) => {
            skipped(format!("{command}: {error}"));
            None
        }
    }
}
