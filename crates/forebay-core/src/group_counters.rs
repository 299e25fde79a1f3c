//! What a group counts of its disk.

use crate::DiskTime;

/// One group: what the disk did while work waited for it, and its requests
/// measured against the latency target. Totals since the group was made, told
/// some milliseconds late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Nanoseconds in which work waited for the disk throughout.
    pub waited_nanos: u64,
    /// Disk time that the disk completed meanwhile, as the model counts it.
    pub served_meanwhile: DiskTime,
    /// Requests of the latency target's kind that met a loaded disk,
    pub measured: u64,
    /// of which so many took longer than the target.
    pub over_target: u64,
}

impl GroupCounters {
    /// Adds what another group of the same disk has counted.
    pub fn merge(&mut self, other: &Self) {
        self.waited_nanos = self.waited_nanos.wrapping_add(other.waited_nanos);
        self.served_meanwhile = self.served_meanwhile.plus(other.served_meanwhile);
        self.measured = self.measured.wrapping_add(other.measured);
        self.over_target = self.over_target.wrapping_add(other.over_target);
    }

    /// What was counted since an earlier look.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            waited_nanos: self.waited_nanos.wrapping_sub(earlier.waited_nanos),
            served_meanwhile: self.served_meanwhile.minus(earlier.served_meanwhile),
            measured: self.measured.wrapping_sub(earlier.measured),
            over_target: self.over_target.wrapping_sub(earlier.over_target),
        }
    }

    /// Thousandths of what the model says that the disk did while work waited
    /// for it; `None` where none ever did.
    pub fn speed_permille(&self) -> Option<u64> {
        let time = u128::from(self.waited_nanos) * u128::from(DiskTime::UNITS_PER_NANO);
        let speed = (u128::from(self.served_meanwhile.units()) * 1000).checked_div(time)?;
        u64::try_from(speed).ok()
    }
}
