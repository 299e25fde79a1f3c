//! What the disk did in one interval, or in several.

/// The number one in millionths, the unit of ratios of rates and latencies and of their logarithms.
/// Trials compare differences of about 1 %, which are 10,000 of them.
pub(super) const MILLION: i64 = 1_000_000;
/// The least number of fresh requests of a direction for a mean latency. A mean of fewer is noise. With a
/// larger number, a direction with few fresh requests is judged by rate alone.
const LATENCIES_MIN: i64 = 4;

/// Sums over one interval, or over several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) nanos: i64,
    /// Disk time completed, in units, of reads and of everything else.
    pub(super) served: [i64; 2],
    /// Fresh requests completed, in the same order.
    pub(super) fresh: [i64; 2],
    /// The sum of their times from enqueueing to completion, in nanoseconds.
    pub(super) latency_nanos: [i64; 2],
}

impl Measured {
    pub(super) const NOTHING: Self =
        Self { nanos: 0, served: [0; 2], fresh: [0; 2], latency_nanos: [0; 2] };

    pub(super) fn each_word(&mut self, show: &mut impl FnMut(&mut i64)) {
        let Self { nanos, served, fresh, latency_nanos } = self;
        [nanos].into_iter().chain(served).chain(fresh).chain(latency_nanos).for_each(show);
    }

    /// Disk time served per time, in units per microsecond.
    pub(super) fn rate(&self) -> i64 {
        per_time(self.served[0].saturating_add(self.served[1]), self.nanos)
    }

    /// The logarithm of this rate over that of `other`, in millionths.
    pub(super) fn gain_over(&self, other: &Self) -> i64 {
        ln_ratio(self.rate(), other.rate())
    }

    /// How much more each direction gained than half of its part of the whole gain, in millionths of the rate
    /// of `other`. A direction with a negative surplus has paid for the other.
    pub(super) fn surplus_over(&self, other: &Self) -> [i64; 2] {
        let rate = |measured: &Self, direction: usize| {
            i128::from(per_time(measured.served[direction], measured.nanos))
        };
        let before = [rate(other, 0), rate(other, 1)];
        let gained = [rate(self, 0) - before[0], rate(self, 1) - before[1]];
        let total = (before[0] + before[1]).max(1);
        core::array::from_fn(|one| {
            let half = (gained[0] + gained[1]) * before[one] / total / 2;
            let surplus = (gained[one] - half) * i128::from(MILLION) / total;
            i64::try_from(surplus).unwrap_or(0).clamp(-MILLION, MILLION)
        })
    }

    /// The logarithm of the mean latency of fresh requests over that in `other`, in millionths, averaged over
    /// both directions. `None` if too few requests were fresh.
    pub(super) fn latency_over(&self, other: &Self) -> Option<i64> {
        let over = |direction: usize| {
            let ours = self.mean_latency(direction)?;
            Some(ln_ratio(ours, other.mean_latency(direction)?))
        };
        match (over(0), over(1)) {
            (Some(reads), Some(others)) => Some((reads + others) / 2),
            (one, other) => one.or(other),
        }
    }

    /// The mean latency of fresh requests of a direction, in nanoseconds; `None` if they were too few.
    pub(super) fn mean_latency(&self, direction: usize) -> Option<i64> {
        let count = self.fresh[direction];
        (count >= LATENCIES_MIN).then(|| self.latency_nanos[direction] / count)
    }

    pub(super) fn plus(self, other: &Self) -> Self {
        let add = |ours: [i64; 2], theirs: [i64; 2]| {
            [ours[0].saturating_add(theirs[0]), ours[1].saturating_add(theirs[1])]
        };
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            served: add(self.served, other.served),
            fresh: add(self.fresh, other.fresh),
            latency_nanos: add(self.latency_nanos, other.latency_nanos),
        }
    }

    /// The same, with half of the weight in sums.
    pub(super) fn halved(self) -> Self {
        let half = |numbers: [i64; 2]| numbers.map(|number| number / 2);
        Self {
            nanos: self.nanos / 2,
            served: half(self.served),
            fresh: half(self.fresh),
            latency_nanos: half(self.latency_nanos),
        }
    }
}

/// Units per microsecond.
fn per_time(units: i64, nanos: i64) -> i64 {
    let rate = i128::from(units) * 1000 / i128::from(nanos.max(1));
    i64::try_from(rate).unwrap_or(i64::MAX)
}

/// The logarithm of `a / b` in millionths, by the first term of its series in `(a - b) / (a + b)`. It is off
/// by 1 % where one is 1.4 times the other, and at most 2 million.
pub(super) fn ln_ratio(a: i64, b: i64) -> i64 {
    let sum = i128::from(a) + i128::from(b);
    if sum <= 0 {
        return 0;
    }
    let ratio = (i128::from(a) - i128::from(b)) * 2 * i128::from(MILLION) / sum;
    i64::try_from(ratio).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_logarithms() {
        for (a, b, ln) in [(1000, 1000, 0), (1400, 1000, 336_472), (1000, 1400, -336_472)] {
            assert!((ln_ratio(a, b) - ln).abs() < 4_000, "{a} over {b}: {}", ln_ratio(a, b));
        }
        assert_eq!(ln_ratio(0, 0), 0);
        assert_eq!(ln_ratio(i64::MAX, 0), 2 * MILLION);
    }

    #[test]
    fn a_latency_is_a_mean_over_directions_however_many_requests_each_has() {
        let of = |reads_nanos: i64, writes_nanos: i64| Measured {
            nanos: 1,
            fresh: [1000, 10],
            latency_nanos: [1000 * reads_nanos, 10 * writes_nanos],
            ..Measured::NOTHING
        };
        let over = of(100, 1400).latency_over(&of(100, 1000)).unwrap();
        assert_eq!(over, ln_ratio(1400, 1000) / 2);
        assert_eq!(Measured::NOTHING.latency_over(&of(1, 1)), None);
    }
}
