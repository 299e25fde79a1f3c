//! The bound on discards in the disk, the order of the shards that wait for it, and how much of a file one
//! step of a deletion may discard.
//!
//! A disk gives its time to a discard while reads wait behind it, and a discard that was sent cannot be taken
//! back. So few of them are in the disk at once, whatever they cost. Shards with discards take turns: the one
//! that has waited longest is next, unless it has stopped polling.
//!
//! Decision: `docs/decisions/0027-discards.md`.

use alloc::boxed::Box;

use crate::budget::Room;
use crate::shard_set::ShardId;
use crate::sync::{AtomicU64, Padded, get, set};
use crate::{DiskModel, DiskTime, Policy, Time};

/// Most discards of an [`IoGroup`](crate::IoGroup) in the disk at once, unless its policy is
/// [`Policy::Unlimited`]. With two, the disk finds the next one when it is done with one. A third would only
/// wait in the disk, where reads wait behind it.
pub const DISCARDS_MAX: u32 = 2;
/// Time after which a shard that waits to send a discard tries again if no other shard wakes it, in
/// nanoseconds (1 ms). A shorter time costs more turns; a longer one delays a discard whose wake-up did not
/// come.
pub(crate) const RETRY_NANOS: u64 = 1_000_000;
/// The time without a dispatched discard after which one more is dispatched, in nanoseconds (1 s). Those in
/// the disk may belong to a shard that does not check whether they are completed. A shorter time would send
/// more to a disk that is slow to discard.
const STUCK_NANOS: u64 = 1_000_000_000;
/// The time without a new attempt after which a shard loses its turn, in nanoseconds (50 ms, the time of 50
/// attempts). After a shorter time, a thread that was away loses its turn; after a longer one, others wait
/// for a thread that is gone.
const WAITER_TIMEOUT_NANOS: u64 = 50_000_000;

/// The discards of a group.
#[derive(Debug)]
pub(crate) struct Discards {
    in_disk: Padded<Room>,
    max: u64,
    /// When the latest one was dispatched, in nanoseconds.
    entered_at: AtomicU64,
    /// The waits of the shards, by shard.
    waits: Box<[Wait]>,
}

/// The wait of a shard, with times in nanoseconds.
#[derive(Debug)]
struct Wait {
    /// The time since which it has waited; zero if it does not wait.
    since: AtomicU64,
    looked_at: AtomicU64,
}

impl Discards {
    pub(crate) fn new(policy: &Policy, shards_max: usize, sole: bool) -> Self {
        let unlimited = matches!(policy, Policy::Unlimited);
        let wait = |_| Wait { since: AtomicU64::new(0), looked_at: AtomicU64::new(0) };
        Self {
            in_disk: Padded(Room::new(sole)),
            max: if unlimited { u64::MAX } else { u64::from(DISCARDS_MAX) },
            entered_at: AtomicU64::new(0),
            waits: (0..shards_max).map(wait).collect(),
        }
    }

    /// The number of discards in the disk.
    pub(crate) fn in_disk(&self) -> u64 {
        self.in_disk.0.used()
    }

    /// Takes a place for a discard of `shard` if one is free and no other shard has waited longer for it.
    /// Returns whether it did. If not, the shard waits from now on, if it did not before.
    pub(crate) fn enter(&self, shard: ShardId, now: Time) -> bool {
        let Some(wait) = self.waits.get(shard.index()) else { return false };
        let since = get(&wait.since);
        let before = if since == 0 { u64::MAX } else { since };
        let turns = self.older(shard, before, now).count() as u64;
        if self.in_disk.0.enter(self.max.saturating_sub(turns), 1).is_some()
            || (turns == 0 && self.enter_if_stuck(now))
        {
            set(&self.entered_at, now.as_nanos());
            return true;
        }
        if since == 0 {
            set(&wait.since, now.as_nanos().max(1));
        }
        set(&wait.looked_at, now.as_nanos());
        false
    }

    /// Takes a place if no discard was dispatched for [`STUCK_NANOS`].
    fn enter_if_stuck(&self, now: Time) -> bool {
        let is_stuck = now.as_nanos().saturating_sub(get(&self.entered_at)) >= STUCK_NANOS;
        if is_stuck {
            self.enter_anyway();
        }
        is_stuck
    }

