//! The state that the shards of a group share: how far each has come, and when it polls again.
//!
//! Decision: `docs/decisions/0009-shares-across-threads.md`.

use alloc::vec::Vec;
use core::ops::Index;

use crate::budget::RoomShare;
use crate::class_tree::{ClassTree, NodeId};
use crate::published::{
    ANSWER_PART, DiskClock, IDLE, NOT_WAITED_FOR, PeerCheck, PeerFilter, Presence, Published,
};
use crate::shard_set::{SHARDS_MAX, ShardId};
use crate::shard_set::{STEP_SHARDS_MAX, ShardSet, WakeList};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::tag::{ahead, is_after};
use crate::{DiskTime, Time};

/// While the disk works on requests that late shards hold, others check again after half the time that
/// it needs for the rest. They wait at least a tick divided by this.
const CHECK_PART: u64 = 16;

/// The shards of one group.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    shards: Vec<Padded<Published>>,
    joined: AtomicU32,
    /// Slots that were ever taken are below this.
    places: AtomicU32,
    waiting_for_room: ShardSet,
    /// When a shard was last woken for room.
    woken_at: Padded<AtomicU64>,
    /// When a shard that waits for room checks what others hold in the disk without polling.
    next_check: Padded<AtomicU64>,
    pub(crate) disk_clock: DiskClock,
    /// The tag that turns have reached, if shards take turns.
    turns_reached: AtomicU64,
}

impl Index<ShardId> for Peers {
    type Output = Published;

    #[inline]
    fn index(&self, shard: ShardId) -> &Published {
        &self.shards[shard.index()].0
    }
}

impl Peers {
    pub(crate) fn new(shards_max: usize, nodes: usize) -> Self {
        let published = |_| Padded(Published::new(nodes));
        Self { shards: (0..shards_max.min(SHARDS_MAX)).map(published).collect(), ..Self::default() }
    }

    /// The slots that are or were taken.
    fn places(&self) -> &[Padded<Published>] {
        let places = self.places.load(Ordering::Relaxed) as usize;
        self.shards.get(..places).unwrap_or(&self.shards)
    }

    /// Marks a shard to be woken when room is freed.
    pub(crate) fn wait_for_room(&self, shard: ShardId) {
        self.waiting_for_room.insert(shard);
    }

    /// Moves marked shards into `wakes`, as many as `share` says, those furthest behind first. From now
    /// on they are expected to poll.
    #[cold]
    pub(crate) fn pop_most_lagging(
        &self,
        tree: &ClassTree,
        now: Time,
        share: RoomShare,
        wakes: &mut WakeList,
    ) {
        let RoomShare { mut shards, mut room } = share;
        while shards > 0 || room > DiskTime::ZERO {
            let marked = self.waiting_for_room.some(now.as_nanos() as usize);
            let marked = marked.map(|shard| (self[shard].turn(tree), shard));
            // an idle shard has nothing to dispatch, and a shard that is behind goes first
            let first = marked.reduce(|first, other| match (first.0, other.0) {
                (None, _) => other,
                (Some((tag, own)), Some((earlier, before)))
                    if is_after(tag, earlier) || tag == earlier && is_after(own, before) =>
                {
                    other
                }
                _ => first,
            });
            let Some((_, shard)) = first else { return };
            shards = shards.saturating_sub(1);
            let wanted = self[shard].wanted.load(Ordering::Relaxed);
            room = room.minus(DiskTime::from_units(wanted));
            if self.waiting_for_room.remove(shard) {
                self[shard].promise(now);
                self.woken_at.0.store(now.as_nanos(), Ordering::Relaxed);
                wakes.push(shard);
            }
        }
    }

    /// Whether a shard waits for room, or was woken for it at most `nanos` nanoseconds ago and may not
    /// have polled since.
    pub(crate) fn anyone_waits(&self, now: Time, nanos: u64) -> bool {
        let woken_at = Time::from_nanos(self.woken_at.0.load(Ordering::Relaxed));
        woken_at > Time::ZERO && now.nanos_since(woken_at) <= nanos || self.anyone_waits_for_room()
    }

    /// Whether a shard is marked to be woken.
    pub(crate) fn anyone_waits_for_room(&self) -> bool {
        self.waiting_for_room.any()
    }

