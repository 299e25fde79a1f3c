//! One class or group of classes, as all shards see it.

use super::{ClassError, NodeId, SHARES_MAX};
use crate::DiskTime;
use crate::limit::{Limiter, Limits};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Tally};

/// Tags advance by cost / shares; the quotient is taken with this many bits.
const WEIGHT_BITS: u32 = 32;

/// What all shards know of one class or group of classes.
#[derive(Debug)]
pub(crate) struct Node {
    /// Start tag of its next dispatch, in disk time per share.
    pub(super) tag: Tally,
    /// Virtual time among its children: start tag of their last dispatch.
    pub(super) virtual_time: AtomicU64,
    /// 2^32 / shares.
    weight: AtomicU64,
    pub(super) shares: AtomicU32,
    /// Shards that have work of it queued.
    pub(super) backlogged: Tally,
    /// Odd while in use; its upper half is the generation. See [`Slot`].
    pub(super) slot: AtomicU32,
    pub(super) parent: AtomicU32,
    pub(super) children: AtomicU32,
    pub(crate) limiter: Limiter,
}

impl Node {
    pub(super) fn new(sole: bool) -> Self {
        Self {
            tag: Tally::new(sole),
            virtual_time: AtomicU64::new(0),
            weight: AtomicU64::new(1 << WEIGHT_BITS),
            shares: AtomicU32::new(1),
            backlogged: Tally::new(sole),
            slot: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            children: AtomicU32::new(0),
            limiter: Limiter::new(),
        }
    }

    pub(crate) fn tag(&self) -> u64 {
        self.tag.load(Ordering::Relaxed)
    }

    pub(crate) fn shares(&self) -> u32 {
        self.shares.load(Ordering::Relaxed)
    }

    pub(crate) fn parent(&self) -> NodeId {
        self.parent.load(Ordering::Relaxed) as NodeId
    }

    pub(crate) fn virtual_time(&self) -> u64 {
        self.virtual_time.load(Ordering::Relaxed)
    }

    /// Virtual time stays while the node is idle, and does not fall: a store
    /// that crosses another shard's may set it back by their lead, until the
    /// next dispatch. That is not worth an atomic maximum per request.
    pub(crate) fn advance_virtual_time(&self, start_tag: u64) {
        if self.virtual_time() < start_tag {
            self.virtual_time.store(start_tag, Ordering::Relaxed);
        }
    }

    /// Adds `cost / shares` to the tag and returns the tag before and after.
    /// What the division leaves over is kept in `fraction`, so that nothing is
    /// lost however small the cost and large the shares.
    pub(crate) fn charge(&self, cost: DiskTime, fraction: &mut u32) -> (u64, u64) {
        let weight = self.weight.load(Ordering::Relaxed);
        let scaled = u128::from(cost.units()) * u128::from(weight) + u128::from(*fraction);
        *fraction = scaled as u32;
        let step = u64::try_from(scaled >> WEIGHT_BITS).unwrap_or(u64::MAX);
        let start = self.tag.fetch_add(step, Ordering::Relaxed);
        (start, start.saturating_add(step))
    }

    /// One shard less has work of this node.
    pub(crate) fn sleep(&self) {
        self.backlogged.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn set_shares(&self, shares: u32) -> Result<(), ClassError> {
        check_shares(shares)?;
        self.shares.store(shares, Ordering::Relaxed);
        self.weight.store((1 << WEIGHT_BITS) / u64::from(shares), Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn set_limits(&self, limits: &Limits) -> Result<(), ClassError> {
        if !limits.is_valid() {
            return Err(ClassError::Limits(*limits));
        }
        self.limiter.set(limits);
        Ok(())
    }

    /// Whether no shard has work of it, and nothing is in it.
    pub(crate) fn check_removable(&self) -> Result<(), ClassError> {
        let idle = self.backlogged.load(Ordering::Acquire) == 0;
        if idle && self.children.load(Ordering::Acquire) == 0 {
            Ok(())
        } else {
            Err(ClassError::InUse)
        }
    }
}

pub(super) fn check_shares(shares: u32) -> Result<(), ClassError> {
    if (1..=SHARES_MAX).contains(&shares) { Ok(()) } else { Err(ClassError::Shares(shares)) }
}
