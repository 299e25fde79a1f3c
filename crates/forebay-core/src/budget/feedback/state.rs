//! What the loop remembers from period to period.

use super::period::SPEED_ONE;
use super::recent::Recent;

/// The disk may be this many times as fast as its model,
pub(super) const SPEED_MAX: u64 = 4 * SPEED_ONE;
/// or this part of it.
pub(super) const SPEED_MIN: u64 = SPEED_ONE / 20;
/// Growth per millisecond, in parts of [`SPEED_ONE`]: at first 4 % in a second,
/// doubled in 300 ms, up to 200 %.
pub(super) const GROWTH: (u64, u64) = (42, 2097);
/// A target is given up for as long at first, and for twice as long each further
/// time, up to this.
pub(super) const GIVEN_UP_NANOS: (u64, u64) = (8_000_000_000, 256_000_000_000);

/// The state, of numbers with names that are kept in words.
macro_rules! state {
    ($($(#[$meta:meta])* $field:ident = $begin:expr,)*) => {
        /// What is remembered from period to period.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct State {
            $($(#[$meta])* pub(super) $field: u64,)*
            /// What was measured since the last cut.
            pub(super) recent: Recent,
        }

        const NUMBERS: usize = [$(stringify!($field)),*].len();

        impl State {
            pub(super) const BEGIN: Self = Self { $($field: $begin,)* recent: Recent::NOTHING };

            /// The numbers in the order of their declaration.
            fn numbers(self) -> [u64; NUMBERS] {
                [$(self.$field,)*]
            }

            fn from_numbers([$($field,)*]: [u64; NUMBERS], recent: Recent) -> Self {
                Self { $($field,)* recent }
            }
        }
    };
}

state! {
    speed = SPEED_ONE,
    growth = GROWTH.1,
    /// Growth is quick to a little below this: there the disk had enough.
    cap = u64::MAX,
    /// What was delivered when the window was last full.
    saturated_speed = 0,
    /// Periods since the last cut, and the sum of their means.
    usual_periods = 0,
    usual_nanos = 0,
    settles_until = 0,
    given_up_until = 0,
    given_up_nanos = 0,
    calm_nanos = 0,
    /// What was let through and what was delivered in the periods before this
    /// one, in speed times milliseconds, fading.
    let_through = 0,
    delivered = 0,
    /// No growth until then,
    drains_until = 0,
    /// and none beyond the model's rate until then, for so long, since the speed
    /// was that.
    held_until = 0,
    held_nanos = 0,
    held_at = 0,
    /// In those usual periods: requests counted in a million milliseconds, added
    /// up, and the speed.
    usual_rate = 0,
    usual_speed = SPEED_ONE,
    /// The most that was delivered since the target was last missed: while it
    /// holds, cuts cost a part of that at most.
    best = 0,
    /// No such cuts until then, since they did not help,
    kept_until = 0,
    /// which they did not for so long the last time.
    kept_nanos = 0,
    /// For so long the target has been missed, less the time in which it held.
    missed_nanos = 0,
    /// When that was first so, or cuts last helped: the time, what was delivered,
    /// and how many of 1000 took too long since, at most.
    missed_since = 0,
    missed_delivered = 0,
    missed_permille = 0,
    /// When what was let through was last cut while the target was missed.
    cut_at = 0,
    /// For so long nothing had to wait.
    unrefused_nanos = 0,
}

/// Words of a state.
pub(super) const WORDS: usize = NUMBERS + Recent::WORDS;

impl State {
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let mut words = self.numbers().into_iter().chain(self.recent.to_words());
        core::array::from_fn(|_| words.next().unwrap_or_default())
    }

    /// What [`State::to_words`] made words of; whatever they are, the speed and
    /// its growth are in range.
    pub(super) fn from_words(words: [u64; WORDS]) -> Self {
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or_default();
        let numbers = core::array::from_fn(|_| next());
        let state =
            Self::from_numbers(numbers, Recent::from_words(core::array::from_fn(|_| next())));
        Self {
            speed: state.speed.clamp(SPEED_MIN, SPEED_MAX),
            growth: state.growth.clamp(GROWTH.0, GROWTH.1),
            given_up_nanos: state.given_up_nanos.min(GIVEN_UP_NANOS.1),
            kept_nanos: state.kept_nanos.min(GIVEN_UP_NANOS.1),
            ..state
        }
    }
}
