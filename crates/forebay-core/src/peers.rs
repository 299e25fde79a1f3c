//! What the shards of a group tell each other: how far each has come, and when
//! it polls again.

use alloc::vec::Vec;

use crate::budget::RoomShare;
use crate::class_tree::{ClassTree, NodeId, ROOT};
use crate::shard_id::{SHARDS_MAX, ShardId};
use crate::shard_set::{STEP_SHARDS_MAX, ShardSet, WakeList};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::tag::{ahead, is_after};
use crate::{DiskTime, Time};

/// The shards of one group.
#[derive(Debug)]
pub(crate) struct Peers {
    shards: Vec<Padded<Published>>,
    joined: AtomicU32,
    /// Places that were ever taken are below this.
    places: AtomicU32,
    waiting_for_room: ShardSet,
    /// When a shard was last woken for room.
    woken_at: Padded<AtomicU64>,
    /// When a shard that waits for room looks what others hold unattended.
    look_at: Padded<AtomicU64>,
    /// The tag that turns have reached where shards take turns.
    turns_reached: AtomicU64,
}

impl Peers {
    pub(crate) fn new(shards_max: usize, nodes: usize) -> Self {
        let published = |_| Padded(Published::new(nodes));
        Self {
            shards: (0..shards_max.min(SHARDS_MAX)).map(published).collect(),
            joined: AtomicU32::new(0),
            places: AtomicU32::new(0),
            waiting_for_room: ShardSet::new(),
            woken_at: Padded(AtomicU64::new(0)),
            look_at: Padded(AtomicU64::new(0)),
            turns_reached: AtomicU64::new(0),
        }
    }

    /// The places that are or were taken.
    fn places(&self) -> &[Padded<Published>] {
        let places = self.places.load(Ordering::Relaxed) as usize;
        self.shards.get(..places).unwrap_or(&self.shards)
    }

    /// A shard asks to be woken when room is freed.
    pub(crate) fn wait_for_room(&self, shard: ShardId) {
        self.waiting_for_room.insert(shard);
    }

    /// Says how much room the request needs that waits for it on a shard.
    pub(crate) fn publish_wanted(&self, shard: ShardId, cost: DiskTime) {
        self.shards[shard.index()].0.wanted.store(cost.units(), Ordering::Relaxed);
    }

