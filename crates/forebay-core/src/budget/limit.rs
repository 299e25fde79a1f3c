//! What bounds the work that is unfinished in the disk.

use super::demand::Demand;
#[cfg(feature = "history")]
use super::littles_law::LittlesLaw;
use super::policy::Policy;
use super::room::Room;
use crate::sync::Padded;
use crate::{DiskModel, DiskTime};

/// Disk time of everything in the disk, and the bound of a policy on it.
#[derive(Debug)]
pub(super) struct Limit {
    in_flight: Padded<Room>,
    bound: Bound,
}

#[derive(Debug)]
#[cfg_attr(
    feature = "history",
    expect(clippy::large_enum_variant, reason = "there is one per disk")
)]
enum Bound {
    None,
    /// So much disk time, as told with each request.
    Window,
    Requests {
        max: u64,
        in_disk: Padded<Room>,
    },
    #[cfg(feature = "history")]
    LittlesLaw(LittlesLaw),
}

impl Limit {
    /// `sole` if a single shard uses it.
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    pub(super) fn new(policy: &Policy, model: &DiskModel, sole: bool) -> Self {
        let bound = match policy {
            Policy::PaceWindow { .. } => Bound::Window,
            Policy::Concurrency { requests } => Bound::Requests {
                max: u64::from(*requests).max(1),
                in_disk: Padded(Room::new(sole)),
            },
            #[cfg(feature = "history")]
            Policy::LittlesLaw { .. } => Bound::LittlesLaw(LittlesLaw::new(model, sole)),
            _ => Bound::None,
        };
        Self { in_flight: Padded(Room::new(sole)), bound }
    }

    /// Disk time of everything in the disk.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.0.used()
    }

    /// Whether nothing is bounded.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.bound, Bound::None)
    }

    /// Whether a window is what bounds the disk.
    #[inline]
    pub(super) fn is_window(&self) -> bool {
        matches!(self.bound, Bound::Window)
    }

    /// What is free, scaled to an effective `goal`; of what is in the disk so
    /// much is `uncounted` in the window.
    pub(super) fn part_free(&self, goal: DiskTime, window: u64, uncounted: DiskTime) -> DiskTime {
        match &self.bound {
            Bound::None => goal,
            Bound::Window => self.in_flight.0.part_free(window, uncounted.units(), goal),
            Bound::Requests { max, in_disk } => in_disk.0.part_free(*max, 0, goal),
            #[cfg(feature = "history")]
            Bound::LittlesLaw(law) => law.part_free(goal),
        }
    }

    /// Takes room for `demand`; returns the disk time that was in the disk before.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn enter(&self, demand: &Demand, goal: DiskTime, window: u64) -> Option<u64> {
        if self.is_window() {
            return self.in_flight.0.enter(window, demand.cost.units());
        }
        self.enter_by_count(demand, goal)
    }

    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    fn enter_by_count(&self, demand: &Demand, goal: DiskTime) -> Option<u64> {
        match &self.bound {
            Bound::None | Bound::Window => {}
            Bound::Requests { max, in_disk } => {
                in_disk.0.enter(*max, 1)?;
            }
            #[cfg(feature = "history")]
            Bound::LittlesLaw(law) => law.enter(goal, demand)?,
        }
        Some(self.in_flight.0.enter_anyway(demand.cost.units()))
    }

    /// Takes room however much is used.
    pub(super) fn enter_anyway(&self, demand: &Demand) {
        match &self.bound {
            Bound::None | Bound::Window => {}
            Bound::Requests { in_disk, .. } => _ = in_disk.0.enter_anyway(1),
            #[cfg(feature = "history")]
            Bound::LittlesLaw(law) => law.enter_anyway(demand),
        }
        self.in_flight.0.enter_anyway(demand.cost.units());
    }

    /// Gives the room of `demand` back.
    #[inline]
    pub(super) fn leave(&self, demand: &Demand) {
        self.in_flight.0.leave(demand.cost.units());
        match &self.bound {
            Bound::None | Bound::Window => {}
            Bound::Requests { in_disk, .. } => in_disk.0.leave(1),
            #[cfg(feature = "history")]
            Bound::LittlesLaw(law) => law.leave(demand),
        }
    }

    /// Whether there is room, asked by a queue that has just left a mark and
    /// would otherwise sleep; see [`Room::open_after_mark`].
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "for Little's law"))]
    pub(super) fn open_after_mark(&self, goal: DiskTime, window: u64) -> bool {
        match &self.bound {
            Bound::None => true,
            Bound::Window => self.in_flight.0.open_after_mark(window),
            Bound::Requests { max, in_disk } => in_disk.0.open_after_mark(*max),
            #[cfg(feature = "history")]
            Bound::LittlesLaw(law) => law.open_after_mark(goal),
        }
    }
}
