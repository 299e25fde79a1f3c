//! How much of a file to discard in one step.

use crate::{DiskModel, DiskTime};

/// Part of an extent that is discarded by itself, in bytes (64 KiB): a step takes a multiple of it,
/// unless less is left. It is a multiple of the blocks of file systems, which discard whole blocks.
pub const DISCARD_PART: u64 = 64 << 10;
/// Time whose rate bounds a step, in nanoseconds (80 ms), unless something else is asked for. A
/// longer time makes larger bursts of discards; a shorter one makes more commands for the same
/// bytes.
pub const DISCARD_STEP_NANOS: u64 = 80_000_000;
/// The most bytes of a step (32 MiB), whatever the disk and the rate. It bounds the burst where no
/// rate is known.
const BYTES_MAX: u64 = 32 << 20;
/// The most extents of a step, each of which is a command, whatever the disk and the rate. It
/// bounds the burst where no rate is known.
const COMMANDS_MAX: u32 = 64;
/// The bytes of a step at a rate are a multiple of this (4 KiB), and at least this. File systems
/// discard whole blocks.
const BLOCK: u64 = 4096;

/// The most that a step of a deletion may discard. A file is given back to the disk in steps that
/// each cost little, so that others have their turns in between; and what a step costs depends on
/// its bytes and on the extents that they are in, each of which is a command of its own.
///
/// ```
/// use forebay_core::{CostCurve, DiskModel, DiskTime, Step, StepMax};
///
/// # fn main() -> Result<(), forebay_core::CostError> {
/// // 20 us for a command and 5 ms for a GiB
/// let model = DiskModel::unmeasured().with_discard(CostCurve::sum(50_000, 200 << 30)?);
/// let cost = DiskTime::from_nanos(500_000);
/// let most = StepMax { cost, bytes: 64 << 20, commands: 64 };
/// // of a file in extents of 1 MiB: 20 us and 4.9 us for each
/// assert_eq!(most.step(&model, [1 << 20; 100]), Step { bytes: 20 << 20, commands: 20 });
/// // of a file in one piece
/// assert_eq!(most.step(&model, [1 << 30]), Step { bytes: 64 << 20, commands: 1 });
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMax {
    /// Disk time that it costs.
    pub cost: DiskTime,
    /// Its bytes, whatever they cost.
    pub bytes: u64,
    /// The extents that they are in.
    pub commands: u32,
}

/// What to discard in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes, from the first of the extents on.
    pub bytes: u64,
    /// The extents that they are in: this many commands the disk gets. To be asked of the scheduler
    /// with [`Op::commands`](crate::Op::commands).
    pub commands: u32,
}

impl Step {
    /// Whether nothing is left to discard.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// What it costs on a disk.
    pub fn cost(&self, model: &DiskModel) -> DiskTime {
        model.discard_cost(self.bytes, self.commands)
    }
}

