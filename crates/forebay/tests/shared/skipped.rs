//! Tests that cannot run on this machine.

use std::fmt::Display;
use std::io::Write;

/// Says that the test which calls this is skipped, and why. Not by `eprintln!`, which is shown for
/// tests that fail only.
pub(crate) fn skipped(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}
