//! A step to a larger window that is taken back.
//!
//! A trial is short. It does not show whether a class has all of its requests in the disk once the
//! window is as large for good. Then the class has no backlog, and the disk, which knows no shares,
//! decides what it gets.

/// The intervals in which a step to a larger window may be taken back. A trial is too short to show
/// that a class loses its backlog, so a smaller number would miss it. It bounds for how long a
/// change of the load can be taken for an effect of the step.
const INTERVALS: i64 = 32;
/// The intervals after a step was taken back in which no larger window is tried. With fewer a class
/// loses its backlog more often; with more a disk that could do more is held at the smaller window
/// for longer.
const REST: i64 = 256;

/// The latest step to a larger window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regret {
    /// The window before it.
    before: i64,
    /// A class has lost its backlog where a larger part of requests is fresh, in thousandths.
    fresh_max: i64,
    /// For how many intervals it may be taken back; below zero, for how many no larger window is
    /// tried.
    intervals: i64,
}

impl Regret {
    pub(super) const NONE: Self = Self { before: 0, fresh_max: 0, intervals: 0 };
    /// Encoding: The words of the state that hold the latest step.
    pub(super) const WORDS: usize = 3;

    pub(super) const fn to_words(self) -> [i64; Self::WORDS] {
        [self.before, self.fresh_max, self.intervals]
    }

    pub(super) const fn from_words([before, fresh_max, intervals]: [i64; Self::WORDS]) -> Self {
        Self { before, fresh_max, intervals }
    }

    /// All classes were backlogged at the window `before`, and a larger one was adopted.
    pub(super) fn step(&mut self, before: i64, fresh_max: i64) {
        *self = Self { before, fresh_max, intervals: INTERVALS };
    }

    /// An interval has ended, and this part of requests is fresh beside other classes, in
    /// thousandths. Returns the window before the step if that is taken back.
    pub(super) fn follow(&mut self, fresh: i64) -> Option<i64> {
        self.intervals -= self.intervals.signum();
        (self.intervals > 0 && fresh > self.fresh_max).then(|| {
            self.intervals = -REST;
            self.before
        })
    }

    /// Whether a larger window may be tried.
    pub(super) const fn allows_growth(&self) -> bool {
        self.intervals >= 0
    }
}
