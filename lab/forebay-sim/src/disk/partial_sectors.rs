//! Sectors of which a part was written, and which wait in the write buffer for the rest.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How a disk completes a sector of which it was given a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSectors {
    /// It waits until this many more bytes are written; if the rest is not among them, it is read.
    pub kept: u64,
    /// How much later the write buffer is then empty, beyond that read.
    pub cost: Duration,
}

/// The sectors that wait: at most two for each write of the bytes that they are kept for.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    /// Bytes written so far.
    written: u64,
    since: HashMap<u64, u64>,
    in_order: VecDeque<(u64, u64)>,
}

impl Incomplete {
    /// This many bytes are written.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// A part of `sector` is among them: whether the rest of it is here.
    pub(super) fn completes(&mut self, sector: u64) -> bool {
        if self.since.remove(&sector).is_some() {
            return true;
        }
        self.since.insert(sector, self.written);
        self.in_order.push_back((sector, self.written));
        false
    }

    /// A sector that has waited for as long as it is kept, if there is one.
    pub(super) fn late(&mut self, kept: u64) -> Option<u64> {
        while let Some(&(sector, since)) = self.in_order.front() {
            let waits = self.since.get(&sector) == Some(&since);
            if waits && self.written.saturating_sub(since) < kept {
                return None;
            }
            self.in_order.pop_front();
            if waits {
                self.since.remove(&sector);
                return Some(sector);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_waits_for_the_rest_of_it_and_then_no_longer() {
        let mut incomplete = Incomplete::default();
        assert!(!incomplete.completes(1) && !incomplete.completes(2));
        incomplete.write(1000);
        assert!(incomplete.completes(1), "the rest of it");
        assert_eq!(incomplete.late(1500), None);
        assert!(!incomplete.completes(3));
        incomplete.write(1000);
        assert_eq!(incomplete.late(1500), Some(2));
        assert_eq!(incomplete.late(1500), None, "the third came later");
        assert!(!incomplete.completes(1), "it was complete, and begins anew");
    }
}
