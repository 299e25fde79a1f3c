//! What the kernel counts of a disk.

use crate::{DeviceNumber, Machine};

/// The unit of `/sys`, whatever the sectors of the disk are.
const SECTOR: u64 = 512;
/// More than a disk does between two looks.
const SECTORS_MAX: u64 = 1 << 31;
/// Milliseconds of requests: more than a disk gathers between two looks.
const IN_FLIGHT_MS_MAX: u64 = 1 << 31;

/// How much a disk has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStat {
    /// Read, written and discarded, in units of 512 bytes.
    sectors: [u64; 3],
    operations: u64,
    /// The time that requests were in flight, summed over requests, in milliseconds.
    in_flight_ms: u64,
}

impl DiskStat {
    /// What `/sys` says of the disk of this number; `None` when it is gone.
    pub fn of(machine: &Machine, disk: DeviceNumber) -> Option<Self> {
        Self::parse(&machine.text(format!("sys/dev/block/{disk}/stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> =
            text.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // Linux before 4.18 counts no discards
        let discards = fields.get(13).copied().unwrap_or(0);
        Some(Self {
            sectors: [*fields.get(2)?, *fields.get(6)?, discards],
            operations: fields.first()?.saturating_add(*fields.get(4)?),
            in_flight_ms: fields.get(10).copied().unwrap_or(0),
        })
    }

    /// Reads and writes that it has done, of all that use it.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// How long requests were in flight since `earlier`, summed over requests, in milliseconds. The
    /// kernel counts 2^32 of them and begins again.
    pub fn in_flight_ms_since(&self, earlier: &Self) -> u64 {
        let (now, then) = (self.in_flight_ms, earlier.in_flight_ms);
        now.checked_sub(then).unwrap_or_else(|| {
            let (Ok(now), Ok(then)) = (u32::try_from(now), u32::try_from(then)) else { return 0 };
            Some(u64::from(now.wrapping_sub(then))).filter(|ms| *ms < IN_FLIGHT_MS_MAX).unwrap_or(0)
        })
    }

    /// The bytes read, written and discarded since `earlier`. A kernel of 32 bits counts 2^32
    /// sectors and begins again; a disk that counts less otherwise is another one in its place, of
    /// which nothing is known yet.
    pub fn since(&self, earlier: &Self) -> [u64; 3] {
        let grown = |of: usize| {
            let (now, then) = (self.sectors[of], earlier.sectors[of]);
            let grown = now.checked_sub(then).or_else(|| {
                let (now, then) = (u32::try_from(now).ok()?, u32::try_from(then).ok()?);
                Some(u64::from(now.wrapping_sub(then))).filter(|grown| *grown < SECTORS_MAX)
            });
            grown.map(|sectors| sectors.saturating_mul(SECTOR))
        };
        match [grown(0), grown(1), grown(2)] {
            [Some(read), Some(written), Some(discarded)] => [read, written, discarded],
            _ => [0; 3],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(read: u64, written: u64, discarded: u64) -> DiskStat {
        let text = format!("7 1 {read} 9 8 2 {written} 9 0 9 9 5 0 {discarded} 9 1 1");
        DiskStat::parse(&text).unwrap()
    }

    #[test]
    fn bytes_are_counted_on_where_the_counters_of_32_bits_begin_again() {
        let end = (1 << 32) - 8;
        assert_eq!(stat(20, 40, 60).since(&stat(10, 40, 0)), [5_120, 0, 30_720]);
        assert_eq!(stat(8, 100, 0).since(&stat(end, 100, 0)), [16 * 512, 0, 0]);
        assert_eq!(stat(0, 0, 0).since(&stat(1_000, 0, 0)), [0; 3], "another disk");
        let large = 1 << 40;
        assert_eq!(stat(1, large, 0).since(&stat(1, large + 5, 0)), [0; 3], "another disk");
    }

    #[test]
    fn time_in_flight_is_counted_on_where_the_counter_begins_again() {
        let stat = |in_flight_ms| DiskStat { in_flight_ms, ..DiskStat::default() };
        assert_eq!(DiskStat::parse("0 0 0 0 0 0 0 0 3 9 70").unwrap(), stat(70));
        assert_eq!(stat(70).in_flight_ms_since(&stat(50)), 20);
        assert_eq!(stat(5).in_flight_ms_since(&stat((1 << 32) - 5)), 10);
        assert_eq!(stat(5).in_flight_ms_since(&stat(1_000)), 0, "another disk");
        assert_eq!(stat(5).in_flight_ms_since(&stat(1 << 40)), 0, "another disk");
    }

    #[test]
    fn kernels_that_count_no_discards_and_lines_that_are_none() {
        let old = DiskStat::parse("  1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(old.since(&DiskStat::default()), [3 * 512, 7 * 512, 0]);
        assert_eq!(old.operations(), 1 + 5);
        for text in ["", "1 2 3", "one two three", "-1 -2 -3 -4 -5 -6 -7 -8"] {
            assert_eq!(DiskStat::parse(text), None, "{text}");
        }
    }
}
