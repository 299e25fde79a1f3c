//! What is known of one trial, and when it is repeated.

/// The runs of a promising trial before it has to wait: its mean score is positive, but not yet
/// clear. With fewer a gain that noise hides is not found; with more an undecided trial takes the
/// time of others.
const PROMISING_COUNT: i64 = 8;
/// The runs of a trial that is not promising before it has to wait. After a single one, noise alone
/// would put it off.
const COUNT: i64 = 2;
/// The runs after which the evidence of a trial is halved, so that it follows the disk. A smaller
/// number forgets sooner what is known; a larger one follows a change of the disk later.
const COUNT_MAX: i64 = 32;
/// The most intervals that a trial without a result waits; it waits twice as many each time. At
/// this number trials that harm are less than 1 % of the time, and p99 does not show them. A larger
/// one finds a change of the disk later.
const WAIT_MAX: i64 = 512;
/// How much less than half of its part of the whole gain a direction may gain, in millionths of
/// rate (0.5 %). Within it are noise, and a class that its limit keeps from gaining. A larger
/// number lets one direction gain at the cost of the other.
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
    /// Encoding: The words of the state that hold the evidence of one trial.
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
