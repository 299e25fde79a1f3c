//! What disks did, by the kernel's count, and how much of it was unscheduled.

use std::fmt;

/// What the kernel counts of the block device below a disk, against what was admitted there.
///
/// It is that of the whole disk (of an array or volume with several disks: its own), since the
/// scheduler was made, with the permits of all schedulers of the process. The kernel counts what
/// a device has done; what this process writes it counts when memory or the device gets it
/// (`/proc/self/io`), on whatever disk. So whose the bytes were is a bound, and right over a time
/// that begins and ends without dirt: journal and metadata are nobody's, and what another disk
/// got meanwhile may be taken for this one's.
///
/// Healthy is a small part that is unscheduled. Where it is not, see
/// [what a permit orders](crate#what-a-permit-orders).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceTraffic {
    /// The name of the device, such as `nvme0n1`; of several, all; empty where none is below.
    pub device: String,
    /// Why nothing is known, if so: the counters stand still then.
    pub unknown_because: Option<String>,
    /// What was read.
    pub read: Traffic,
    /// What was written.
    pub written: Traffic,
    /// What was discarded; the kernel does not say by whom.
    pub discarded: Traffic,
    /// Bytes that this process has written and no disk has shown, without those of buffered
    /// writers: so much more of it may yet be written and pass no class, or has gone elsewhere.
    pub unattributed: u64,
    /// The members of an array whose chunks lie on each member in turn (RAID0, striped volumes);
    /// empty for other devices.
    pub members: Vec<MemberTraffic>,
}

/// What a member of an array has in flight, by the kernel's count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberTraffic {
    /// The name of the member, such as `nvme1n1`.
    pub member: String,
    /// How long requests were in flight there, summed over requests, in milliseconds, since the
    /// scheduler was made. Per millisecond of time it is the mean number in flight.
    pub in_flight_ms: u64,
}

/// Bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// What the device did.
    pub done: u64,
    /// What requests and permits that ended were for.
    pub admitted: u64,
    /// How much of `done` was unscheduled, at least: permits around what memory has hide as much
    /// for a second. Of writes that includes what was written back a second or more after the
    /// permits that it was admitted with.
    pub unscheduled: u64,
    /// Of that, what this process wrote or had read. The rest is unknown: other processes, the
    /// kernel for itself, or this process where several disks did more than was admitted.
    pub of_this_process: u64,
}

impl Traffic {
    /// How much was unscheduled and is nobody's that is known.
    pub const fn unknown(&self) -> u64 {
        self.unscheduled.saturating_sub(self.of_this_process)
    }

    /// The two together.
    pub(crate) const fn plus(&self, other: &Self) -> Self {
        Self {
            done: self.done.wrapping_add(other.done),
            admitted: self.admitted.wrapping_add(other.admitted),
            unscheduled: self.unscheduled.wrapping_add(other.unscheduled),
            of_this_process: self.of_this_process.wrapping_add(other.of_this_process),
        }
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            done: self.done.wrapping_sub(earlier.done),
            admitted: self.admitted.wrapping_sub(earlier.admitted),
            unscheduled: self.unscheduled.wrapping_sub(earlier.unscheduled),
            of_this_process: self.of_this_process.wrapping_sub(earlier.of_this_process),
        }
    }
}

/// A line for people.
impl fmt::Display for DeviceTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.unknown_because {
            return write!(f, "unscheduled I/O is not known: {why}");
        }
        let Self { device, read, written, discarded, unattributed, .. } = self;
        write!(
            f,
            "{device}: read {read}; written {written}, and up to {} MB to come; discarded {} MB",
            unattributed / 1_000_000,
            discarded.done / 1_000_000
        )
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |bytes: u64| bytes.saturating_mul(100).div_ceil(self.done.max(1));
        let (all, own) = (percent(self.unscheduled), percent(self.of_this_process));
        write!(f, "{} MB, {all} % unscheduled", self.done / 1_000_000)?;
        write!(f, " (this process {own} %, unknown {} %)", all.saturating_sub(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_says_in_a_line_what_was_unscheduled_or_why_that_is_not_known() {
        let written = Traffic {
            done: 200_000_000,
            admitted: 78_000_000,
            unscheduled: 122_000_000,
            of_this_process: 116_000_000,
        };
        let device = String::from("nvme0n1");
        let seen = DeviceTraffic { device, written, unattributed: 5_000_000, ..Default::default() };
        assert_eq!(
            seen.to_string(),
            "nvme0n1: read 0 MB, 0 % unscheduled (this process 0 %, unknown 0 %); written 200 MB, \
             61 % unscheduled (this process 58 %, unknown 3 %), and up to 5 MB to come; discarded \
             0 MB"
        );
        let unknown_because = Some(String::from("its files are in memory"));
        let hidden = DeviceTraffic { unknown_because, ..seen };
        assert!(hidden.to_string().ends_with("not known: its files are in memory"));
    }
}
