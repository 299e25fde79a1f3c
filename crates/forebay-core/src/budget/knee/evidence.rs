//! What is known of one trial, and when it is to be again.

/// A promising trial is repeated this often at once.
const ROUNDS_PROMISING: i64 = 8;
/// Any other is, before it has to wait.
const ROUNDS: i64 = 2;
/// Evidence counts half after so many trials.
const EVIDENCE_MAX: i64 = 32;
/// A trial that comes to nothing waits for twice as many intervals each time, up to this: trials
/// that harm are then less than 1 % of the time, and p99 does not show them.
const WAIT_MAX: i64 = 512;
/// What is known of one trial at the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) count: i64,
    /// How much better it was for reads and for everything else, added up, in millionths of rate:
    /// a gain of one direction at the cost of the other bends the shares.
    pub(super) sums: [i64; 2],
    /// Trials in this place of the disk's history.
    pub(super) rounds: i64,
    /// Not again for so many intervals.
    pub(super) wait: i64,
    pub(super) next_wait: i64,
}

impl Evidence {
    pub(super) const NONE: Self = Self { count: 0, sums: [0; 2], rounds: 0, wait: 0, next_wait: 1 };
    pub(super) const WORDS: usize = 6;

    pub(super) const fn to_words(self) -> [i64; Self::WORDS] {
        let Self { count, sums: [reads, others], rounds, wait, next_wait } = self;
        [count, reads, others, rounds, wait, next_wait]
    }

    pub(super) const fn from_words(
        [count, reads, others, rounds, wait, next_wait]: [i64; Self::WORDS],
    ) -> Self {
        Self { count, sums: [reads, others], rounds, wait, next_wait }
    }

    /// The trial was not better, or that is not sure: when it is to be again. Whether it is the
    /// turn of another one.
    pub(super) fn put_off(&mut self, mean: i64, is_clear: bool, error: i64) -> bool {
        if mean > 0 && !is_clear && self.rounds < ROUNDS_PROMISING {
            return false;
        }
        if is_clear || mean > 0 || self.rounds >= ROUNDS {
            let times = if is_clear && mean < -2 * error { 4 } else { 2 };
            self.next_wait = (self.next_wait * times).min(WAIT_MAX);
            self.wait = self.next_wait;
        }
        if self.count >= EVIDENCE_MAX {
            self.count /= 2;
            self.sums = self.sums.map(|sum| sum / 2);
        }
        true
    }
}