impl StepMax {
    /// What may cost so much, and is no more than these rates per second have in `nanos`: without a
    /// rate 32 MiB, and 64 extents, and at any rate a block and one extent.
    pub fn at_rate(cost: DiskTime, nanos: u64, bytes: Option<u64>, commands: Option<u64>) -> Self {
        let within = |rate: u64| {
            let part = u128::from(rate) * u128::from(nanos) / 1_000_000_000;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let bytes = bytes.map_or(BYTES_MAX, within).min(BYTES_MAX);
        let commands = commands.map_or_else(|| u64::from(COMMANDS_MAX), within);
        Self {
            cost,
            bytes: (bytes - bytes % BLOCK).max(BLOCK),
            commands: u32::try_from(commands).unwrap_or(COMMANDS_MAX).clamp(1, COMMANDS_MAX),
        }
    }

    /// Whether a discard of `bytes` in this many commands is not too much.
    pub fn allows(&self, model: &DiskModel, bytes: u64, commands: u32) -> bool {
        bytes <= self.bytes
            && commands <= self.commands
            && model.discard_cost(bytes, commands) <= self.cost
    }

    /// The first step of what is in extents of these lengths, in the order in which they are to be
    /// discarded: from the last of a file. Reads one entry more than it takes.
    ///
    /// It takes whole extents while they are not too much together. Of a first one that is too much
    /// by itself it takes the largest part that is not, a multiple of [`DISCARD_PART`]; and that at
    /// least, so that each step comes closer to the end. Extents without bytes are passed over.
    pub fn step(&self, model: &DiskModel, extents: impl IntoIterator<Item = u64>) -> Step {
        let mut extents = extents.into_iter().filter(|&len| len > 0);
        let Some(first) = extents.next() else { return Step::default() };
        let mut step = Step { bytes: self.part(model, first), commands: 1 };
        if step.bytes < first {
            return step;
        }
        for len in extents {
            let (bytes, commands) = (step.bytes.saturating_add(len), step.commands + 1);
            if !self.allows(model, bytes, commands) {
                break;
            }
            step = Step { bytes, commands };
        }
        step
    }

    /// Of an extent of `len` bytes, the largest part that is not too much.
    fn part(&self, model: &DiskModel, len: u64) -> u64 {
        if self.allows(model, len, 1) {
            return len;
        }
        // this many parts are not too much, and this many are
        let (mut fit, mut exceed) = (1, len.div_ceil(DISCARD_PART).max(1));
        while exceed - fit > 1 {
            let parts = fit + (exceed - fit) / 2;
            if self.allows(model, parts.saturating_mul(DISCARD_PART), 1) {
                fit = parts;
            } else {
                exceed = parts;
            }
        }
        fit.saturating_mul(DISCARD_PART).min(len)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::{CostCurve, DiskRates};

    fn model(commands: u64, bandwidth: u64) -> DiskModel {
        DiskModel::unmeasured().with_discard(CostCurve::sum(commands, bandwidth).unwrap())
    }

    #[test]
    fn a_step_is_what_the_rates_have_in_its_time() {
        let cost = DiskTime::from_nanos(500_000);
        let at = |bytes, commands| StepMax::at_rate(cost, 80_000_000, bytes, commands);
        let whole = StepMax { cost, bytes: 32 << 20, commands: 64 };
        assert_eq!(at(None, None), whole);
        assert_eq!(at(Some(u64::MAX), Some(u64::MAX)), whole);
        let part = StepMax { cost, bytes: 2 << 20, commands: 40 };
        assert_eq!(at(Some(25 << 20), Some(500)), part);
        assert_eq!(at(Some(1), Some(1)), StepMax { cost, bytes: 4096, commands: 1 });
    }

    #[test]
    fn a_disk_of_which_only_its_rates_are_known_has_steps_too() {
        // about those of the disk of DISCARD_SPEEDUP
        let model = DiskModel::from_rates(&DiskRates {
            read_iops: 400_000,
            write_iops: 180_000,
            read_bandwidth: 1_900_000_000,
            write_bandwidth: 700_000_000,
        });
        let (model, most) = (model.unwrap(), DiskTime::from_nanos(500_000));
        let most = StepMax { cost: most, bytes: 1 << 30, commands: u32::MAX };
        let whole = most.step(&model, [1 << 30]);
        assert!((32 << 20..128 << 20).contains(&whole.bytes), "{whole:?}");
        let small = most.step(&model, [64 << 10; 10_000]);
        assert!((50..100).contains(&small.commands), "{small:?}");
    }

    proptest! {
        #[test]
        fn steps_are_as_large_as_they_may_be_and_come_to_an_end(
            (commands, bandwidth) in (1u64..1_000_000, 1u64 << 20..1_000_000_000_000),
            (micros, bytes, of_step) in (0u64..10_000, 0u64..1 << 30, 1u32..100),
            lens in prop::collection::vec(prop_oneof![0u64..1 << 20, 0u64..1 << 32], 0..50),
        ) {
            let model = model(commands, bandwidth);
            let cost = DiskTime::from_nanos(micros * 1000);
            let most = StepMax { cost, bytes, commands: of_step };
            let mut left: Vec<u64> = lens.iter().copied().rev().collect();
            for _ in 0..10_000 {
                let ahead: Vec<u64> = left.iter().copied().rev().filter(|&len| len > 0).collect();
                let step = most.step(&model, ahead.iter().copied());
                if ahead.is_empty() {
                    prop_assert!(step.is_empty());
                    break;
                }
                let least = step.bytes == ahead[0].min(DISCARD_PART) && step.commands == 1;
                prop_assert!(least || most.allows(&model, step.bytes, step.commands), "{step:?}");
                prop_assert!(!step.is_empty());
                // one more extent, or one more part of the first, would be too much
                if step.bytes < ahead[0] {
                    prop_assert_eq!(step.bytes % DISCARD_PART, 0);
                    let more = step.bytes + DISCARD_PART;
                    prop_assert!(more >= ahead[0] || !most.allows(&model, more, 1));
                } else if let Some(next) = ahead.get(step.commands as usize) {
                    prop_assert!(!most.allows(&model, step.bytes + next, step.commands + 1));
                }
                let mut bytes = step.bytes;
                while bytes > 0 {
                    let Some(last) = left.last_mut() else { break };
                    let part = bytes.min(*last);
                    (*last, bytes) = (*last - part, bytes - part);
                    if *last == 0 { left.pop(); }
                }
                prop_assert_eq!(bytes, 0, "no step is more than there is");
            }
        }
    }
}
