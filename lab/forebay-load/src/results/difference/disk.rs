//! What the disk itself lost: as much without the scheduler as with it.

use serde::Serialize;

use super::text::{factor_or_percent, name};
use super::{Change, Figure};

/// From run to run a disk differs by less.
const LOSS_MIN: f64 = 0.05;
/// Two losses are even that differ by no more than this part of the smaller one.
const EVEN: f64 = 0.25;
/// A loss is known whose margin is no more than this part of it.
const KNOWN: f64 = 0.5;

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
        let loss = change.loss().filter(|&loss| loss >= LOSS_MIN)?;
        let margin = change.judged?.margin?;
        (change.figure == Figure::Throughput && margin <= loss * KNOWN).then_some(loss)
    };
    let even = |with: &Change| {
        let same = |other: &&Change| other.job == with.job && other.figure == with.figure;
        let losses = [loss(without.iter().find(same)?)?, loss(with)?];
        let [less, more] = [losses[0].min(losses[1]), losses[0].max(losses[1])];
        let found = DiskLoss { job: with.job.clone(), changes: losses.map(|loss| -loss) };
        (more - less <= less * EVEN).then_some(found)
    };
    with.iter().filter_map(even).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::difference::Judged;

    fn change(by: f64, margin: f64, significant: bool, figure: Figure) -> Change {
        let judged = Some(Judged { change: by, margin: Some(margin), significant });
        Change {
            job: "bulk".into(),
            figure,
            old: 1.0,
            new: 1.0 + by,
            judged,
            requests: [100_000, 1],
        }
    }

    #[test]
    fn only_what_both_columns_lost_alike_is_a_loss_of_the_disk() {
        for (without, with, margin, sure, is_loss) in [
            (-0.10, -0.10, 0.01, true, true),
            (-0.10, -0.12, 0.01, true, true),
            (-0.10, -0.10, 0.01, false, false),
            (-0.27, -0.32, 0.26, true, false),
            (-0.05, -0.20, 0.01, true, false),
            (-0.02, -0.02, 0.01, true, false),
            (0.10, 0.10, 0.01, true, false),
            (-0.10, 0.00, 0.01, true, false),
        ] {
            let of = |by| [change(by, margin, sure, Figure::Throughput)];
            let found = disk_losses(&of(without), &of(with));
            assert_eq!(!found.is_empty(), is_loss, "{without} {with} {margin} {sure}");
        }
        let latency = [change(-0.1, 0.01, true, Figure::P99)];
        assert!(disk_losses(&latency, &latency).is_empty());
    }

    #[test]
    fn changes_of_both_columns_are_paired_by_what_they_are_of() {
        let bulk = change(-0.1, 0.01, true, Figure::Throughput);
        let reads = Change { job: "reads".into(), ..change(0.0, 0.01, false, Figure::Throughput) };
        let found = disk_losses(&[reads.clone(), bulk.clone()], &[bulk.clone(), reads.clone()]);
        assert_eq!(found.iter().map(|loss| loss.job.as_str()).collect::<Vec<_>>(), ["bulk"]);
        assert!(disk_losses(&[reads], &[bulk]).is_empty());
    }
}
