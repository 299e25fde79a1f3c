//! How long a measurement takes, and how much it writes.

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Time and writes that a measurement may take.
///
/// SSDs wear: whatever is measured, no more than `written_max` bytes are written. Phases of
/// writes end early rather than to go beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: &'static str,
    /// The most bytes written.
    pub written_max: u64,
    /// The most data that is laid out.
    pub layout_bytes: u64,
    /// The longest that laying out takes, unless the disk is very slow.
    pub layout_seconds: f64,
    /// Bytes written to a file of each kind.
    pub file_bytes: u64,
    pub(crate) first: f64,
    pub(crate) concurrency: f64,
    pub(crate) sizes: f64,
    pub(crate) stream: f64,
    pub(crate) side: f64,
    pub(crate) round: f64,
    pub(crate) rounds_min: u32,
    pub(crate) rounds_max: u32,
    pub(crate) last: f64,
}

/// Steps of each ladder, at most.
const CONCURRENCY_STEPS: f64 = 9.0;
const SIZE_STEPS: f64 = 14.0;
const STREAM_STEPS: f64 = 11.0;
const MISALIGNED_STEPS: f64 = 5.0;
/// Phases of one length beside the ladders: two below the knee, the cache, two sizes of discards
/// with reads alone before and after each and before and after flushes.
const SIDE_READS: f64 = 9.0;
const FILE_KINDS: f64 = 4.0;
/// Alone, and beside reads.
const FLUSHES: f64 = 2.0;

impl Budget {
    /// About 30 seconds and at most 4 GiB: figures within some 10 %.
    pub const QUICK: Self = Self {
        name: "quick",
        written_max: 4 * GIB,
        layout_bytes: GIB,
        layout_seconds: 2.5,
        file_bytes: 32 * MIB,
        first: 0.4,
        concurrency: 0.3,
        sizes: 0.25,
        stream: 0.25,
        side: 0.25,
        round: 0.0,
        rounds_min: 0,
        rounds_max: 0,
        last: 1.2,
    };

    /// About 3 minutes and at most 24 GiB: figures within some 5 %.
    pub const STANDARD: Self = Self {
        name: "standard",
        written_max: 24 * GIB,
        layout_bytes: 4 * GIB,
        layout_seconds: 12.0,
        file_bytes: 256 * MIB,
        first: 1.5,
        concurrency: 1.5,
        sizes: 0.9,
        stream: 1.0,
        side: 1.0,
        round: 2.0,
        rounds_min: 5,
        rounds_max: 5,
        last: 7.0,
    };

    /// Until the disk is steady, which takes more than half an hour, and at most 512 GiB.
    pub const THOROUGH: Self = Self {
        name: "thorough",
        written_max: 512 * GIB,
        layout_bytes: 16 * GIB,
        layout_seconds: 60.0,
        file_bytes: GIB,
        first: 2.0,
        concurrency: 2.0,
        sizes: 2.0,
        stream: 2.0,
        side: 2.0,
        round: 30.0,
        rounds_min: 5,
        rounds_max: 75,
        last: 15.0,
    };

    /// The budget called `name`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::QUICK, Self::STANDARD, Self::THOROUGH].into_iter().find(|known| known.name == name)
    }

    /// The same, with data as large as the memory where the bytes allow it: what memory holds
    /// below the device (a hypervisor's, a controller's) then answers fewer reads.
    #[must_use]
    pub fn for_memory(self, memory_bytes: u64) -> Self {
        let most = (self.written_max / 4).max(self.layout_bytes);
        Self { layout_bytes: memory_bytes.clamp(self.layout_bytes, most), ..self }
    }

    /// The same, writing at most `written_max` bytes.
    #[must_use]
    pub fn with_write_limit(self, written_max: u64) -> Self {
        Self { written_max, layout_bytes: self.layout_bytes.min(written_max / 4), ..self }
    }

    /// How long it takes, about; of `thorough`, at least.
    pub fn seconds(&self) -> f64 {
        let reads = self.ladders() + self.side * SIDE_READS;
        self.layout_seconds + reads + self.write_seconds()
    }

    /// Seconds of phases that write to the data.
    pub(crate) fn write_seconds(&self) -> f64 {
        self.ladders() + self.side * (MISALIGNED_STEPS + FILE_KINDS + FLUSHES)
    }

    /// Seconds of what is measured in both directions, for one of them.
    fn ladders(&self) -> f64 {
        let rounds = self.round * f64::from(self.rounds_min.max(self.rounds_max / 2));
        self.concurrency * CONCURRENCY_STEPS
            + self.sizes * SIZE_STEPS
            + self.stream * STREAM_STEPS
            + (self.first + self.last) * 2.0
            + rounds
    }
}

/// What is left of a budget's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    bytes_left: u64,
    seconds_left: f64,
}

impl Ledger {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { bytes_left: budget.written_max, seconds_left: budget.write_seconds() }
    }

    /// The most that a phase of so many seconds may write, so that enough is left for later ones.
    pub(crate) fn share(&self, seconds: f64) -> u64 {
        let part = seconds / self.seconds_left.max(seconds).max(1e-9);
        (self.bytes_left as f64 * part.min(1.0)) as u64
    }

    /// The most that may be written at all.
    pub(crate) fn left(&self) -> u64 {
        self.bytes_left
    }

    pub(crate) fn spend(&mut self, bytes: u64, seconds: f64) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.seconds_left = (self.seconds_left - seconds).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_take_as_long_as_they_say() {
        assert!((25.0..35.0).contains(&Budget::QUICK.seconds()), "{}", Budget::QUICK.seconds());
        let standard = Budget::STANDARD.seconds();
        assert!((150.0..200.0).contains(&standard), "{standard}");
        assert_eq!(Budget::named("quick"), Some(Budget::QUICK));
        assert_eq!(Budget::named("slow"), None);
    }

    #[test]
    fn phases_share_what_is_left_and_never_exceed_it() {
        let mut ledger = Ledger { bytes_left: 1000, seconds_left: 10.0 };
        assert_eq!(ledger.share(1.0), 100);
        ledger.spend(10, 1.0);
        assert_eq!(ledger.share(1.0), 110);
        assert_eq!(ledger.share(100.0), 990);
        ledger.spend(990, 100.0);
        assert_eq!(ledger.share(1.0), 0);
    }
}
