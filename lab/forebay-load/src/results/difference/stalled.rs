//! Jobs that did nothing for a while. Means over such a run are so uneven that they tell nothing.

use serde::Serialize;

use crate::results::figures::duration;
use crate::results::model::{ClassResult, IntervalResult, RunResult};

/// A time in which a job had fewer requests before may be empty by chance.
const REQUESTS_MIN: u64 = 20;
/// The longest request is this many times as long as the longest before.
const TIMES_MIN: f64 = 10.0;

/// A job that stalled, and did not before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StalledJob {
    /// The name of the job.
    pub job: String,
    /// For how many seconds in sequence nothing was done; zero where other requests went on.
    pub idle_seconds: f64,
    /// The longest request in the older run, in microseconds from its intended start.
    pub old_max_us: f64,
    /// The same in the newer run; one that was not done counts with its age.
    pub new_max_us: f64,
}

/// The jobs that stalled in `new` alone, but for those of which all requests failed.
pub(super) fn stalled_jobs(old: &RunResult, new: &RunResult) -> Vec<StalledJob> {
    let pairs = old.classes.iter().zip(&new.classes);
    let pairs = pairs.filter(|(_, after)| after.requests > 0 || after.errors == 0);
    let of = pairs.filter_map(|(before, after)| {
        let part = new.duration_seconds / after.intervals.len().max(1) as f64;
        let idle = idle(&before.intervals, &after.intervals);
        let is_stuck = has_stuck_request(before, after, part);
        (idle > 0 || is_stuck).then(|| StalledJob {
            job: after.name.clone(),
            idle_seconds: idle as f64 * part,
            old_max_us: before.latency_us.max,
            new_max_us: after.latency_us.max,
        })
    });
    of.collect()
}

/// The most intervals in sequence in which nothing was done, where the older run did something in
/// as many throughout.
fn idle(old: &[IntervalResult], new: &[IntervalResult]) -> usize {
    let gaps = new.split(|interval| interval.requests > 0).map(<[_]>::len);
    let longest = gaps.max().unwrap_or(0);
    if longest == 0 || longest > old.len() {
        return 0;
    }
    let requests = |window: &[IntervalResult]| window.iter().map(|one| one.requests).sum::<u64>();
    let least = old.windows(longest).map(requests).min().unwrap_or(0);
    if least >= REQUESTS_MIN { longest } else { 0 }
}

/// Whether a request took longer than a `part` of the run, which none did before.
fn has_stuck_request(old: &ClassResult, new: &ClassResult, part: f64) -> bool {
    let [before, after] = [old, new].map(|class| class.latency_us.max);
    before > 0.0 && after >= part * 1e6 && after >= before * TIMES_MIN
}

impl StalledJob {
    /// In a few words.
    pub(super) fn in_words(&self) -> String {
        let Self { job, idle_seconds, old_max_us, new_max_us } = self;
        match idle_seconds {
            0.0 => {
                let [before, now] = [*old_max_us, *new_max_us].map(duration);
                format!("{job}: a request took {now}, {before} at most before")
            }
            seconds => format!("{job} did nothing for {}", duration(seconds * 1e6)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(requests: &[u64]) -> Vec<IntervalResult> {
        let of = |&requests| IntervalResult { requests, ..IntervalResult::default() };
        requests.iter().map(of).collect()
    }

    #[test]
    fn a_job_stood_still_where_it_never_did_before() {
        let even = [30; 6];
        for (old, new, longest) in [
            (even, [30, 30, 30, 30, 0, 0], 2),
            (even, [0, 30, 0, 0, 0, 30], 3),
            (even, [30, 30, 0, 30, 30, 30], 1),
            (even, even, 0),
            (even, [0; 6], 6),
            ([30, 0, 0, 30, 30, 30], [30, 30, 30, 0, 0, 30], 0),
            ([3; 6], [3, 3, 0, 0, 3, 3], 0),
        ] {
            assert_eq!(idle(&intervals(&old), &intervals(&new)), longest, "{old:?} {new:?}");
        }
        assert_eq!(idle(&[], &intervals(&[0])), 0);
    }
}
