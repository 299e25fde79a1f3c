//! Large requests go to the disk in parts, and come back as one.

/// The parts of a request: all of `part_max` bytes but the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    at: u64,
    end: u64,
    part_max: u64,
}

impl Parts {
    /// Splits `len` bytes into parts of at most `part_max` bytes (at least 1).
    pub fn new(len: u64, part_max: u64) -> Self {
        Self { at: 0, end: len, part_max: part_max.max(1) }
    }
}

impl Iterator for Parts {
    /// Distance from the start of the request, and length, in bytes.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let at = self.at;
        let len = (self.end - at).min(self.part_max);
        self.at += len;
        (len > 0).then_some((at, len))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from((self.end - self.at).div_ceil(self.part_max));
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// The outcome of a request whose parts complete in any order: the bytes of
/// the longest prefix that succeeded without a gap. An error shows only where
/// that prefix is empty. Takes the same memory however many parts there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join<E> {
    parts_left: u64,
    /// Bytes before the first part that fell short, that part's bytes included.
    prefix: u64,
    /// Where the first part that fell short begins.
    short_at: u64,
    error: Option<E>,
}

impl<E> Join<E> {
    /// Waits for all of `parts`.
    pub fn new(parts: &Parts) -> Self {
        let parts_left = (parts.end - parts.at).div_ceil(parts.part_max);
        Self { parts_left, prefix: parts.end, short_at: parts.end, error: None }
    }

    /// Takes the outcome of the part at `at` of `len` bytes. Returns whether
    /// it was the last; more outcomes than parts are ignored.
    pub fn part_done(&mut self, at: u64, len: u64, outcome: Result<u64, E>) -> bool {
        let done = match &outcome {
            Ok(bytes) => (*bytes).min(len),
            Err(_) => 0,
        };
        if done < len && at < self.short_at {
            (self.short_at, self.prefix) = (at, at + done);
            self.error = outcome.err();
        }
        self.parts_left = self.parts_left.saturating_sub(1);
        self.parts_left == 0
    }

    /// The outcome of the whole request, once every part is done; an error is
    /// told once.
    ///
    /// # Errors
    /// The error of the first part, if not a single byte came before it.
    pub fn finish(&mut self) -> Result<u64, E> {
        match self.error.take() {
            Some(error) if self.prefix == 0 => Err(error),
            _ => Ok(self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn parts_cover_the_request() {
        assert_eq!(Parts::new(24, 12).collect::<Vec<_>>(), [(0, 12), (12, 12)]);
        assert_eq!(Parts::new(33, 13).collect::<Vec<_>>(), [(0, 13), (13, 13), (26, 7)]);
        assert_eq!(Parts::new(17, 21).collect::<Vec<_>>(), [(0, 17)]);
        assert_eq!(Parts::new(0, 21).count(), 0);
    }

    #[test]
    fn seastars_three_outcomes() {
        // all whole; the second part halved; the second part failed
        for (second, expected) in [(Ok(100), 300), (Ok(50), 150), (Err("EIO"), 100)] {
            let parts = Parts::new(300, 100);
            let mut join = Join::new(&parts);
            assert!(!join.part_done(200, 100, Ok(100)));
            assert!(!join.part_done(100, 100, second));
            assert!(join.part_done(0, 100, Ok(100)));
            assert_eq!(join.finish(), Ok(expected));
        }
        let mut join = Join::new(&Parts::new(300, 100));
        join.part_done(100, 100, Err("late"));
        join.part_done(0, 100, Err("first"));
        assert_eq!(join.finish(), Err("first"));
    }

    proptest! {
        #[test]
        fn the_prefix_never_depends_on_the_order(
            outcomes in prop::collection::vec((0u64..=10, prop::bool::ANY), 1..20),
            seed in any::<u64>(),
        ) {
            let parts = Parts::new(outcomes.len() as u64 * 10, 10);
            let outcome = |index: usize| match outcomes[index] {
                (bytes, true) => Ok(bytes),
                (_, false) => Err(index),
            };
            let mut order: Vec<usize> = (0..outcomes.len()).collect();
            order.sort_by_key(|&index| (index as u64 + 1).wrapping_mul(seed | 1));
            let mut join = Join::new(&parts);
            for &index in &order {
                join.part_done(index as u64 * 10, 10, outcome(index));
            }
            let mut expected = 0;
            let mut error = None;
            for index in 0..outcomes.len() {
                match outcome(index) {
                    Ok(10) => expected += 10,
                    Ok(bytes) => { expected += bytes; break }
                    Err(index) => { error = Some(index); break }
                }
            }
            let expected = match error {
                Some(error) if expected == 0 => Err(error),
                _ => Ok(expected),
            };
            prop_assert_eq!(join.finish(), expected);
        }
    }
}
