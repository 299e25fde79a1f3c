//! The transferred bytes of a disk against the admitted bytes, and the origin of the difference.

use crate::metrics::Traffic;

/// The bytes of one direction of a disk.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) total: Traffic,
    /// Recently admitted bytes that the disk has not transferred yet.
    recent: u64,
    admitted_since_tick: u64,
    /// All admitted bytes that the disk has not transferred, however old.
    owed: u64,
}

impl Ledger {
    /// Counts `done` bytes of the disk while permits for `admitted` bytes ended. At most `late_max`
    /// of the former may belong to older permits. Returns the number of unscheduled bytes.
    ///
    /// These are bytes beyond those of permits. They also include bytes of permits that ended more
    /// than a tick earlier, because these permits were around writes to memory.
    pub(super) fn add(&mut self, done: u64, admitted: u64, late_max: u64) -> u64 {
        let permitted = self.recent.saturating_add(admitted);
        let beyond = done.saturating_sub(permitted);
        let late = done.min(late_max).min(self.owed);
        self.recent = permitted.saturating_sub(done);
        self.admitted_since_tick = self.admitted_since_tick.saturating_add(admitted);
        self.owed = self.owed.saturating_add(admitted).saturating_sub(done);
        let unscheduled = beyond.max(late);
        let counted = Traffic { done, admitted, unscheduled, of_this_process: 0 };
        self.total = self.total.plus(&counted);
        unscheduled
    }

    /// Counts unscheduled bytes as those of this process.
    pub(super) fn add_own(&mut self, bytes: u64) {
        self.total = self.total.plus(&Traffic { of_this_process: bytes, ..Traffic::default() });
    }

    /// Adds the counts of another ledger.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.total = self.total.plus(&other.total);
        self.recent = self.recent.saturating_add(other.recent);
        self.admitted_since_tick += other.admitted_since_tick;
        self.owed = self.owed.saturating_add(other.owed);
    }

    /// Ends a second. Bytes that the disk has not transferred by then may be in memory, up to
    /// `owed_max`.
    pub(super) fn tick(&mut self, owed_max: u64) {
        self.recent = self.recent.min(std::mem::take(&mut self.admitted_since_tick));
        self.owed = self.owed.min(owed_max);
    }
}

/// Bytes that this process had read, or wrote to memory or directly, and that no disk has
/// transferred.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    bytes: u64,
    /// The part of these that is older than a tick.
    old: u64,
    added_since_tick: u64,
}

impl Outstanding {
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.added_since_tick = self.added_since_tick.saturating_add(bytes);
    }

    /// Subtracts bytes that a disk has transferred, the oldest first.
    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.old = self.old.saturating_sub(bytes);
    }

    /// Ends a second. At most `old_max` older bytes may be in memory. Others were transferred
    /// elsewhere, or never will be.
    pub(super) fn tick(&mut self, old_max: u64) {
        let recent = std::mem::take(&mut self.added_since_tick).min(self.bytes);
        self.old = (self.bytes - recent).min(old_max);
        self.bytes = self.old + recent;
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn old(&self) -> u64 {
        self.old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn io_just_after_its_permit_is_counted_and_a_cached_read_hides_nothing() {
        let mut ledger = Ledger::default();
        // The disk is ahead of the permits in it, or behind them, but by no more than their bytes.
        let (mut done, mut admitted) = (0, 0);
        for second in 0..100 {
            let in_disk = (second * 7 % 5) * MIB;
            let asked = 100 * (second + 1) * MIB;
            ledger.add(asked + in_disk - done, asked - admitted, 0);
            (done, admitted) = (asked + in_disk, asked);
            ledger.tick(0);
        }
        assert!(ledger.total.unscheduled <= 4 * MIB, "{:?}", ledger.total);
        // Permits around reads from memory, and then reads by others.
        let before = ledger.total.unscheduled;
        for _ in 0..10 {
            ledger.add(0, 100 * MIB, 0);
            ledger.tick(0);
        }
        ledger.tick(0);
        ledger.add(50 * MIB, 0, 0);
        assert_eq!(ledger.total.unscheduled - before, 50 * MIB);
    }

    #[test]
    fn permits_around_writes_to_memory_cover_nothing_of_the_steady_writeback() {
        let (mut ledger, mut own) = (Ledger::default(), Outstanding::default());
        for second in 0..60 {
            // The writes of five seconds are dirty.
            let done = if second < 5 { 0 } else { 40 * MIB };
            own.add(40 * MIB);
            let unscheduled = ledger.add(done, 40 * MIB, done.min(own.old()));
            own.take(done);
            let expected = if second < 5 { 0 } else { done };
            assert_eq!(unscheduled, expected, "{second}");
            own.tick(1 << 40);
            ledger.tick(own.bytes());
        }
    }

    #[test]
    fn a_permit_that_lasts_to_its_flush_covers_what_it_writes_back() {
        let (mut ledger, mut own) = (Ledger::default(), Outstanding::default());
        for _ in 0..60 {
            own.add(40 * MIB);
            assert_eq!(ledger.add(40 * MIB, 40 * MIB, 40 * MIB.min(own.old())), 0);
            own.take(40 * MIB);
            own.tick(1 << 40);
            ledger.tick(own.bytes());
        }
    }

    #[test]
    fn direct_writes_with_pending_dirty_pages_are_covered() {
        let (mut ledger, mut own) = (Ledger::default(), Outstanding::default());
        own.add(500 * MIB);
        for _ in 0..30 {
            own.add(100 * MIB);
            // Nothing is written back.
            assert_eq!(ledger.add(100 * MIB, 100 * MIB, 0), 0);
            own.take(100 * MIB);
            own.tick(500 * MIB);
            ledger.tick(own.bytes());
        }
        let unscheduled = ledger.add(600 * MIB, 100 * MIB, 500 * MIB);
        assert_eq!(unscheduled, 500 * MIB);
    }

    #[test]
    fn permits_for_more_than_is_written_do_not_make_what_is_direct_late() {
        let (mut ledger, mut own) = (Ledger::default(), Outstanding::default());
        for _ in 0..60 {
            own.add(100 * MIB);
            // Another process has many dirty bytes, which are written back.
            assert_eq!(ledger.add(100 * MIB, 128 * MIB, own.old().min(100 * MIB)), 0);
            own.take(100 * MIB);
            own.tick(1 << 40);
            ledger.tick(own.bytes());
        }
    }

    #[test]
    fn writes_to_other_devices_are_forgotten() {
        let mut own = Outstanding::default();
        own.add(10 * MIB);
        own.tick(MIB);
        assert_eq!((own.bytes(), own.old()), (10 * MIB, 0), "it may be on its way");
        own.tick(MIB);
        assert_eq!((own.bytes(), own.old()), (MIB, MIB), "no more is dirty anywhere");
        own.take(2 * MIB);
        own.tick(0);
        assert_eq!((own.bytes(), own.old()), (0, 0));
    }
}