    /// Whether to wake a shard that is behind, because it is not expected to poll yet. From now on it
    /// is.
    pub(crate) fn expect(&self, shard: ShardId, now: Time) -> bool {
        let polls_by = self[shard].polls_by.load(Ordering::Relaxed);
        let sleeps = polls_by > now.as_nanos();
        if sleeps {
            self.waiting_for_room.remove(shard);
            self[shard].promise(now);
            self.woken_at.0.store(now.as_nanos(), Ordering::Relaxed);
        }
        sleeps
    }

    /// Moves all shards that wait for room into `wakes`. From now on they are expected to poll.
    pub(crate) fn take_waiting_for_room(&self, now: Time, wakes: &mut WakeList) {
        self.take_all(&self.waiting_for_room, now, wakes);
    }

    /// Moves all shards of a set into `wakes`. From now on they are expected to poll.
    pub(crate) fn take_all(&self, shards: &ShardSet, now: Time, wakes: &mut WakeList) {
        let mut taken = WakeList::default();
        shards.take_into(&mut taken);
        while let Some(shard) = taken.pop() {
            self[shard].promise(now);
            wakes.push(shard);
        }
    }

    /// Gives a free slot to a new shard; `None` if all are taken.
    pub(crate) fn join(&self) -> Option<ShardId> {
        let free = self.shards.iter().position(|shard| {
            shard.0.joined.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        self.joined.fetch_add(1, Ordering::AcqRel);
        self.places.fetch_max(free as u32 + 1, Ordering::AcqRel);
        let shard = ShardId(free as u16);
        self[shard].promise(Time::MAX);
        Some(shard)
    }

    pub(crate) fn leave(&self, shard: ShardId) {
        let place = &self[shard];
        for next in &place.next {
            next.store(IDLE, Ordering::Relaxed);
        }
        place.own_turn.store(IDLE, Ordering::Relaxed);
        place.held.store(0, Ordering::Relaxed);
        place.joined.store(0, Ordering::Release);
        self.joined.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether the group is made for a single shard.
    pub(crate) fn sole(&self) -> bool {
        self.shards.len() == 1
    }

    /// Whether at most one shard has joined.
    pub(crate) fn alone(&self) -> bool {
        self.joined.load(Ordering::Relaxed) <= 1
    }

    /// The number of shards that have joined.
    pub(crate) fn joined(&self) -> u64 {
        u64::from(self.joined.load(Ordering::Relaxed))
    }

    /// Whether all other shards that may have work were absent too in the last `within` nanoseconds.
    pub(crate) fn others_were_away(&self, shard: ShardId, now: Time, within: u64) -> bool {
        self.places().iter().enumerate().all(|(index, other)| {
            let away_at = Time::from_nanos(other.0.away_at.load(Ordering::Relaxed));
            index == shard.index()
                || other.0.joined.load(Ordering::Relaxed) == 0
                || other.0.is_idle()
                || away_at > Time::ZERO && now.nanos_since(away_at) <= within
        })
    }

    /// The disk time that late shards hold although the disk must have done it, and when that grows. A
    /// shard that has not polled since the disk must have answered is woken. If it polls without a
    /// completion, the disk is slow. If it does not poll, it is late.
    pub(crate) fn unattended(
        &self,
        shard: ShardId,
        check: &PeerCheck,
        wakes: &mut WakeList,
    ) -> (DiskTime, Time) {
        let (mut unattended, mut grows_at) = (DiskTime::ZERO, Time::MAX);
        for (index, other) in self.places().iter().enumerate() {
            let held = DiskTime::from_units(other.0.held.load(Ordering::Relaxed));
            if index == shard.index() || held == DiskTime::ZERO {
                continue;
            }
            let (id, all_at) = (ShardId(index as u16), other.0.answered_at(check.lag_nanos));
            let first_at = all_at.minus_nanos(held.as_nanos_ceil());
            match other.0.presence(check, first_at) {
                Presence::Expected { until } => grows_at = grows_at.min(until),
                // no shard needs the room that it holds
                Presence::ToBeWoken if check.has_room => {
                    let soon = check.now.plus_nanos(check.tick_nanos / CHECK_PART);
                    grows_at = grows_at.min(soon);
                }
                Presence::ToBeWoken => {
                    other.0.woken_at.store(check.now.as_nanos(), Ordering::Relaxed);
                    self[id].promise(check.now);
                    wakes.push(id);
                    grows_at = grows_at.min(check.now.plus_nanos(check.tick_nanos / ANSWER_PART));
                }
                Presence::Late => {
                    if !self[id].is_late() {
                        self[id].stop_waiting();
                    }
                    let left_nanos = all_at.nanos_since(check.now);
                    let left = DiskTime::from_nanos(left_nanos);
                    unattended = unattended.plus(held.minus(left));
                    if left_nanos > 0 {
                        let least = check.tick_nanos / CHECK_PART;
                        let half = (left_nanos / 2).clamp(least, check.tick_nanos);
                        let soon = check.now.plus_nanos(half);
                        grows_at = grows_at.min(first_at.max(soon));
                    }
                }
            }
        }
        (unattended, grows_at)
    }

    /// Plans a check, due `at`, of what others hold in the disk without polling. Returns the time of
    /// the check, or `None` if another shard checks by then. `planned` is what this shard has planned
    /// before.
    pub(crate) fn plan_check(&self, now: Time, at: Time, planned: Time) -> Option<Time> {
        let next_check = self.next_check.0.load(Ordering::Relaxed);
        let is_planned = now.as_nanos() < next_check && next_check <= at.as_nanos();
        if is_planned {
            return (next_check == planned.as_nanos()).then_some(planned);
        }
        let (ordering, at_nanos) = (Ordering::Relaxed, at.as_nanos());
        let taken = self.next_check.0.compare_exchange(next_check, at_nanos, ordering, ordering);
        taken.is_ok().then_some(at)
    }

    /// The number of shards that were late when they polled last.
    pub(crate) fn late_shards(&self) -> u64 {
        let late = |shard: &&Padded<Published>| shard.0.late.load(Ordering::Relaxed) != 0;
        self.places().iter().filter(late).count() as u64
    }

    /// Whether a shard is late again: it was late when it polled last, and the disk must have answered
    /// before `now`. Others have then used the room of what it held.
    pub(crate) fn is_late_again(&self, shard: ShardId, now: Time, tick_nanos: u64) -> bool {
        let place = &self[shard];
        let slack_nanos = tick_nanos / CHECK_PART;
        self[shard].is_late()
            && place.answered_at(self.disk_clock.lag_nanos()).plus_nanos(slack_nanos) <= now
    }

    /// The delay of the latest shard beyond its promise to poll, in nanoseconds. Zero for a lone shard,
    /// which no other expects.
    pub(crate) fn overdue_nanos(&self, now: Time) -> u64 {
        if self.alone() {
            return 0;
        }
        let joined = |shard: &&Padded<Published>| shard.0.joined.load(Ordering::Relaxed) == 1;
        let expected = |shard: &Padded<Published>| match shard.0.polls_by.load(Ordering::Relaxed) {
            by if by == NOT_WAITED_FOR.as_nanos() => shard.0.polled_at.load(Ordering::Relaxed),
            by => by,
        };
        let expected = self.places().iter().filter(joined).map(expected).min();
        expected.map_or(0, |at| now.nanos_since(Time::from_nanos(at)))
    }

    /// Publishes which child of a group of classes is next on a shard.
    pub(crate) fn publish_next(&self, shard: ShardId, parent: NodeId, child: Option<NodeId>) {
        self.publish(shard, parent, child.map_or(IDLE, u64::from));
    }

    /// Publishes how far a shard has come within a class; `None` if it has no work of it.
    pub(crate) fn publish_class(&self, shard: ShardId, class: NodeId, tag: Option<u64>) {
        self.publish(shard, class, tag.map_or(IDLE, |tag| tag.min(IDLE - 1)));
    }

    /// The tag that turns have reached.
    pub(crate) fn turns_reached(&self) -> u64 {
        self.turns_reached.load(Ordering::Relaxed)
    }

    /// Records a turn of a shard at this tag.
    pub(crate) fn advance_turns(&self, tag: u64) {
        if is_after(tag, self.turns_reached()) {
            self.turns_reached.store(tag, Ordering::Relaxed);
        }
    }

    fn publish(&self, shard: ShardId, node: NodeId, value: u64) {
        if self.sole() {
            return;
        }
        let slot = &self[shard].next[usize::from(node)];
        if slot.load(Ordering::Relaxed) != value {
            slot.store(value, Ordering::Relaxed);
        }
    }
}

/// The lead of a shard over others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// Disk time owed to the shard furthest behind, in units.
    pub(crate) units: u64,
    /// The sum of the disk time owed to all shards that are behind, in units.
    pub(crate) units_of_all: u64,
    /// The shard furthest behind; the leading one itself if none is behind.
    pub(crate) lagging_shard: ShardId,
}

impl Lead {
    pub(crate) fn none(shard: ShardId) -> Self {
        Self { units: 0, units_of_all: 0, lagging_shard: shard }
    }
}

impl Peers {
    /// How far the next request of `class` on `shard` leads the requests that other shards have queued.
    /// This is the disk time owed to the shard furthest behind, over all levels from the class to the
    /// root.
    ///
    /// Only shards that match `filter` count. Among many shards a call visits at most
    /// [`STEP_SHARDS_MAX`], and starts at another one for each `turn`. So all are seen in time, and a
    /// request costs the same among 33 shards and 256.
    pub(crate) fn lead(
        &self,
        tree: &ClassTree,
        shard: ShardId,
        class: NodeId,
        shard_tag: u64,
        turn: u64,
        filter: PeerFilter,
    ) -> Lead {
        self.lead_over(shard, turn, filter, |other| {
            let tag = other.next[usize::from(class)].load(Ordering::Relaxed);
            let behind = if tag == IDLE { 0 } else { ahead(shard_tag, tag) };
            behind.max(other.deficit_above(tree, class))
        })
    }

    /// Like [`Peers::lead`], if shards take turns by the tags of [`Published::publish_turn`],
    /// regardless of their classes.
    pub(crate) fn lead_of_turn(
        &self,
        shard: ShardId,
        tag: u64,
        turn: u64,
        filter: PeerFilter,
    ) -> Lead {
        self.lead_over(shard, turn, filter, |other| {
            other.own_turn().map_or(0, |of_other| ahead(tag, of_other))
        })
    }

    /// The lead over other shards, by the disk time `owed` to each, in units.
    fn lead_over(
        &self,
        shard: ShardId,
        turn: u64,
        filter: PeerFilter,
        owed: impl Fn(&Published) -> u64,
    ) -> Lead {
        let mut lead = Lead::none(shard);
        let places = self.places();
        let visited = places.len().min(STEP_SHARDS_MAX);
        let first = (turn as usize).wrapping_mul(visited) % places.len().max(1);
        for step in 0..visited {
            let index = (first + step) % places.len();
            let other = &places[index].0;
            if index == shard.index() || !other.matches(filter) {
                continue;
            }
            let units = owed(other);
            lead.units_of_all = lead.units_of_all.saturating_add(units);
            if units > lead.units {
                (lead.units, lead.lagging_shard) = (units, ShardId(index as u16));
            }
        }
        if visited < places.len() {
            let all = u128::from(lead.units_of_all) * places.len() as u128 / visited as u128;
            lead.units_of_all = u64::try_from(all).unwrap_or(u64::MAX);
        }
        lead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let peers = Peers::new(2, 1);
        let first = peers.join().unwrap();
        assert!(peers.alone());
        peers.join().unwrap();
        assert!(!peers.alone());
        assert_eq!(peers.join(), None);
        peers.leave(first);
        assert_eq!(peers.join(), Some(first));
    }

    #[test]
    fn of_many_shards_a_request_looks_at_33_and_at_all_in_turn() {
        let tree = ClassTree::new(false);
        let class = tree.add_class(None, 1).unwrap().node();
        let peers = Peers::new(SHARDS_MAX, ClassTree::NODES);
        let shards: Vec<_> = core::iter::from_fn(|| peers.join()).collect();
        let filter = PeerFilter::Live { now: Time::ZERO, patience: 0 };
        let mut seen = [0; 8];
        for &behind in &shards[1..] {
            peers.publish_class(behind, class, Some(1));
            let leads = |turn: &usize| {
                peers.lead(&tree, shards[0], class, 10, *turn as u64, filter).lagging_shard
                    == behind
            };
            let turns: Vec<_> = (0..8).filter(leads).collect();
            assert!(!turns.is_empty(), "{behind:?} is never seen");
            turns.into_iter().for_each(|turn| seen[turn] += 1);
            peers.publish_class(behind, class, None);
        }
        assert!(seen.iter().all(|&shards| shards <= 33), "{seen:?}");
    }
}
