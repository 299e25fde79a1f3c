//! How long threads wait for a processor: on a busy machine, that is in all latencies.

use std::fs;
use std::time::{Duration, Instant};

/// What a thread has waited since this was made.
pub(super) struct ProcessorWait {
    since: Instant,
    before: Option<Duration>,
}

impl ProcessorWait {
    /// Of this thread, from now on.
    pub(super) fn begin() -> Self {
        Self { since: Instant::now(), before: waited() }
    }

    /// The part of the time since then in which this thread could run and had no processor; none
    /// where the kernel does not count it.
    pub(super) fn part(&self) -> Option<f64> {
        let waited = waited()?.saturating_sub(self.before?);
        let all = self.since.elapsed();
        (!all.is_zero()).then(|| (waited.as_secs_f64() / all.as_secs_f64()).min(1.0))
    }
}

fn waited() -> Option<Duration> {
    parsed(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The second number: nanoseconds on a run queue.
fn parsed(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_counts_is_read() {
        assert_eq!(parsed("1200 56524 17\n"), Some(Duration::from_nanos(56_524)));
        assert_eq!([parsed(""), parsed("1 x 2")], [None, None]);
    }

    #[test]
    fn a_part_is_at_most_all() {
        let wait = ProcessorWait::begin();
        std::thread::sleep(Duration::from_millis(1));
        assert!(wait.part().is_none_or(|part| (0.0..=1.0).contains(&part)));
    }
}
