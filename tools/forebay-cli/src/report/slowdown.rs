//! Where a disk got slower within a run.

use forebay_load::results::series::{JobSeries, Series};
use forebay_report::verdict::{SLOWER, is_alike};

/// A disk that got slow is so for this part of the run at least, to its end; before that it was faster
/// for twice as long.
const SLOW_PART: usize = 8;
/// And so it is in this many samples.
const SLOW_SAMPLES: usize = 3;
/// It is slower than it was in all but this part of what was before, or it only varies.
const SLOW_BEFORE_PART: usize = 10;

/// Before a disk got slower and from then on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slowdown {
    /// What the disk did of its figures, in the median, before,
    pub(super) before: f64,
    /// and since.
    pub(super) speed: f64,
    /// Whether its requests were of another mix since: of other jobs, or classes.
    pub(super) mix_changed: bool,
}

/// Where the disk lost most of its speed in the samples `from` this one on, if it clearly did.
pub(super) fn of(series: &Series, from: usize) -> Option<Slowdown> {
    let speeds = series.disk.speed.iter().enumerate().skip(from);
    let (samples, speeds): (Vec<usize>, Vec<f64>) =
        speeds.filter_map(|(sample, speed)| Some((sample, (*speed)?))).unzip();
    let length = (speeds.len() / SLOW_PART).max(SLOW_SAMPLES);
    let medians = (2 * length..=speeds.len().checked_sub(length)?).map(|at| {
        let (before, since) = speeds.split_at(at);
        (at, part(before, 2), part(since, 2))
    });
    let lost = |(_, before, since): &(usize, f64, f64)| since - before;
    let (at, before, speed) = medians.min_by(|one, other| lost(one).total_cmp(&lost(other)))?;
    let earlier = speeds.get(..at)?;
    if speed >= before * SLOWER || speed >= part(earlier, SLOW_BEFORE_PART) {
        return None;
    }
    let (then, since) = samples.split_at(at);
    let is_like = |columns: Vec<&[f64]>| {
        let mix = |samples| columns.iter().map(|column| sum(column, samples)).collect::<Vec<_>>();
        is_alike(&mix(then), &mix(since))
    };
    let of_jobs = |of: fn(&JobSeries) -> &[f64]| is_like(series.jobs.iter().map(of).collect());
    // few requests can be much work, and many little
    let alike = of_jobs(|job| &job.iops)
        && of_jobs(|job| &job.bandwidth_bytes_per_second)
        && is_like(series.classes.iter().map(|class| &class.consumption[..]).collect());
    Some(Slowdown { before, speed, mix_changed: !alike })
}

fn sum(column: &[f64], samples: &[usize]) -> f64 {
    samples.iter().filter_map(|&sample| column.get(sample)).sum()
}

/// What one in `parts` is below.
fn part(of: &[f64], parts: usize) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / parts).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use forebay_load::results::series::{ClassSeries, DiskSeries};

    use super::*;

    /// Samples of a disk, and how many requests of each of two jobs were in each.
    fn series(samples: &[(f64, [f64; 2])]) -> Series {
        let job = |place: usize| JobSeries {
            iops: samples.iter().map(|(_, iops)| iops[place]).collect(),
            bandwidth_bytes_per_second: samples.iter().map(|(_, iops)| iops[place] * 4e3).collect(),
            ..JobSeries::default()
        };
        let speed = samples.iter().map(|(speed, _)| Some(*speed)).collect();
        let disk = DiskSeries { speed, ..DiskSeries::default() };
        // a request of the second job is ten times the work
        let class = |place: usize, work: f64| ClassSeries {
            consumption: samples.iter().map(|(_, iops)| iops[place] * work).collect(),
            ..ClassSeries::default()
        };
        let classes = vec![class(0, 0.001), class(1, 0.01)];
        Series { jobs: vec![job(0), job(1)], classes, disk, ..Series::default() }
    }

    #[test]
    fn a_disk_got_slow_only_if_its_requests_are_those_of_before() {
        let then = (1.0, [300.0, 100.0]);
        let now = |now| of(&series(&[[then; 20], [now; 20]].concat()), 0);
        let slow = now((0.5, [150.0, 50.0])).unwrap();
        assert_eq!(slow, Slowdown { before: 1.0, speed: 0.5, mix_changed: false });
        assert!(now((0.5, [150.0, 150.0])).unwrap().mix_changed);
        let then = (1.0, [1000.0, 0.0]);
        let seeks = of(&series(&[[then; 20], [(0.5, [500.0, 30.0]); 20]].concat()), 0);
        assert!(seeks.unwrap().mix_changed);
        assert_eq!(now((0.95, [150.0, 50.0])), None);
    }

    #[test]
    fn a_disk_whose_speed_varies_did_not_get_slow() {
        let at = |sample: usize| [1.0, 0.9, 0.6, 1.1, 0.7, 0.7, 0.65, 1.0][sample % 8];
        let samples: Vec<_> = (0..64).map(|sample| (at(sample), [1.0, 1.0])).collect();
        assert_eq!(of(&series(&samples), 0), None);
        assert_eq!(of(&series(&[]), 0), None);
    }
}
