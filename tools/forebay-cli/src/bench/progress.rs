//! How far the program is, while it is.

use std::io::{self, IsTerminal};
use std::time::Duration;

use forebay_load::job_file::JobFile;
use forebay_load::recorder::Recent;
use indicatif::{HumanBytes, ProgressBar};

use crate::console::{note, progress_bar};

/// How often the line of a run is new,
pub(super) const PERIOD: Duration = Duration::from_millis(500);
/// and how often there is a line where there is no terminal.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);

/// How much of the data files is written.
pub(super) fn fill_progress(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        note(format_args!("writing {} of data files", HumanBytes(bytes)));
    }
    let template = "writing data files {bar:40} {bytes} of {total_bytes} ({bytes_per_sec})";
    progress_bar(bytes, template)
}

/// What a run does now: a line on a terminal, elsewhere one now and then.
#[derive(Debug)]
pub(super) struct RunProgress {
    bar: ProgressBar,
    title: String,
}

impl RunProgress {
    /// A line that begins with `title`.
    pub(super) fn new(title: &str) -> Self {
        Self { bar: progress_bar(1, "{wide_msg}"), title: title.to_owned() }
    }

    /// Whether anybody sees it.
    pub(super) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// How often something is to be said.
    pub(super) fn period(&self) -> Duration {
        if self.is_shown() { PERIOD } else { PLAIN_PERIOD }
    }

    /// How long it takes still, where there is no terminal.
    pub(super) fn tell(&self, left: Duration) {
        note(format_args!("{}: {} s left", self.title, left.as_secs()));
    }

    /// What each of `jobs` did in the last [`PERIOD`].
    pub(super) fn show(&self, left: Duration, jobs: &JobFile, recent: &[Option<Recent>]) {
        let jobs = jobs.jobs.iter().zip(recent);
        let jobs = jobs.filter_map(|(job, recent)| Some(figures(&job.name, recent.as_ref()?)));
        let (title, left) = (&self.title, left.as_secs());
        self.bar.set_message(format!("{title} {left} s{}", jobs.collect::<String>()));
    }
}

/// What the job `name` did in one [`PERIOD`].
fn figures(name: &str, recent: &Recent) -> String {
    let per_second = |count: u64| count as f64 / PERIOD.as_secs_f64();
    let mut text = format!(
        " | {name} {:.0}/s {:.0} MB/s p99 {:.1} ms",
        per_second(recent.requests),
        per_second(recent.bytes) / 1e6,
        recent.latency.quantile_ns(0.99) as f64 / 1e6
    );
    if recent.errors > 0 {
        text += &format!(" {} errors", recent.errors);
    }
    text
}
