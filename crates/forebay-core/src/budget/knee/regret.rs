//! A step to a larger window that is taken back.
//!
//! A trial is short. It does not show whether a class has all of its requests in the disk once the
//! window is as large for good. Then the class has no backlog, and the disk, which knows no shares,
//! decides what it gets.

/// A step may be taken back for this many intervals.
const INTERVALS: i64 = 32;
/// After that no larger window is tried for this many.
const REST: i64 = 256;

/// The latest step to a larger window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regret {
    /// The window before it.
    before: i64,
    /// For how many intervals it may be taken back; below zero, for how many no larger window is
    /// tried.
    intervals: i64,
}

impl Regret {
    pub(super) const NONE: Self = Self { before: 0, intervals: 0 };
    pub(super) const WORDS: usize = 2;

    pub(super) const fn to_words(self) -> [i64; Self::WORDS] {
        [self.before, self.intervals]
    }

    pub(super) const fn from_words([before, intervals]: [i64; Self::WORDS]) -> Self {
        Self { before, intervals }
    }

    /// All classes were backlogged at the window `before`, and a larger one was adopted.
    pub(super) fn step(&mut self, before: i64) {
        *self = Self { before, intervals: INTERVALS };
    }

    /// An interval has ended, after which a class is not backlogged if `lost`. Returns the window
    /// before the step if that is taken back.
    pub(super) fn follow(&mut self, lost: bool) -> Option<i64> {
        self.intervals -= self.intervals.signum();
        (self.intervals > 0 && lost).then(|| {
            self.intervals = -REST;
            self.before
        })
    }

    /// Whether a larger window may be tried.
    pub(super) const fn allows_growth(&self) -> bool {
        self.intervals >= 0
    }
}
