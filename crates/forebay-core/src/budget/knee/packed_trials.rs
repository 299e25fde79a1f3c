//! The state of the trials as words, which shards share in atomics.

use super::measured::Measured;
use super::target::Target;
use super::trials::{Evidence, Phase, Regret, TRIALS, Trials};

/// Encoding: The words of the state that hold single numbers and flags.
const SCALARS: usize = 16;

impl Trials {
    /// Encoding: The words of the whole state.
    pub(super) const WORDS: usize =
        SCALARS + TRIALS * Evidence::WORDS + 3 * Measured::WORDS + Regret::WORDS + Target::WORDS;

    /// The state in the order in which `from_words` reads it.
    pub(super) fn to_words(self) -> [i64; Self::WORDS] {
        let scalars: [i64; SCALARS] = [
            self.window,
            self.phase as i64,
            self.turn as i64,
            self.is_cut_short.into(),
            self.was_fresh.into(),
            self.is_busy.into(),
            self.is_backlogged.into(),
            self.waiting,
            self.nearly_idle,
            self.fresh,
            self.noise,
            self.best,
            self.usual_rate,
            self.usual_latency,
            self.changed_intervals,
            self.alone_intervals,
        ];
        let measured = [self.before, self.last, self.trial].into_iter();
        let mut words = (scalars.into_iter())
            .chain(self.evidence.into_iter().flat_map(Evidence::to_words))
            .chain(measured.flat_map(Measured::to_words))
            .chain(self.regret.to_words())
            .chain(self.target.to_words());
        core::array::from_fn(|_| words.next().unwrap_or(0))
    }

    pub(super) fn from_words(words: [i64; Self::WORDS]) -> Self {
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or(0);
        Self {
            window: next(),
            phase: match next() {
                0 => Phase::Before,
                1 => Phase::Trial,
                _ => Phase::After,
            },
            turn: usize::try_from(next()).unwrap_or(0) % TRIALS,
            is_cut_short: next() != 0,
            was_fresh: next() != 0,
            is_busy: next() != 0,
            is_backlogged: next() != 0,
            waiting: next(),
            nearly_idle: next(),
            fresh: next(),
            noise: next(),
            best: next(),
            usual_rate: next(),
            usual_latency: next(),
            changed_intervals: next(),
            alone_intervals: next(),
            evidence: core::array::from_fn(|_| {
                Evidence::from_words(core::array::from_fn(|_| next()))
            }),
            before: Measured::from_words(core::array::from_fn(|_| next())),
            last: Measured::from_words(core::array::from_fn(|_| next())),
            trial: Measured::from_words(core::array::from_fn(|_| next())),
            regret: Regret::from_words(core::array::from_fn(|_| next())),
            target: Target::from_words(core::array::from_fn(|_| next())),
        }
    }
}
