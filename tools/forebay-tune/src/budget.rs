//! Limits of the time and the writes of a measurement.

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A stream of this many bytes fills every write buffer. It is assumed that a buffer holds at most a third
/// of it, 16 GiB, and is emptied at up to two thirds of the rate at which it is filled.
pub(crate) const WATCHED_BYTES: u64 = 48 * GIB;

/// The time and the bytes that a measurement may use.
///
/// Writes wear SSDs, so no more than `written_max` bytes are ever written. Phases of writes end early
/// instead of exceeding it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: &'static str,
    /// The most bytes written.
    pub written_max: u64,
    /// The most bytes of data that are laid out.
    pub layout_bytes: u64,
    /// The longest time in seconds for laying out data, unless the disk is very slow.
    pub layout_seconds: f64,
    /// The bytes written to a file of each kind.
    pub file_bytes: u64,
    /// The most bytes written before the four rates are measured.
    pub(crate) ladder_bytes: u64,
    pub(crate) first: f64,
    pub(crate) concurrency: f64,
    pub(crate) sizes: f64,
    pub(crate) stream: f64,
    pub(crate) side: f64,
    /// The duration of a round of the four rates in seconds, and the least number of rounds.
    pub(crate) round: f64,
    pub(crate) rounds: u32,
    /// Seconds in which bytes are written in sequence to pass a buffer.
    pub watch: f64,
    /// The most seconds in which writes are streamed, on a disk that needs them to fill its buffer.
    pub watch_longest: f64,
    /// A figure with a margin above this fraction is not called sustained.
    pub(crate) margin_max: f64,
    /// The duration of a round until the disk is steady, in seconds, and the most rounds.
    pub(crate) steady_round: f64,
    pub(crate) steady_rounds: u32,
}

/// The most steps of each ladder of requests in flight or sizes.
const CONCURRENCY_STEPS: f64 = 10.0;
const SIZE_STEPS: f64 = 14.0;
/// The steps of large requests, each as long as one size, and of both mixes.
const LARGE_STEPS: f64 = 4.0;
const MIX_STEPS: f64 = 8.0;
const STREAM_STEPS: f64 = 11.0;
const MISALIGNED_STEPS: f64 = 7.0;
/// Phases of one length alongside the ladders: two below the knee, the cache, two sizes of discards
/// with reads alone before and after each and before and after flushes.
const SIDE_READS: f64 = 9.0;
const FILE_KINDS: f64 = 4.0;
/// The rounds in addition to those of large writes: small reads, large reads, and twice small writes.
const FIGURES_BESIDE: f64 = 4.0;
/// The phases of flushes: alone, and alongside reads.
const FLUSHES: f64 = 2.0;

impl Budget {
    /// Takes less than a minute and writes at most 64 GiB. Figures are within about 10 %. Often it does not
    /// find out whether write rates are sustained.
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

    /// Takes about 3 minutes, up to 5 on a slow disk, and writes at most 128 GiB. Figures are within about
    /// 5 %.
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

    /// Takes until the disk is steady, which is more than half an hour, and writes at most 1 TiB.
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

    /// The same budget with as many bytes of data as the machine has memory, if the limit allows it. Then
    /// caches below the device, of a hypervisor or controller, answer fewer reads.
    #[must_use]
    pub fn for_memory(self, memory_bytes: u64) -> Self {
        let most = (self.ladder_bytes / 4).max(self.layout_bytes);
        Self { layout_bytes: memory_bytes.clamp(self.layout_bytes, most), ..self }
    }

    /// The same budget, but with at most `written_max` bytes written.
    #[must_use]
    pub fn with_write_limit(self, written_max: u64) -> Self {
        Self {
            written_max,
            layout_bytes: self.layout_bytes.min(written_max / 4),
            ladder_bytes: self.ladder_bytes.min(written_max / 2),
            ..self
        }
    }

    /// About how many seconds it takes; for `thorough`, the least.
    pub fn seconds(&self) -> f64 {
        let reads = self.ladders() + self.side * SIDE_READS;
        let figures = self.watch + self.round * f64::from(self.rounds) * FIGURES_BESIDE;
        let steady = self.steady_round * f64::from(self.steady_rounds);
        self.layout_seconds + reads + self.write_seconds() + figures + steady
    }

    /// The seconds of phases that write to the data before the four rates are measured.
    pub(crate) fn write_seconds(&self) -> f64 {
        let mixes = self.sizes * MIX_STEPS;
        self.ladders() + mixes + self.side * (MISALIGNED_STEPS + FILE_KINDS + FLUSHES)
    }

    /// The seconds of the phases of one direction.
    fn ladders(&self) -> f64 {
        self.concurrency * CONCURRENCY_STEPS
            + self.sizes * (SIZE_STEPS + LARGE_STEPS)
            + self.stream * STREAM_STEPS
            + self.first * 2.0
    }
}

/// The bytes of a budget that are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    /// The most bytes that may be written.
    pub(crate) bytes_left: u64,
    /// The part of them for phases before the four rates are measured.
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

    /// The most bytes that a phase of this many seconds before the four rates may write, so that enough
    /// is left for later phases.
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
