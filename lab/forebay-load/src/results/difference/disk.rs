//! What the disk itself lost: as much without the scheduler as with it.

use serde::Serialize;

use super::text::{factor_or_percent, name};
use super::{Change, Figure};

/// From run to run a disk differs by less.
const LOSS_MIN: f64 = 0.05;
/// Two losses are even that differ by no more than this part of the smaller one.
const EVEN: f64 = 0.25;

/// A loss of a job that is even in both columns of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskLoss {
    /// The name of the job.
    pub job: String,
    /// By which part its bytes per second rose, below zero: without the scheduler, and with it.
    pub changes: [f64; 2],
}

impl DiskLoss {
    /// Which part of the bytes per second was lost, at least.
    pub(super) fn least(&self) -> f64 {
        self.changes.iter().map(|change| -change).fold(1.0, f64::min)
    }

    pub(super) fn in_words(&self) -> String {
        let [without, with] = self.changes.map(factor_or_percent);
        format!(
            "{} {} {with}, and {without} without the scheduler",
            self.job,
            name(Figure::Throughput)
        )
    }
}

/// By the changes without the scheduler and with it, each judged by how even its own two runs are.
pub(super) fn disk_losses(without: &[Change], with: &[Change]) -> Vec<DiskLoss> {
    let loss = |change: &Change| {
        change.loss().filter(|&loss| change.figure == Figure::Throughput && loss >= LOSS_MIN)
    };
    let even = |(without, with): (&Change, &Change)| {
        let losses = [loss(without)?, loss(with)?];
        let [less, more] = [losses[0].min(losses[1]), losses[0].max(losses[1])];
        let found = DiskLoss { job: with.job.clone(), changes: losses.map(|loss| -loss) };
        (more - less <= less * EVEN).then_some(found)
    };
    without.iter().zip(with).filter_map(even).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::difference::Judged;

    fn change(by: f64, significant: bool, figure: Figure) -> Change {
        let judged = Some(Judged { change: by, margin: Some(0.01), significant });
        Change { job: "bulk".into(), figure, old: 1.0, new: 1.0 + by, judged, requests: [100, 1] }
    }

    #[test]
    fn only_what_both_columns_lost_alike_is_a_loss_of_the_disk() {
        for (without, with, sure, is_loss) in [
            (-0.10, -0.10, true, true),
            (-0.10, -0.12, true, true),
            (-0.10, -0.10, false, false),
            (-0.05, -0.20, true, false),
            (-0.02, -0.02, true, false),
            (0.10, 0.10, true, false),
            (-0.10, 0.00, true, false),
        ] {
            let of = |by| [change(by, sure, Figure::Throughput)];
            let found = disk_losses(&of(without), &of(with));
            assert_eq!(!found.is_empty(), is_loss, "{without} {with} {sure}");
        }
        let latency = [change(-0.1, true, Figure::P99)];
        assert!(disk_losses(&latency, &latency).is_empty());
    }
}
