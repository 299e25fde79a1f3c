//! The two units of time of the scheduler: the time of the caller, and disk time.

use core::time::Duration;

/// A moment on the monotonic clock of the caller, in nanoseconds since an epoch that the caller chooses
/// (the start of the process is a good one).
///
/// The clock may step back: the scheduler then sees no time passing until the clock has passed its old
/// value. Arithmetic saturates. Moments are valid up to 2^57 ns, 4.5 years after the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The last representable moment, used as "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This moment plus `nanos` nanoseconds, at most [`Time::MAX`].
    #[must_use]
    pub const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// This moment minus `nanos` nanoseconds, at least zero.
    #[must_use]
    pub(crate) const fn minus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_sub(nanos))
    }

    /// Nanoseconds from `earlier` to this moment; zero if `earlier` is later.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// [`Time::nanos_since`] as a [`Duration`].
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

/// The length in whole nanoseconds, at most 2^64 - 1 (584 years).
pub const fn saturating_nanos(length: Duration) -> u64 {
    let nanos = length.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

/// An amount of disk time, in units of 1/64 ns (15.625 ps).
///
/// Disk time is the currency of the scheduler. A request costs the disk time that it takes, and a disk
/// serves one second of disk time per second. In this unit, the cost of one operation of a disk with
/// 100 M IOPS is exact to 0.1 %, and the sum of nine years fits. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskTime(u64);

impl DiskTime {
    /// No disk time.
    pub const ZERO: Self = Self(0);
    /// The largest amount, nine years.
    pub const MAX: Self = Self(u64::MAX);
    /// Units in one nanosecond of disk time. With fewer, costs of operations of fast disks would be
    /// rounded more. With more, 64 bits would hold less than nine years.
    pub const UNITS_PER_NANO: u64 = 64;
    /// Units in one second of disk time.
    pub const UNITS_PER_SECOND: u64 = 64_000_000_000;

    /// The amount of `units` times 1/64 ns.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// The amount in units of 1/64 ns.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// The amount of `nanos` nanoseconds, at most [`DiskTime::MAX`].
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos.saturating_mul(Self::UNITS_PER_NANO))
    }

    /// The amount in whole nanoseconds, rounded up so that a wait of that length is never too short.
    pub const fn as_nanos_ceil(self) -> u64 {
        self.0.div_ceil(Self::UNITS_PER_NANO)
    }

    /// The sum, at most [`DiskTime::MAX`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_saturate() {
        assert_eq!(saturating_nanos(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(saturating_nanos(Duration::MAX), u64::MAX);
    }
}
