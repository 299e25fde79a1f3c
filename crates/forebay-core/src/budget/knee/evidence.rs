//! What is known of one trial, and when it is repeated.

/// A promising trial is run this often before it has to wait.
const PROMISING_COUNT: i64 = 8;
/// Any other trial is run this often.
const COUNT: i64 = 2;
/// Evidence of this many trials is halved, so that it follows the disk.
const COUNT_MAX: i64 = 32;
/// A trial without a result waits for twice as many intervals each time, up to this. Trials that
/// harm are then less than 1 % of the time, and p99 does not show them.
const WAIT_MAX: i64 = 512;
/// A direction may gain this much less than half of its part, in millionths of rate. That is noise,
/// or a class that its limit keeps from gaining.
const LACK_MAX: i64 = 5_000;

/// What is known of one trial at the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) count: i64,
    /// The sum of its scores, in millionths of rate.
    pub(super) score: i64,
    /// The sums of what reads and everything else gained beyond half of their parts, in millionths
    /// of rate.
    pub(super) surplus: [i64; 2],
    /// Intervals until the next trial,
    pub(super) wait: i64,
    /// and after one more without a result, before doubling.
    pub(super) next_wait: i64,
}

impl Evidence {
    pub(super) const NONE: Self =
        Self { count: 0, score: 0, surplus: [0; 2], wait: 0, next_wait: 1 };
    pub(super) const WORDS: usize = 6;

    pub(super) const fn to_words(self) -> [i64; Self::WORDS] {
        let Self { count, score, surplus: [reads, others], wait, next_wait } = self;
        [count, score, reads, others, wait, next_wait]
    }

    pub(super) const fn from_words(
        [count, score, reads, others, wait, next_wait]: [i64; Self::WORDS],
    ) -> Self {
        Self { count, score, surplus: [reads, others], wait, next_wait }
    }

    /// The mean score, in millionths of rate.
    pub(super) fn mean(&self) -> i64 {
        self.score / self.count.max(1)
    }

    /// Whether one direction gains at the cost of the other, which bends the shares.
    pub(super) fn bends_shares(&self) -> bool {
        self.surplus.iter().any(|&surplus| surplus < -LACK_MAX * self.count)
    }

    /// Decides when a trial is repeated that was not clearly better. Returns whether another one
    /// is next.
    pub(super) fn put_off(&mut self, mean: i64, is_clear: bool, error: i64) -> bool {
        if mean > 0 && !is_clear && self.count < PROMISING_COUNT {
            return false;
        }
        if is_clear || mean > 0 || self.count >= COUNT {
            let times = if is_clear && mean < -2 * error { 4 } else { 2 };
            self.next_wait = (self.next_wait * times).min(WAIT_MAX);
            self.wait = self.next_wait;
        }
        if self.count >= COUNT_MAX {
            self.count /= 2;
            self.score /= 2;
            self.surplus = self.surplus.map(|sum| sum / 2);
        }
        true
    }
}
