//! How long a measurement takes, and how much it writes.

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// No buffer is taken to hold more than a third of it, 16 GiB: a stream of this many bytes fills
/// one that is emptied at up to two thirds of the rate at which it is filled.
pub(crate) const WATCHED_BYTES: u64 = 48 * GIB;

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
    /// The most bytes written before the figures are taken.
    pub(crate) ladder_bytes: u64,
    pub(crate) first: f64,
    pub(crate) concurrency: f64,
    pub(crate) sizes: f64,
    pub(crate) stream: f64,
    pub(crate) side: f64,
    /// A round of the figures, and how many there are at least.
    pub(crate) round: f64,
    pub(crate) rounds: u32,
    /// Seconds in which bytes are written in sequence to pass a buffer.
    pub watch: f64,
    /// The same at the most, on a disk that needs so long to pass one.
    pub watch_longest: f64,
    /// A figure that is known no better than to this part is not called lasting.
    pub(crate) margin_max: f64,
    /// A round until the disk is steady, and the most of them.
    pub(crate) steady_round: f64,
    pub(crate) steady_rounds: u32,
}

/// Steps of each ladder, at most.
const CONCURRENCY_STEPS: f64 = 10.0;
const SIZE_STEPS: f64 = 14.0;
/// Of large requests, which last as long as a size, and of both mixes.
const LARGE_STEPS: f64 = 4.0;
const MIX_STEPS: f64 = 8.0;
const STREAM_STEPS: f64 = 11.0;
const MISALIGNED_STEPS: f64 = 7.0;
/// Phases of one length alongside the ladders: two below the knee, the cache, two sizes of discards
/// with reads alone before and after each and before and after flushes.
const SIDE_READS: f64 = 9.0;
const FILE_KINDS: f64 = 4.0;
/// Rounds of small reads, large reads and twice of small writes, alongside those of large writes.
const FIGURES_BESIDE: f64 = 4.0;
/// Alone, and alongside reads.
const FLUSHES: f64 = 2.0;

impl Budget {
    /// Less than a minute, and at most 64 GiB: figures within some 10 %. Often it does not find out
    /// whether writes last.
    pub const QUICK: Self = Self {
        name: "quick",
        written_max: 64 * GIB,
        layout_bytes: GIB,
        layout_seconds: 1.5,
        file_bytes: 32 * MIB,
        ladder_bytes: 6 * GIB,
        first: 0.3,
        concurrency: 0.2,
        sizes: 0.15,
        stream: 0.15,
        side: 0.2,
        round: 0.5,
        rounds: 5,
        watch: 24.0,
        watch_longest: 36.0,
        margin_max: 0.1,
        steady_round: 0.0,
        steady_rounds: 0,
    };

    /// About 3 minutes, up to 5 on a slow disk, and at most 128 GiB: figures within some 5 %.
    pub const STANDARD: Self = Self {
        name: "standard",
        written_max: 128 * GIB,
        layout_bytes: 4 * GIB,
        layout_seconds: 10.0,
        file_bytes: 256 * MIB,
        ladder_bytes: 24 * GIB,
        first: 1.0,
        concurrency: 1.2,
        sizes: 0.7,
        stream: 0.8,
        side: 0.9,
        round: 2.0,
        rounds: 5,
        watch: 60.0,
        watch_longest: 180.0,
        margin_max: 0.05,
        steady_round: 0.0,
        steady_rounds: 0,
    };

    /// Until the disk is steady, which takes more than half an hour, and at most 1 TiB.
    pub const THOROUGH: Self = Self {
        name: "thorough",
        written_max: 1024 * GIB,
        layout_bytes: 16 * GIB,
        layout_seconds: 60.0,
        file_bytes: GIB,
        ladder_bytes: 384 * GIB,
        first: 2.0,
        concurrency: 2.0,
        sizes: 2.0,
        stream: 2.0,
        side: 2.0,
        round: 5.0,
        rounds: 5,
        watch: 300.0,
        watch_longest: 600.0,
        margin_max: 0.05,
        steady_round: 30.0,
        steady_rounds: 75,
    };

