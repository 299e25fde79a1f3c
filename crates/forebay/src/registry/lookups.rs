//! A cache of the disks of mounts.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_block::{DeviceNumber, FileStat};
use forebay_core::Time;

use super::disk::DiskRecord;

/// The time for which a result is cached, in nanoseconds. Numbers of mounts are reused, and the
/// devices below a mount can change.
const BELIEVED_NANOS: u64 = 1_000_000_000;
/// The most mounts in the cache.
const MOUNTS_MAX: usize = 1024;

/// The results, by the number of the mount and that of the file system.
#[derive(Debug, Default)]
pub(crate) struct Lookups(HashMap<(u64, DeviceNumber), Found>);

#[derive(Debug)]
struct Found {
    /// `None` if no entry covers the mount.
    disk: Option<Arc<DiskRecord>>,
    at: Time,
}

impl Lookups {
    /// The cached result for a file with this status. `None` if it has to be looked up.
    pub(crate) fn get(&self, stat: &FileStat, now: Time) -> Option<Option<&Arc<DiskRecord>>> {
        let found = self.0.get(&(stat.mount?, stat.number))?;
        (now.nanos_since(found.at) < BELIEVED_NANOS).then_some(found.disk.as_ref())
    }

    /// Caches the result of a look-up at `now`.
    pub(crate) fn add(&mut self, stat: &FileStat, now: Time, disk: Option<&Arc<DiskRecord>>) {
        let Some(mount) = stat.mount else { return };
        if self.0.len() >= MOUNTS_MAX {
            self.0.clear();
        }
        self.0.insert((mount, stat.number), Found { disk: disk.cloned(), at: now });
    }

    /// Clears the cache, because the entries have changed.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(mount: u64) -> FileStat {
        FileStat {
            number: DeviceNumber { major: 0, minor: 7 },
            is_device: false,
            mount: Some(mount),
        }
    }

    #[test]
    fn look_ups_are_cached_for_a_second_and_a_bounded_number_of_mounts() {
        let mut lookups = Lookups::default();
        let at = |nanos| Time::from_nanos(5 + nanos);
        lookups.add(&stat(1), at(0), None);
        assert!(lookups.get(&stat(1), at(BELIEVED_NANOS - 1)).is_some());
        assert!(lookups.get(&stat(1), at(BELIEVED_NANOS)).is_none());
        assert!(lookups.get(&stat(2), at(0)).is_none());
        let elsewhere = FileStat { number: DeviceNumber { major: 0, minor: 8 }, ..stat(1) };
        assert!(lookups.get(&elsewhere, at(0)).is_none());
        for mount in 0..10_000 {
            lookups.add(&stat(mount), at(0), None);
            assert!(lookups.0.len() <= MOUNTS_MAX);
            assert!(lookups.get(&stat(mount), at(0)).is_some());
        }
        lookups.add(&FileStat { mount: None, ..stat(1) }, at(0), None);
        assert!(lookups.get(&FileStat { mount: None, ..stat(1) }, at(0)).is_none());
        lookups.forget();
        assert!(lookups.get(&stat(9_999), at(0)).is_none());
    }
}
