//! The traffic of disks by the kernel's count, and its unscheduled part.

use std::fmt;

/// The traffic of the block device below a disk by the kernel's count, compared with the admitted
/// bytes.
///
/// It covers the whole disk (for an array or volume with several disks, the array or volume), since
/// the scheduler was made, and the permits of all schedulers of the process. The kernel counts the
/// bytes of a device when they are transferred. It counts the writes of this process when they
/// reach memory or any device (`/proc/self/io`). So the origin of the bytes is only a bound, which
/// is exact over a time that begins and ends without dirty pages. Journal and metadata belong to no
/// process, and bytes of another disk may be taken for this one's. A small unscheduled part is
/// healthy. If it is large, see [what a permit orders](crate#what-a-permit-orders).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceTraffic {
    /// The name of the device, such as `nvme0n1`, or the names of several. Empty if there is none.
    pub device: String,
    /// Why the traffic is unknown, if it is. Then the counters do not change.
    pub unknown_because: Option<String>,
    /// The bytes read.
    pub read: Traffic,
    /// The bytes written.
    pub written: Traffic,
    /// The bytes discarded, whose origin the kernel does not report.
    pub discarded: Traffic,
    /// Bytes that this process has written and that are not attributed to a device yet, without
    /// those of buffered writers. They may still be written unscheduled, or went elsewhere.
    pub unattributed: u64,
    /// The members of a striped array (RAID0, striped volumes); empty for other devices.
    pub members: Vec<MemberTraffic>,
}

/// The requests in flight of a member of an array, by the kernel's count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberTraffic {
    /// The name of the member, such as `nvme1n1`.
    pub member: String,
    /// The time for which requests were in flight there, summed over requests, in milliseconds,
    /// since the scheduler was made. Its rate is the mean number in flight.
    pub in_flight_ms: u64,
}

/// Bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// The bytes that the device has transferred.
    pub done: u64,
    /// The bytes of completed requests and permits.
    pub admitted: u64,
    /// The least part of `done` that was unscheduled. Permits around page-cache hits hide as many
    /// bytes for a second. For writes it includes bytes that were written back a second or more
    /// after their permits.
    pub unscheduled: u64,
    /// The part of `unscheduled` that this process caused. The rest is unknown: other processes,
    /// the kernel itself, or this process if several disks did more than was admitted.
    pub of_this_process: u64,
}

impl Traffic {
    /// The unscheduled bytes of unknown origin.
    pub const fn unknown(&self) -> u64 {
        self.unscheduled.saturating_sub(self.of_this_process)
    }

    /// The sum of the two.
    pub(crate) const fn plus(&self, other: &Self) -> Self {
        Self {
            done: self.done.wrapping_add(other.done),
            admitted: self.admitted.wrapping_add(other.admitted),
            unscheduled: self.unscheduled.wrapping_add(other.unscheduled),
            of_this_process: self.of_this_process.wrapping_add(other.of_this_process),
        }
    }

    /// The difference from `earlier`.
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

/// One line of text for people.
impl fmt::Display for DeviceTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.unknown_because {
            return write!(f, "unscheduled I/O is unknown: {why}");
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
        assert!(hidden.to_string().ends_with("unknown: its files are in memory"));
    }
}
