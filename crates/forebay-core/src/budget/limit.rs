//! The limit of a policy on the work in flight.

use alloc::boxed::Box;

use super::policy::Policy;
use crate::sync::{Ordering, Padded, Tally};
use crate::{DiskModel, DiskTime, Op};

/// What a request asks of the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) cost: DiskTime,
    /// The disk time that the pace charges. It is less than `cost` if the disk is known not to seek.
    pub(crate) paced: DiskTime,
    /// Whether nothing of its class waited on its shard when it was enqueued.
    pub(crate) fresh: bool,
    #[cfg(feature = "history")]
    op: Op,
    #[cfg(feature = "history")]
    len: u64,
}

impl Demand {
    /// The demand of a request that costs `cost`. Only policies of the feature `history` use `op` and `len`.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    #[inline(always)]
    pub(crate) const fn new(cost: DiskTime, op: Op, len: u64, fresh: bool) -> Self {
        Self {
            cost,
            paced: cost,
            fresh,
            #[cfg(feature = "history")]
            op,
            #[cfg(feature = "history")]
            len,
        }
    }
}

/// The disk time in flight, and the bound of a policy.
#[derive(Debug)]
pub(super) struct Limit {
    in_flight: Padded<Room>,
    bound: Bound,
}

#[derive(Debug)]
enum Bound {
    None,
    /// A bound on the disk time in flight. Each call passes the present window.
    Window,
    ByUnit(Box<UnitBound>),
}

impl Limit {
    /// `sole` is true if a single shard uses it.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    pub(super) fn new(policy: &Policy, model: &DiskModel, sole: bool) -> Self {
        let by_unit = |unit| {
            let rooms = [Padded(Room::new(sole)), Padded(Room::new(sole))];
            Bound::ByUnit(Box::new(UnitBound { rooms, unit }))
        };
        let bound = match policy {
            Policy::PaceWindow { .. } => Bound::Window,
            Policy::Concurrency { requests } => {
                by_unit(Unit::Requests { max: u64::from(*requests).max(1) })
            }
            #[cfg(feature = "history")]
            Policy::LittlesLaw { .. } => by_unit(Unit::OperationsAndBytes(Box::new(model.clone()))),
            _ => Bound::None,
        };
        Self { in_flight: Padded(Room::new(sole)), bound }
    }

    /// Disk time in flight, in units.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.0.used()
    }

    /// Whether the policy has no bound.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.bound, Bound::None)
    }

    /// Whether the bound is a window.
    #[inline]
    pub(super) fn is_window(&self) -> bool {
        matches!(self.bound, Bound::Window)
    }

    /// The free part of the bound, scaled to the effective `goal`. `uncounted` is disk time in flight that
    /// does not count in the window.
    pub(super) fn part_free(&self, goal: DiskTime, window: u64, uncounted: DiskTime) -> DiskTime {
        match &self.bound {
            Bound::None => goal,
            Bound::Window => self.in_flight.0.part_free(window, uncounted.units(), goal),
            Bound::ByUnit(bound) => bound.part_free(goal),
        }
    }

    /// Takes room for `demand`. Returns the disk time in flight before; `None` if there is no room.
    // inlined for the hot path of each request; other callers are rare
    #[inline(always)]
    pub(super) fn enter(&self, demand: &Demand, goal: DiskTime, window: u64) -> Option<u64> {
        if self.is_window() {
            return self.in_flight.0.enter(window, demand.cost.units());
        }
        self.enter_by_count(demand, goal)
    }

    fn enter_by_count(&self, demand: &Demand, goal: DiskTime) -> Option<u64> {
        if let Bound::ByUnit(bound) = &self.bound {
            bound.enter(goal, demand)?;
        }
        Some(self.in_flight.0.enter_anyway(demand.cost.units()))
    }

    /// Takes room for `demand`, however much is in flight.
    pub(super) fn enter_anyway(&self, demand: &Demand) {
        if let Bound::ByUnit(bound) = &self.bound {
            bound.each(demand, Room::enter_anyway);
        }
        self.in_flight.0.enter_anyway(demand.cost.units());
    }

    /// Gives the room of `demand` back.
    #[inline]
    pub(super) fn leave(&self, demand: &Demand) {
        self.in_flight.0.leave(demand.cost.units());
        if let Bound::ByUnit(bound) = &self.bound {
            bound.each(demand, Room::leave);
        }
    }

    /// Whether there is room. A queue calls this after it has left its mark and before it sleeps; see
    /// [`Room::open_after_mark`].
    pub(super) fn open_after_mark(&self, goal: DiskTime, window: u64) -> bool {
        match &self.bound {
            Bound::None => true,
            Bound::Window => self.in_flight.0.open_after_mark(window),
            Bound::ByUnit(bound) => bound.open_after_mark(goal),
        }
    }
}

