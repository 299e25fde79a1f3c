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

    pub(super) fn to_words(mut self) -> [i64; Self::WORDS] {
        let (mut words, mut place) = ([0; Self::WORDS], 0);
        self.each_word(&mut |word| {
            words[place] = *word;
            place += 1;
        });
        words
    }

    pub(super) fn from_words(words: [i64; Self::WORDS]) -> Self {
        let (mut trials, mut words) = (Self::new(), words.into_iter());
        trials.each_word(&mut |word| *word = words.next().unwrap_or(0));
        trials
    }

    /// Shows all words of the state, always in one order, to be read or set.
    fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        let (mut phase, mut turn) = (self.phase as i64, self.turn as i64);
        show(&mut phase);
        show(&mut turn);
        self.phase = match phase {
            0 => Phase::Before,
            1 => Phase::Trial,
            _ => Phase::After,
        };
        self.turn = usize::try_from(turn).unwrap_or(0) % TRIALS;
        let of_trial = [&mut self.is_cut_short, &mut self.was_fresh];
        for flag in of_trial.into_iter().chain([&mut self.is_busy, &mut self.is_backlogged]) {
            let mut word = i64::from(*flag);
            show(&mut word);
            *flag = word != 0;
        }
        let numbers = [
            &mut self.window,
            &mut self.waiting,
            &mut self.nearly_idle,
            &mut self.fresh,
            &mut self.noise,
            &mut self.best,
            &mut self.usual_rate,
            &mut self.usual_latency,
            &mut self.changed_intervals,
            &mut self.alone_intervals,
        ];
        numbers.into_iter().for_each(&mut *show);
        self.evidence.iter_mut().for_each(|evidence| evidence.each_word(show));
        for measured in [&mut self.before, &mut self.last, &mut self.trial] {
            measured.each_word(show);
        }
        self.regret.each_word(show);
        self.target.each_word(show);
    }
}