    /// Takes a place, even if none is free.
    pub(crate) fn enter_anyway(&self) {
        self.in_disk.0.enter_anyway(1);
    }

    /// Gives a place back: one discard less is in the disk.
    pub(crate) fn leave(&self) {
        self.in_disk.0.leave(1);
    }

    /// Ends the wait of a shard: its discard was dispatched, or the shard is gone.
    pub(crate) fn stop_waiting(&self, shard: ShardId) {
        if let Some(wait) = self.waits.get(shard.index()) {
            set(&wait.since, 0);
        }
    }

    /// The shard, other than `shard`, that has waited longest.
    pub(crate) fn next(&self, shard: ShardId, now: Time) -> Option<ShardId> {
        self.older(shard, u64::MAX, now).min().map(|(_, other)| ShardId(other as u16))
    }

    /// The other shards that began to wait before `before`, each with the time since which it has waited.
    /// Shards that have stopped polling are left out.
    fn older(
        &self,
        shard: ShardId,
        before: u64,
        now: Time,
    ) -> impl Iterator<Item = (u64, usize)> + '_ {
        let this = (before, shard.index());
        self.waits.iter().enumerate().filter_map(move |(other, wait)| {
            let since = get(&wait.since);
            let looks = now.as_nanos().saturating_sub(get(&wait.looked_at)) < WAITER_TIMEOUT_NANOS;
            let is_before = since != 0 && looks && (since, other) < this;
            (is_before && other != this.1).then_some((since, other))
        })
    }
}

/// The unit in which a large extent is split between steps, in bytes (64 KiB). A step takes whole extents, or
/// a multiple of this from one extent. It is a multiple of the blocks of file systems, which discard whole
/// blocks.
pub const DISCARD_PART: u64 = 64 << 10;
/// The default time of a step, in nanoseconds (80 ms): a step takes at most what the rates allow in it. A
/// longer time makes larger bursts of discards; a shorter one makes more commands for the same bytes.
pub const DISCARD_STEP_NANOS: u64 = 80_000_000;
/// The most bytes of a step at a rate (32 MiB), whatever the disk and the rate. It bounds the burst if no
/// rate is known.
const BYTES_MAX: u64 = 32 << 20;
/// The most extents of a step at a rate, each of which is a command, whatever the disk and the rate. It
/// bounds the burst if no rate is known.
const COMMANDS_MAX: u32 = 64;
/// The unit of the bytes of a step at a rate, and their minimum (4 KiB). File systems discard whole blocks.
const BLOCK: u64 = 4096;

/// The most that one step of a deletion may discard.
///
/// A file is given back to the disk in steps of little cost, so that other requests have their turns in
/// between. The cost of a step depends on its bytes, and on its number of extents: each extent is a command
/// of its own.
///
/// ```
/// use forebay_core::{CostCurve, DiskModel, DiskTime, Step, StepMax};
///
/// # fn main() -> Result<(), forebay_core::CostError> {
/// // 20 us for a command and 5 ms for a GiB
/// let model = DiskModel::unmeasured().with_discard(CostCurve::sum(50_000, 200 << 30)?);
/// let cost = DiskTime::from_nanos(500_000);
/// let most = StepMax { cost, bytes: 64 << 20, commands: 64 };
/// // a file in extents of 1 MiB: 20 us and 4.9 us for each
/// assert_eq!(most.step(&model, [1 << 20; 100]), Step { bytes: 20 << 20, commands: 20 });
/// // a file in one extent
/// assert_eq!(most.step(&model, [1 << 30]), Step { bytes: 64 << 20, commands: 1 });
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMax {
    /// The most disk time that a step costs.
    pub cost: DiskTime,
    /// The most bytes of a step, whatever they cost.
    pub bytes: u64,
    /// The most extents of a step, each of which is a command.
    pub commands: u32,
}

/// What to discard in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The number of bytes, taken from the extents in their order.
    pub bytes: u64,
    /// The number of extents that they are in, and so of commands that the disk gets. Pass it to the
    /// scheduler with [`Op::commands`](crate::Op::commands).
    pub commands: u32,
}

