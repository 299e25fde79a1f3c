//! What a comparison comes to, for a gate.

use super::text::{in_words, waits};
use super::uneven::uneven;
use super::{Change, Difference, Figure};

/// A loss from here on is worth telling that it may be one.
const LOSS_MIN: f64 = 0.1;
/// What is so uneven that the loss of half would not be seen is no answer,
const MARGIN_MAX: f64 = 0.5;
/// and neither is a latency that may have doubled.
const TIMES_MAX: f64 = 2.0;
/// What the number of requests moves a rate by: this many standard errors are not that.
const COUNTED: f64 = 3.0;

/// What a comparison comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was lost, and the runs are even enough to say so.
    Passed,
    /// What was lost, in a few words each, what failed first.
    Lost(Vec<String>),
    /// Why that cannot be told.
    Undecided(String),
}

impl Difference {
    /// What it comes to where losses of a figure below the part `least` are let pass. Requests that
    /// fail and jobs that stand still never are.
    pub fn outcome(&self, least: f64) -> Outcome {
        if !self.other_loads.is_empty() {
            let loads = self.other_loads.join("; ");
            return Outcome::Undecided(format!("not comparable: {loads}; run the same load again"));
        }
        let more = self.failed.iter().filter(|failed| failed.is_more);
        let failed: Vec<String> = more.map(super::Failed::in_words).collect();
        let still = self.stalled.iter().map(super::StalledJob::in_words);
        let is_lost = |change: &&Change| change.loss().is_some_and(|loss| loss >= least);
        let lost = self.changes.iter().filter(is_lost).map(in_words);
        let lost: Vec<String> = still.chain(lost).collect();
        if let Some(busy) = self.busy.filter(|_| failed.is_empty()) {
            return Outcome::Undecided(format!(
                "not comparable: the machine was too busy to judge the disk ({}){}; measure both \
                 on a less busy machine",
                waits(busy),
                if lost.is_empty() {
                    String::new()
                } else {
                    format!(": {} may or may not be lost", lost.join("; "))
                }
            ));
        }
        if !failed.is_empty() || !lost.is_empty() {
            return Outcome::Lost([failed, lost].concat());
        }
        let disk = self.disk.iter().filter(|loss| loss.least() >= least);
        let disk: Vec<String> =
            disk.map(|loss| format!("by the disk itself: {}", loss.in_words())).collect();
        if !disk.is_empty() {
            return Outcome::Lost(disk);
        }
        let unsure = self.changes.iter().filter(|change| change.is_unsure(least));
        let mut unsure: Vec<String> = unsure.map(in_words).collect();
        if let Some(busiest) = uneven(&self.control, least) {
            unsure.push(format!("{} without the scheduler", in_words(busiest)));
        }
        if unsure.is_empty() {
            return Outcome::Passed;
        }
        let unsure = unsure.join("; ");
        Outcome::Undecided(format!(
            "not comparable: {unsure}: it varied too much to detect a loss; run for longer, or \
             when nothing else uses the disk"
        ))
    }
}

impl Change {
    /// What the number of requests alone moves it by.
    pub(super) fn counted(&self) -> f64 {
        COUNTED * (2.0 / self.requests[0].max(1) as f64).sqrt()
    }

    /// Whether it may be a loss of the part `least`, and of a tenth, and the runs are too uneven to
    /// tell.
    fn is_unsure(&self, least: f64) -> bool {
        let Some(judged) = self.judged else {
            return self.figure == Figure::Throughput && self.old > 0.0 && self.new == 0.0;
        };
        if judged.significant {
            return false;
        }
        let counted = self.counted();
        match self.figure {
            Figure::Throughput => {
                -judged.change >= LOSS_MIN.max(least).max(counted)
                    || judged.margin.is_none_or(|margin| margin > MARGIN_MAX.max(2.0 * counted))
            }
            Figure::P50 | Figure::P99 | Figure::P999 => {
                judged.change >= (TIMES_MAX - 1.0).max(least)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::difference::Judged;

    fn unsure(figure: Figure, change: f64, margin: Option<f64>, requests: u64, least: f64) -> bool {
        let judged = Some(Judged { change, margin, significant: false });
        let (old, new) = (1.0, 1.0 + change);
        let job = String::from("job");
        Change { job, figure, old, new, judged, requests: [requests, 1] }.is_unsure(least)
    }

    #[test]
    fn runs_too_uneven_to_show_a_loss_do_not_pass() {
        for (change, margin, requests, least, is_unsure) in [
            (-0.8, Some(1.214), 5000, 0.0, true),
            (-0.198, Some(0.545), 30_000, 0.0, true),
            (-0.15, Some(0.2), 30_000, 0.2, false),
            (0.0, None, 30_000, 0.0, true),
            (0.3, Some(0.9), 30_000, 0.0, true),
            (-0.05, Some(0.2), 30_000, 0.0, false),
            // of so few requests, as many are missing by chance
            (-0.2, Some(0.3), 200, 0.0, false),
            (-0.2, Some(0.6), 50, 0.0, false),
        ] {
            let is = unsure(Figure::Throughput, change, margin, requests, least);
            assert_eq!(is, is_unsure, "{change} {margin:?} {requests}");
        }
        assert!(unsure(Figure::P999, 118.0, None, 30_000, 0.0));
        assert!(!unsure(Figure::P999, 0.4, Some(0.6), 30_000, 0.0));
        assert!(!unsure(Figure::P50, -0.4, None, 30_000, 0.0));
    }

    #[test]
    fn a_job_that_moves_nothing_any_more_is_not_passed() {
        let change = |old, new| Change {
            job: String::from("job"),
            figure: Figure::Throughput,
            old,
            new,
            judged: None,
            requests: [0, 1],
        };
        assert!(change(10.0, 0.0).is_unsure(0.0));
        assert!(!change(0.0, 0.0).is_unsure(0.0), "of a job that moves no bytes");
    }
}
