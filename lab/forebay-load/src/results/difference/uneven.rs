//! Whether the disk alone is too uneven for anything to be judged on it.

use super::{Change, Figure};

/// A margin from here on hides a loss that is worth telling.
const UNEVEN: f64 = 0.1;

/// The job that moves most without the scheduler, where its own runs are so uneven that a loss of the part `least`
/// of the disk would not be seen.
pub(super) fn uneven(without: &[Change], least: f64) -> Option<&Change> {
    let moved = without.iter().filter(|change| change.figure == Figure::Throughput);
    moved.max_by(|a, b| (a.old + a.new).total_cmp(&(b.old + b.new))).filter(|change| {
        let most = UNEVEN.max(least).max(2.0 * change.counted());
        change.judged.is_some_and(|judged| judged.margin.is_none_or(|margin| margin > most))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::difference::Judged;

    #[test]
    fn a_disk_is_uneven_whose_busiest_job_is() {
        let of = |job: &str, new: f64, margin| Change {
            job: job.into(),
            figure: Figure::Throughput,
            old: 1.0,
            new,
            judged: Some(Judged { change: -0.1, margin: Some(margin), significant: false }),
            requests: [100_000, 1],
        };
        for (margins, least, is_uneven) in [
            ([0.2, 0.01], 0.0, true),
            ([0.01, 0.2], 0.0, false),
            ([0.2, 0.01], 0.3, false),
            ([0.6, 0.01], 0.3, true),
        ] {
            let changes = [of("reads", 1.0, margins[1]), of("bulk", 9.0, margins[0])];
            let found = uneven(&changes, least).map(|change| change.job.as_str());
            assert_eq!(found, is_uneven.then_some("bulk"), "{margins:?} {least}");
        }
        assert!(uneven(&[], 0.0).is_none());
    }
}
