//! The fair queue of 2016, with totals that decay exponentially. It is kept for comparison.

use alloc::vec::Vec;

use crate::class_tree::NodeId;
use crate::tag::{self, STEP_MAX};
use crate::{DiskTime, Time};

/// The bytes for which a request weighs 1 more (16 KiB). Each request weighs at least 1. This favours few
/// large requests over many small ones.
const WEIGHT_BYTES: u64 = 16 * 1024;
/// Fraction bits of a total. With fewer, the weight of a request divided by many shares would be rounded
/// more.
const TOTAL_BITS: u32 = 32;
/// The number 2^32 / ln 2. It converts a time divided by `tau` to a number of halvings with 32 fraction bits.
const EXPONENT_SCALE: u128 = 6_196_328_019;

/// The recent use of each class of one queue. Each request adds its weight divided by the shares, and the sum
/// falls by a factor e per `tau`. The class with the smallest total is next.
///
/// The article multiplies new costs by `e^(t / tau)` instead of letting old ones decay, and must renormalise.
/// The order is the same.
#[derive(Debug)]
pub(crate) struct Decay {
    tau_nanos: u64,
    accounts: Vec<Account>,
    /// The tag of this shard among all shards, which take turns by disk time.
    shard_tag: u64,
    /// Whether requests wait on this shard.
    waits: bool,
    /// Without the feature this type has no value, so its branches are not compiled.
    #[cfg(not(feature = "history"))]
    _none: core::convert::Infallible,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    total: u64,
    at: Time,
}

impl Decay {
    #[cfg(feature = "history")]
    pub(crate) fn new(tau_nanos: u64) -> Self {
        Self { tau_nanos: tau_nanos.max(1), accounts: Vec::new(), shard_tag: 0, waits: false }
    }

    /// The one of `nodes` with the smallest total.
    pub(crate) fn least(&self, nodes: impl Iterator<Item = NodeId>, now: Time) -> Option<NodeId> {
        nodes.min_by_key(|&node| (self.total(node, now), node))
    }

    pub(crate) fn charge(&mut self, node: NodeId, now: Time, len: u64, shares: u32) {
        let at = usize::from(node);
        if self.accounts.len() <= at {
            self.accounts.resize(at + 1, Account::default());
        }
        let weight = u128::from(1 + len / WEIGHT_BYTES) << TOTAL_BITS;
        let added = u64::try_from(weight / u128::from(shares.max(1))).unwrap_or(u64::MAX);
        let total = self.total(node, now).saturating_add(added);
        self.accounts[at] = Account { total, at: now };
    }

    pub(crate) fn shard_tag(&self) -> u64 {
        self.shard_tag
    }

    /// Sets whether requests wait on this shard. Returns its tag if they do. A shard that begins to wait gets
    /// a tag of at least `earliest`.
    pub(crate) fn set_waits(&mut self, waits: bool, earliest: u64) -> Option<u64> {
        if waits && !self.waits {
            self.shard_tag = tag::later(self.shard_tag, earliest);
        }
        self.waits = waits;
        waits.then_some(self.shard_tag)
    }

    /// Charges a request to this shard. Returns its tag before.
    pub(crate) fn charge_shard(&mut self, cost: DiskTime) -> u64 {
        let before = self.shard_tag;
        self.shard_tag = before.wrapping_add(cost.units().min(STEP_MAX));
        before
    }

    fn total(&self, node: NodeId, now: Time) -> u64 {
        let account = self.accounts.get(usize::from(node)).copied().unwrap_or_default();
        decayed(account.total, now.nanos_since(account.at), self.tau_nanos)
    }
}

/// `total * e^(-nanos / tau)`, to about one part in 10,000. Whole powers of two are a shift; the rest is the
/// series of `2^-f` around zero.
fn decayed(total: u64, nanos: u64, tau_nanos: u64) -> u64 {
    let halvings = u128::from(nanos) * EXPONENT_SCALE / u128::from(tau_nanos);
    let whole = halvings >> 32;
    if whole >= 64 {
        return 0;
    }
    let part = halvings & 0xffff_ffff;
    // (ln 2)^n / n!, scaled by 2^32, signs alternating
    let series: [u128; 5] = [4_294_967_296, 2_977_044_471, 1_031_764_991, 238_388_332, 41_309_550];
    let (mut power, mut sum, mut minus) = (1_u128 << 32, 0_u128, 0_u128);
    for (index, term) in series.into_iter().enumerate() {
        let value = (term * power) >> 32;
        if index % 2 == 0 {
            sum += value;
        } else {
            minus += value;
        }
        power = (power * part) >> 32;
    }
    let factor = sum.saturating_sub(minus);
    let scaled = (u128::from(total) * factor) >> 32;
    (scaled >> whole) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAU: u64 = 100_000_000;

    #[test]
    fn totals_fall_by_e_per_tau() {
        let total = 1_u64 << 50;
        for (nanos, expected) in
            [(0, 1.0), (TAU, 0.367_879), (TAU / 3, 0.716_531), (TAU * 5, 0.006_738)]
        {
            let share = decayed(total, nanos, TAU) as f64 / total as f64;
            assert!((share - expected).abs() < 0.000_5, "{nanos}: {share}");
        }
        assert_eq!(decayed(total, u64::MAX, TAU), 0);
    }

    #[test]
    fn the_class_that_used_least_for_its_shares_is_next() {
        let mut decay = Decay::new(TAU);
        decay.charge(1, Time::from_nanos(1), 131_072, 10);
        decay.charge(2, Time::from_nanos(1), 131_072, 100);
        assert_eq!(decay.least([1, 2].into_iter(), Time::from_nanos(2)), Some(2));
        // nine of them use as much per share as one of the other
        for _ in 0..9 {
            decay.charge(2, Time::from_nanos(2), 131_072, 100);
        }
        decay.charge(2, Time::from_nanos(2), 0, 100);
        assert_eq!(decay.least([1, 2].into_iter(), Time::from_nanos(2)), Some(1));
        assert_eq!(decay.least([3, 1].into_iter(), Time::from_nanos(2)), Some(3));
    }
}