    /// Moves shards that asked to be woken into `wakes`, those first that are
    /// furthest behind: as many as `share` says, and not all for each request.
    /// From now on they are expected to poll.
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
            let marked = marked.map(|shard| (self.shards[shard.index()].0.turn(tree), shard));
            // an idle shard has nothing to go, and one that is behind goes first
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
            let wanted = self.shards[shard.index()].0.wanted.load(Ordering::Relaxed);
            room = room.minus(DiskTime::from_units(wanted));
            if self.waiting_for_room.remove(shard) {
                self.promise(shard, now);
                self.woken_at.0.store(now.as_nanos(), Ordering::Relaxed);
                wakes.push(shard);
            }
        }
    }

    /// Whether a shard waits for room, or has been woken for it at most `nanos`
    /// ago and may not have polled yet.
    pub(crate) fn anyone_waits(&self, now: Time, nanos: u64) -> bool {
        let woken_at = Time::from_nanos(self.woken_at.0.load(Ordering::Relaxed));
        woken_at > Time::ZERO && now.nanos_since(woken_at) <= nanos || self.anyone_waits_for_room()
    }

    /// Whether anybody asked to be woken.
    pub(crate) fn anyone_waits_for_room(&self) -> bool {
        self.waiting_for_room.any()
    }

    /// Whether a shard that is behind is to be woken: it is not expected yet, and
    /// is from now on.
    pub(crate) fn expect(&self, shard: ShardId, now: Time) -> bool {
        let polls_by = self.shards[shard.index()].0.polls_by.load(Ordering::Relaxed);
        let sleeps = polls_by > now.as_nanos();
        if sleeps {
            self.waiting_for_room.remove(shard);
            self.promise(shard, now);
            self.woken_at.0.store(now.as_nanos(), Ordering::Relaxed);
        }
        sleeps
    }

    /// Moves the shards that asked to be woken into `wakes`. From now on they
    /// are expected to poll.
    pub(crate) fn take_waiting_for_room(&self, now: Time, wakes: &mut WakeList) {
        self.take_all(&self.waiting_for_room, now, wakes);
    }

    /// Moves all marked shards into `wakes`. From now on they are expected to poll.
    pub(crate) fn take_all(&self, shards: &ShardSet, now: Time, wakes: &mut WakeList) {
        let mut taken = WakeList::default();
        shards.take_into(&mut taken);
        while let Some(shard) = taken.pop() {
            self.promise(shard, now);
            wakes.push(shard);
        }
    }

    /// Gives a free place to a new shard.
    pub(crate) fn join(&self) -> Option<ShardId> {
        let free = self.shards.iter().position(|shard| {
            shard.0.joined.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        self.joined.fetch_add(1, Ordering::AcqRel);
        self.places.fetch_max(free as u32 + 1, Ordering::AcqRel);
        let shard = ShardId(free as u16);
        self.promise(shard, Time::MAX);
        Some(shard)
    }

    pub(crate) fn leave(&self, shard: ShardId) {
        let place = &self.shards[shard.index()].0;
        for next in &place.next {
            next.store(IDLE, Ordering::Relaxed);
        }
        place.own_turn.store(IDLE, Ordering::Relaxed);
        place.held.store(0, Ordering::Relaxed);
        place.joined.store(0, Ordering::Release);
        self.joined.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether there is room for one shard only.
    pub(crate) fn sole(&self) -> bool {
        self.shards.len() == 1
    }

    /// Whether there is nobody to compare with.
    pub(crate) fn alone(&self) -> bool {
        self.joined.load(Ordering::Relaxed) <= 1
    }

    /// Shards that have joined.
    pub(crate) fn joined(&self) -> u64 {
        u64::from(self.joined.load(Ordering::Relaxed))
    }

    /// Says when a shard will poll again at the latest.
    pub(crate) fn promise(&self, shard: ShardId, at: Time) {
        self.shards[shard.index()].0.polls_by.store(at.as_nanos(), Ordering::Relaxed);
    }

    /// Says what a shard leaves in the disk when it has polled, and whether it
    /// was late to.
    pub(crate) fn publish_held(&self, shard: ShardId, now: Time, held: u64, late: bool) {
        let place = &self.shards[shard.index()].0;
        place.polled_at.store(now.as_nanos(), Ordering::Relaxed);
        place.late.store(u32::from(late), Ordering::Relaxed);
        if place.held.load(Ordering::Relaxed) != held {
            place.held.store(held, Ordering::Relaxed);
        }
    }

    /// A shard was away for longer than the disk needed for all that it had sent.
    pub(crate) fn publish_away(&self, shard: ShardId, now: Time) {
        self.shards[shard.index()].0.away_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Whether all other shards that may have work were away too in the last `within` nanoseconds.
    pub(crate) fn others_were_away(&self, shard: ShardId, now: Time, within: u64) -> bool {
        self.places().iter().enumerate().all(|(index, other)| {
            let away_at = Time::from_nanos(other.0.away_at.load(Ordering::Relaxed));
            index == shard.index()
                || other.0.joined.load(Ordering::Relaxed) == 0
                || other.0.is_idle()
                || away_at > Time::ZERO && now.nanos_since(away_at) <= within
        })
    }

    /// Says how much disk time a shard has sent to the disk.
    pub(crate) fn publish_dispatched(&self, shard: ShardId, units: u64) {
        self.shards[shard.index()].0.dispatched.store(units, Ordering::Relaxed);
    }

    /// What a shard has said so.
    pub(crate) fn dispatched(&self, shard: ShardId) -> u64 {
        self.shards[shard.index()].0.dispatched.load(Ordering::Relaxed)
    }

    /// What other shards hold in the disk without attending to it: those that
    /// were late when they polled last, and those that have not polled for
    /// longer than `within` nanoseconds, which may wait for a disk that hangs.
    /// And when the next one will not have polled for that long.
    pub(crate) fn unattended(&self, shard: ShardId, now: Time, within: u64) -> (u64, u64, Time) {
        let (mut held_by_late, mut held_by_silent, mut next) = (0u64, 0u64, Time::MAX);
        for (index, other) in self.places().iter().enumerate() {
            let held = other.0.held.load(Ordering::Relaxed);
            if index == shard.index() || held == 0 {
                continue;
            }
            let polled_at = Time::from_nanos(other.0.polled_at.load(Ordering::Relaxed));
            if other.0.late.load(Ordering::Relaxed) != 0 {
                held_by_late = held_by_late.saturating_add(held);
            } else if now.nanos_since(polled_at) > within {
                held_by_silent = held_by_silent.saturating_add(held);
            } else {
                next = next.min(polled_at.plus_nanos(within.saturating_add(1)));
            }
        }
        (held_by_late, held_by_silent, next)
    }

    /// Whether a shard has polled after `since`.
    pub(crate) fn has_polled_after(&self, shard: ShardId, since: Time) -> bool {
        let polled_at = self.shards[shard.index()].0.polled_at.load(Ordering::Relaxed);
        polled_at > since.as_nanos()
    }

    /// Nobody waits for a shard any more until it polls, which is late.
    pub(crate) fn stop_waiting_for(&self, shard: ShardId) {
        self.promise(shard, NOT_WAITED_FOR);
        self.shards[shard.index()].0.late.store(1, Ordering::Relaxed);
    }

    /// When a shard looks what others hold unattended, which is due `at`: `None`
    /// if another one does by then. What the shard has planned before is its own.
    pub(crate) fn plan_look(&self, now: Time, at: Time, planned: Time) -> Option<Time> {
        let look_at = self.look_at.0.load(Ordering::Relaxed);
        let looks = now.as_nanos() < look_at && look_at <= at.as_nanos();
        if looks {
            return (look_at == planned.as_nanos()).then_some(planned);
        }
        let (ordering, at_nanos) = (Ordering::Relaxed, at.as_nanos());
        let taken = self.look_at.0.compare_exchange(look_at, at_nanos, ordering, ordering);
        taken.is_ok().then_some(at)
    }

    /// Whether a shard was late when it polled last, or nobody waits for it.
    pub(crate) fn is_late(&self, shard: ShardId) -> bool {
        self.shards[shard.index()].0.late.load(Ordering::Relaxed) != 0
    }

    /// When a shard has promised to look.
    pub(crate) fn alarm(&self, shard: ShardId) -> Time {
        Time::from_nanos(self.shards[shard.index()].0.polls_by.load(Ordering::Relaxed))
    }

    /// By how much the latest shard is later than it was expected to poll, in nanoseconds; zero
    /// where there is one alone, which nobody expects.
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

    /// Whether the others expect nothing of a shard until it has work.
    pub(crate) fn is_idle(&self, shard: ShardId) -> bool {
        self.shards[shard.index()].0.is_idle()
    }

    /// Whether a shard polls as it promised, or at most `patience` later.
    pub(crate) fn is_live(&self, shard: ShardId, now: Time, patience: u64) -> bool {
        self.shards[shard.index()].0.is_live(now, patience)
    }

    /// Says whose turn is next among the children of a group of classes.
    pub(crate) fn publish_next(&self, shard: ShardId, parent: NodeId, child: Option<NodeId>) {
        self.publish(shard, parent, child.map_or(IDLE, u64::from));
    }

    /// Says how far this shard has come within a class.
    pub(crate) fn publish_class(&self, shard: ShardId, class: NodeId, tag: Option<u64>) {
        self.publish(shard, class, tag.map_or(IDLE, |tag| tag.min(IDLE - 1)));
    }

    /// Says this shard's tag among shards that take turns; `None` while nothing
    /// waits on it.
    pub(crate) fn publish_turn(&self, shard: ShardId, tag: Option<u64>) {
        let value = tag.map_or(IDLE, |tag| tag.min(IDLE - 1));
        self.shards[shard.index()].0.own_turn.store(value, Ordering::Relaxed);
    }

    /// The tag that turns have reached.
    pub(crate) fn turns_reached(&self) -> u64 {
        self.turns_reached.load(Ordering::Relaxed)
    }

    /// A shard has had its turn at this tag.
    pub(crate) fn advance_turns(&self, tag: u64) {
        if is_after(tag, self.turns_reached()) {
            self.turns_reached.store(tag, Ordering::Relaxed);
        }
    }

    fn publish(&self, shard: ShardId, node: NodeId, value: u64) {
        if self.sole() {
            return;
        }
        let slot = &self.shards[shard.index()].0.next[usize::from(node)];
        if slot.load(Ordering::Relaxed) != value {
            slot.store(value, Ordering::Relaxed);
        }
    }
}

/// Encoding: Nothing of a node is queued on a shard.
pub(super) const IDLE: u64 = u64::MAX;
/// In the place of a promise: nobody waits for the shard before it polls.
pub(super) const NOT_WAITED_FOR: Time = Time::from_nanos(u64::MAX - 1);

/// Which shards a lead is measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerFilter {
    /// Those that poll as they promised, or a patience later: see
    /// [`Peers::promise`](super::Peers::promise).
    Live { now: Time, patience: u64 },
    /// Those that polled lately, and were not late then. Late shards that have their turns one
    /// after another would wait for each other without end.
    PromptWithin { now: Time, nanos: u64 },
}

/// What one shard publishes. Only that shard writes it.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) joined: AtomicU32,
    pub(super) polls_by: AtomicU64,
    /// When it last polled, and whether it was late then.
    pub(super) polled_at: AtomicU64,
    pub(super) late: AtomicU32,
    /// When it last turned up after the disk had done all that it had sent.
    pub(super) away_at: AtomicU64,
    /// Disk time of what it had in the disk then, and of all that it has sent.
    pub(super) held: AtomicU64,
    pub(super) dispatched: AtomicU64,
    /// Disk time of the request that waits for room.
    pub(super) wanted: AtomicU64,
    /// Per group of classes, the child whose turn is next on this shard; per
    /// class, this shard's own start tag among the shards of the class.
    pub(super) next: Vec<AtomicU64>,
    /// Where shards take turns whatever their classes, this one's tag.
    pub(super) own_turn: AtomicU64,
}

impl Published {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            joined: AtomicU32::new(0),
            polls_by: AtomicU64::new(0),
            polled_at: AtomicU64::new(0),
            late: AtomicU32::new(0),
            away_at: AtomicU64::new(0),
            held: AtomicU64::new(0),
            dispatched: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            next: (0..nodes).map(|_| AtomicU64::new(IDLE)).collect(),
            own_turn: AtomicU64::new(IDLE),
        }
    }

    /// Where shards take turns whatever their classes: this one's tag, while it waits.
    pub(super) fn own_turn(&self) -> Option<u64> {
        Some(self.own_turn.load(Ordering::Relaxed)).filter(|tag| *tag != IDLE)
    }

    /// The tag of what is next on this shard, and how far the shard has come within
    /// the class if that is one.
    pub(super) fn turn(&self, tree: &ClassTree) -> Option<(u64, u64)> {
        if let Some(tag) = self.own_turn() {
            return Some((tag, 0));
        }
        let next = self.next[usize::from(ROOT)].load(Ordering::Relaxed);
        let node = (next != IDLE).then_some(next as NodeId)?;
        let own = if ClassTree::is_class(node) {
            self.next[usize::from(node)].load(Ordering::Relaxed)
        } else {
            0
        };
        Some((tree.node(node).tag(), own))
    }

    /// The others expect nothing of it until it has work.
    pub(super) fn is_idle(&self) -> bool {
        self.polls_by.load(Ordering::Relaxed) == Time::MAX.as_nanos()
    }

    pub(super) fn matches(&self, filter: PeerFilter) -> bool {
        match filter {
            PeerFilter::Live { now, patience } => self.is_live(now, patience),
            PeerFilter::PromptWithin { now, nanos } => {
                let polled_at = Time::from_nanos(self.polled_at.load(Ordering::Relaxed));
                self.joined.load(Ordering::Relaxed) == 1
                    && self.late.load(Ordering::Relaxed) == 0
                    && now.nanos_since(polled_at) <= nanos
            }
        }
    }

    pub(super) fn is_live(&self, now: Time, patience: u64) -> bool {
        let polls_by = Time::from_nanos(self.polls_by.load(Ordering::Relaxed));
        self.joined.load(Ordering::Relaxed) == 1
            && polls_by != NOT_WAITED_FOR
            && now.nanos_since(polls_by) <= patience
    }

    /// The most disk time that what this shard would dispatch in the place of
    /// `class`, or of a group it is in, is owed.
    pub(super) fn deficit_above(&self, tree: &ClassTree, class: NodeId) -> u64 {
        let (mut owed, mut child) = (0, class);
        while child != ROOT {
            let node = tree.node(child);
            let parent = node.parent();
            let next = self.next[usize::from(parent)].load(Ordering::Relaxed);
            if next != IDLE && next != u64::from(child) {
                // the tag itself may have moved since it was published
                owed = owed.max(tree.node(next as NodeId).behind(node.tag()));
            }
            child = parent;
        }
        owed
    }
}

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
    /// Only the shards count that match the `filter`; of many, as many as are looked at
    /// in one go, which begins at another place after each `turn`. So all are
    /// seen in time, and a request costs the same beside 8 shards and 255.
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

    /// As [`Peers::lead`], where shards take turns by the tags that
    /// [`Peers::publish_turn`] says, whatever their classes.
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

    /// The lead over the shards, by what each of them is `owed`.
    fn lead_over(
        &self,
        shard: ShardId,
        turn: u64,
        filter: PeerFilter,
        owed: impl Fn(&Published) -> u64,
    ) -> Lead {
        let mut lead = Lead::none(shard);
        let places = self.places();
        let looks = places.len().min(STEP_SHARDS_MAX);
        let first = (turn as usize).wrapping_mul(looks) % places.len().max(1);
        for look in 0..looks {
            let index = (first + look) % places.len();
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
        if looks < places.len() {
            let all = u128::from(lead.units_of_all) * places.len() as u128 / looks as u128;
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
        let tree = ClassTree::new(DiskTime::ZERO, false);
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