/// The bound of a policy for comparison, in its own units.
#[derive(Debug)]
struct UnitBound {
    rooms: [Padded<Room>; 2],
    unit: Unit,
}

#[derive(Debug)]
enum Unit {
    /// At most this many requests (2016). The second room is not used.
    Requests { max: u64 },
    /// Operations and bytes, each in disk time and per direction: an operation takes `1 / IOPS`, and its
    /// bytes take `bytes / bandwidth`. Each of the two rooms holds one goal, by Little's law (ScyllaDB,
    /// 2018).
    #[cfg(feature = "history")]
    OperationsAndBytes(Box<DiskModel>),
}

impl UnitBound {
    /// The amounts that a request takes from the two rooms.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    fn amounts(&self, demand: &Demand) -> [u64; 2] {
        match &self.unit {
            Unit::Requests { .. } => [1, 0],
            #[cfg(feature = "history")]
            Unit::OperationsAndBytes(model) => {
                let (operation, bytes) =
                    (model.cost(demand.op, 0), model.bytes_cost(demand.op, demand.len));
                [operation.units(), bytes.units()]
            }
        }
    }

    /// The two rooms with their limits.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    fn limited(&self, goal: DiskTime) -> [(&Room, u64); 2] {
        let limits = match self.unit {
            Unit::Requests { max } => [max, u64::MAX],
            #[cfg(feature = "history")]
            Unit::OperationsAndBytes(_) => [goal.units(); 2],
        };
        [(&self.rooms[0].0, limits[0]), (&self.rooms[1].0, limits[1])]
    }

    fn enter(&self, goal: DiskTime, demand: &Demand) -> Option<()> {
        let ([(first, most), (second, most_of_second)], [amount, of_second]) =
            (self.limited(goal), self.amounts(demand));
        first.enter(most, amount)?;
        if second.enter(most_of_second, of_second).is_none() {
            first.leave(amount);
            return None;
        }
        Some(())
    }

    /// Calls `change` for each room, with the amount that the request takes from it.
    fn each<T>(&self, demand: &Demand, change: impl Fn(&Room, u64) -> T) {
        for (room, amount) in self.rooms.iter().zip(self.amounts(demand)) {
            change(&room.0, amount);
        }
    }

    fn open_after_mark(&self, goal: DiskTime) -> bool {
        self.limited(goal).into_iter().all(|(room, limit)| room.open_after_mark(limit))
    }

    fn part_free(&self, goal: DiskTime) -> DiskTime {
        let [first, second] =
            self.limited(goal).map(|(room, limit)| room.part_free(limit, 0, goal));
        first.min(second)
    }
}

/// An atomic counter of what has entered and not left.
#[derive(Debug)]
pub(crate) struct Room {
    used: Tally,
}

impl Room {
    /// An empty room. `sole` is true if a single shard uses it.
    pub(crate) fn new(sole: bool) -> Self {
        Self { used: Tally::new(sole) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Adds `amount` if less than `limit` is used, so the limit is exceeded by at most one request. Returns
    /// the amount used before; `None` if it was not added.
    pub(crate) fn enter(&self, limit: u64, amount: u64) -> Option<u64> {
        self.used.update(|used| (used < limit).then(|| used.wrapping_add(amount)))
    }

    /// Adds `amount`, however much is used. Returns the amount used before.
    pub(crate) fn enter_anyway(&self, amount: u64) -> u64 {
        self.used.fetch_add(amount, Ordering::AcqRel)
    }

    /// Gives `amount` back, by an atomic read-modify-write with AcqRel: see [`Room::open_after_mark`].
    pub(crate) fn leave(&self, amount: u64) {
        let before = self.used.fetch_sub(amount, Ordering::AcqRel);
        debug_assert!(before >= amount, "what leaves has entered: {amount} of {before}");
    }

    /// Whether one more request may enter. A queue calls this after it has left its mark and before it
    /// sleeps. It is a read-modify-write of the number that `leave` changes. If it comes after `leave`, it
    /// sees the room. If `leave` comes after it, the caller of `leave` sees the mark.
    fn open_after_mark(&self, limit: u64) -> bool {
        self.used.fetch_add(0, Ordering::AcqRel) < limit
    }

    /// The free part of `limit`, scaled to `whole`. `uncounted` of the used amount does not count. It is
    /// rounded up, so it is zero only where nothing more may enter.
    fn part_free(&self, limit: u64, uncounted: u64, whole: DiskTime) -> DiskTime {
        let free = limit.saturating_sub(self.used().saturating_sub(uncounted));
        let scaled = u128::from(whole.units()) * u128::from(free);
        let scaled = scaled.div_ceil(u128::from(limit.max(1)));
        DiskTime::from_units(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}