    /// The budget called `name`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::QUICK, Self::STANDARD, Self::THOROUGH].into_iter().find(|known| known.name == name)
    }

    /// The same, with data as large as the memory where the bytes allow it: what memory holds
    /// below the device (a hypervisor's, a controller's) then answers fewer reads.
    #[must_use]
    pub fn for_memory(self, memory_bytes: u64) -> Self {
        let most = (self.ladder_bytes / 4).max(self.layout_bytes);
        Self { layout_bytes: memory_bytes.clamp(self.layout_bytes, most), ..self }
    }

    /// The same, writing at most `written_max` bytes.
    #[must_use]
    pub fn with_write_limit(self, written_max: u64) -> Self {
        Self {
            written_max,
            layout_bytes: self.layout_bytes.min(written_max / 4),
            ladder_bytes: self.ladder_bytes.min(written_max / 2),
            ..self
        }
    }

    /// How long it takes, about; of `thorough`, at least.
    pub fn seconds(&self) -> f64 {
        let reads = self.ladders() + self.side * SIDE_READS;
        let figures = self.watch + self.round * f64::from(self.rounds) * FIGURES_BESIDE;
        let steady = self.steady_round * f64::from(self.steady_rounds);
        self.layout_seconds + reads + self.write_seconds() + figures + steady
    }

    /// Seconds of phases that write to the data before the figures are taken.
    pub(crate) fn write_seconds(&self) -> f64 {
        let mixes = self.sizes * MIX_STEPS;
        self.ladders() + mixes + self.side * (MISALIGNED_STEPS + FILE_KINDS + FLUSHES)
    }

    /// Seconds of what is measured in both directions, for one of them.
    fn ladders(&self) -> f64 {
        self.concurrency * CONCURRENCY_STEPS
            + self.sizes * (SIZE_STEPS + LARGE_STEPS)
            + self.stream * STREAM_STEPS
            + self.first * 2.0
    }
}

/// What is left of a budget's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    /// The most that may be written at all.
    pub(crate) bytes_left: u64,
    /// Of these, for phases before the figures are taken.
    pub(crate) ladder_left: u64,
    seconds_left: f64,
}

impl Ledger {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            bytes_left: budget.written_max,
            ladder_left: budget.ladder_bytes,
            seconds_left: budget.write_seconds(),
        }
    }

    /// The most that a phase of this many seconds before the figures may write, so that enough is
    /// left for later ones.
    pub(crate) fn share(&self, seconds: f64) -> u64 {
        let part = seconds / self.seconds_left.max(seconds).max(1e-9);
        (self.ladder_left as f64 * part.min(1.0)) as u64
    }

    pub(crate) fn spend(&mut self, bytes: u64, seconds: f64) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.ladder_left = self.ladder_left.saturating_sub(bytes);
        self.seconds_left = (self.seconds_left - seconds).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_take_as_long_as_they_say() {
        assert!((25.0..60.0).contains(&Budget::QUICK.seconds()), "{}", Budget::QUICK.seconds());
        let standard = Budget::STANDARD.seconds();
        assert!((150.0..210.0).contains(&standard), "{standard}");
        assert_eq!(Budget::named("quick"), Some(Budget::QUICK));
        assert_eq!(Budget::named("slow"), None);
    }

    #[test]
    fn phases_share_what_is_left_and_never_exceed_it() {
        let mut ledger = Ledger { bytes_left: 5000, ladder_left: 1000, seconds_left: 10.0 };
        assert_eq!(ledger.share(1.0), 100);
        ledger.spend(10, 1.0);
        assert_eq!(ledger.share(1.0), 110);
        assert_eq!(ledger.share(100.0), 990);
        ledger.spend(990, 100.0);
        assert_eq!(ledger.share(1.0), 0);
    }
}
