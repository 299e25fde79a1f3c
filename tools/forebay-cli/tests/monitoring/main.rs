//! `monitoring/`: its rules and its dashboard against what is scraped of a run.
//!
//! In virtual time: simulated runs with something wrong each, as `promtool` sees them, and as people
//! are told. In real time: a Prometheus that scrapes `forebay bench`, and a program whose files and
//! permits go wrong, on ports of the loopback interface that are free.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[path = "../shared/answers.rs"]
mod answers;
mod files;
mod promtool;
mod provoked;
mod scrape;
mod server;
mod stories;
mod story;
#[path = "../shared/system.rs"]
mod system;
mod words;

use std::process::{Command, Stdio};

/// Whether the programs of the distribution's package `prometheus` are here. For root in CI they
/// have to be.
pub(crate) fn has_prometheus() -> bool {
    let runs = |program: &str| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    let is_here = runs("promtool") && runs("prometheus");
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let must_be = in_ci && rustix::process::geteuid().is_root();
    assert!(is_here || !must_be, "prometheus is not installed");
    if !is_here {
        system::skipped("needs prometheus");
    }
    is_here
}
