//! How far the measurement is.

use std::time::Duration;

use forebay_report::size;
use forebay_tune::{Budget, Phase, Progress, Purpose, Work};
use indicatif::ProgressBar;

use crate::console::progress_bar;

/// How often the line moves while a phase lasts.
const TICK: Duration = Duration::from_millis(200);

/// A line on a terminal, nothing elsewhere.
pub(super) struct TuneProgress {
    bar: ProgressBar,
    seconds: f64,
}

impl TuneProgress {
    pub(super) fn new(budget: &Budget) -> Self {
        let seconds = budget.seconds();
        let bar = progress_bar(seconds.ceil() as u64, "{spinner} {bar:30} {msg}");
        bar.enable_steady_tick(TICK);
        Self { bar, seconds }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        self.bar.set_position(progress.seconds_done as u64);
        let left = match progress.purpose {
            Purpose::Credits => String::from("looking for"),
            _ => format!("about {:.0} s left:", (self.seconds - progress.seconds_done).max(0.0)),
        };
        self.bar.set_message(format!(
            "{left} {}, {}",
            progress.purpose.name(),
            described(&progress.phase)
        ));
    }
}

impl Drop for TuneProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn described(phase: &Phase) -> String {
    let work = match phase.work {
        Work::Read => "reads",
        Work::Write => "writes",
        Work::Flush => "flushes",
        Work::Discard => "discards",
    };
    format!("{work} of {}, {} in flight", size(phase.request_bytes.into()), phase.depth)
}
