//! How far one shard is ahead of the others.

use super::Peers;
use super::published::{IDLE, PeerFilter, Published};
use crate::class_tree::{ClassTree, NodeId};
use crate::shard_id::ShardId;
use crate::shard_set::STEP_SHARDS_MAX;
use crate::sync::Ordering;
use crate::tag::ahead;

/// How far a shard is ahead, and of whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// Disk time that the one furthest behind is owed.
    pub(crate) units: u64,
    /// Disk time that all who are behind are owed together.
    pub(crate) units_of_all: u64,
    /// The shard furthest behind; the leading one itself if none is.
    pub(crate) lagging_shard: ShardId,
}

impl Lead {
    pub(crate) fn none(shard: ShardId) -> Self {
        Self { units: 0, units_of_all: 0, lagging_shard: shard }
    }
}

impl Peers {
    /// How far the next request of `class` on `shard` is ahead of what other
    /// live shards have queued: the disk time that the one furthest behind is
    /// owed, over all levels from the class to the root.
    ///
    /// Only the shards count that are `met`; of many, as many as are looked at
    /// in one go, which begins at another place after each `turn`. So all are
    /// seen in time, and a request costs the same beside 8 shards and 255.
    pub(crate) fn lead(
        &self,
        tree: &ClassTree,
        shard: ShardId,
        class: NodeId,
        shard_tag: u64,
        turn: u64,
        met: PeerFilter,
    ) -> Lead {
        self.lead_over(shard, turn, met, |other| {
            let tag = other.next[usize::from(class)].load(Ordering::Relaxed);
            let behind = if tag == IDLE { 0 } else { ahead(shard_tag, tag) };
            behind.max(other.deficit_above(tree, class))
        })
    }

    /// As [`Peers::lead`], where shards take turns by the tags that
    /// [`Peers::publish_turn`] says, whatever their classes.
    pub(crate) fn lead_of_turn(
        &self,
        shard: ShardId,
        tag: u64,
        turn: u64,
        met: PeerFilter,
    ) -> Lead {
        self.lead_over(shard, turn, met, |other| {
            other.own_turn().map_or(0, |of_other| ahead(tag, of_other))
        })
    }

    /// The lead over the shards, by what each of them is `owed`.
    fn lead_over(
        &self,
        shard: ShardId,
        turn: u64,
        met: PeerFilter,
        owed: impl Fn(&Published) -> u64,
    ) -> Lead {
        let mut lead = Lead::none(shard);
        let places = self.places();
        let looks = places.len().min(STEP_SHARDS_MAX);
        let first = (turn as usize).wrapping_mul(looks) % places.len().max(1);
        for look in 0..looks {
            let index = (first + look) % places.len();
            let other = &places[index].0;
            if index == shard.index() || !other.matches(met) {
                continue;
            }
            let units = owed(other);
            lead.units_of_all = lead.units_of_all.saturating_add(units);
            if units > lead.units {
                (lead.units, lead.lagging_shard) = (units, ShardId(index as u16));
            }
        }
        if looks < places.len() {
            let all = u128::from(lead.units_of_all) * places.len() as u128 / looks as u128;
            lead.units_of_all = u64::try_from(all).unwrap_or(u64::MAX);
        }
        lead
    }
}