impl Step {
    /// Whether nothing is left to discard.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The cost of the step on a disk.
    pub fn cost(&self, model: &DiskModel) -> DiskTime {
        model.discard_cost(self.bytes, self.commands)
    }
}

impl StepMax {
    /// The limits of a step that costs at most `cost` and takes at most what these rates, per second, allow
    /// in `nanos`. At any rate they are at most 32 MiB and 64 extents, and at least 4 KiB and one extent.
    /// `None` is no rate.
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

    /// Whether a discard of `bytes` in this many commands is within the limits.
    pub fn allows(&self, model: &DiskModel, bytes: u64, commands: u32) -> bool {
        bytes <= self.bytes
            && commands <= self.commands
            && model.discard_cost(bytes, commands) <= self.cost
    }

    /// The next step for extents of these lengths in bytes, in the order in which they are to be discarded:
    /// from the last of a file. Reads one entry more than it takes.
    ///
    /// A step takes whole extents while they are within the limits together. If the first one alone is not,
    /// the step takes its largest part that is, in multiples of [`DISCARD_PART`]. It takes at least one such
    /// part, even beyond the limits, so that each step makes progress. Extents without bytes are skipped.
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

    /// The largest part of an extent of `len` bytes within the limits, and at least one [`DISCARD_PART`] or
    /// the extent.
    fn part(&self, model: &DiskModel, len: u64) -> u64 {
        if self.allows(model, len, 1) {
            return len;
        }
        // `fit` parts are within the limits, or the least; `exceed` parts are all, or too many
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
    use super::*;
    use crate::{CostCurve, DiskRates};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const SHARDS: usize = 4;

    fn discards() -> Discards {
        Discards::new(&Policy::pace_window(), SHARDS, false)
    }

    fn enters(discards: &Discards, shard: u16, nanos: u64) -> bool {
        discards.enter(ShardId(shard), Time::from_nanos(nanos))
    }

    #[test]
    fn the_longest_waiter_is_next() {
        let discards = discards();
        assert!(enters(&discards, 0, 1) && enters(&discards, 0, 2));
        for (shard, nanos) in [(2, 10), (1, 20), (3, 30), (1, 40)] {
            assert!(!enters(&discards, shard, nanos), "{shard}");
        }
        assert_eq!(discards.next(ShardId(0), Time::from_nanos(41)), Some(ShardId(2)));
        assert_eq!(discards.next(ShardId(2), Time::from_nanos(41)), Some(ShardId(1)));
        discards.leave();
        // neither a shard that did not wait nor one that has waited for less goes before it
        assert!(!enters(&discards, 0, 42) && !enters(&discards, 1, 42) && enters(&discards, 2, 43));
        discards.stop_waiting(ShardId(2));
        discards.leave();
        assert!(!enters(&discards, 2, 44) && enters(&discards, 1, 45));
        assert_eq!(discards.in_disk(), u64::from(DISCARDS_MAX));
    }

    #[test]
    fn a_shard_that_stopped_polling_delays_no_other() {
        let discards = discards();
        assert!(enters(&discards, 0, 1) && enters(&discards, 0, 1));
        assert!(!enters(&discards, 1, 2));
        discards.leave();
        assert!(!enters(&discards, 0, WAITER_TIMEOUT_NANOS));
        assert!(enters(&discards, 0, WAITER_TIMEOUT_NANOS + 2));
        assert_eq!(discards.next(ShardId(0), Time::from_nanos(WAITER_TIMEOUT_NANOS + 2)), None);
    }

    #[test]
    fn where_none_comes_back_one_goes_each_second() {
        let discards = discards();
        let went = (0..100).filter(|step| enters(&discards, 0, 1 + step * STUCK_NANOS / 10));
        assert_eq!(went.count(), 2 + 9);
    }

    #[test]
    fn nothing_bounds_them_where_nothing_is_bounded() {
        let discards = Discards::new(&Policy::Unlimited, SHARDS, false);
        assert!((0..100).all(|nanos| enters(&discards, 0, nanos)));
        discards.enter_anyway();
        assert_eq!(discards.in_disk(), 101);
    }

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
        // about the rates of the disk at `DISCARD_SPEEDUP`
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
