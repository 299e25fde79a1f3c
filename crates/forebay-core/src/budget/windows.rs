//! How much disk time may be unfinished in the disk.

use super::control::Terms;
use super::goal::two_goals_units;
use super::price::Price;
use super::{Budget, LATENCY_GOAL_DEFAULT, OVERDRAFT_GOALS, overdue};
use crate::{DiskTime, saturating_nanos};

/// The windows that may be unfinished in addition while a limit holds nested requests back. The pace hands
/// out as much until the requests that they hold may be given up. With fewer, what is held keeps
/// others out of an empty disk.
const HELD_WINDOWS: u64 = overdue::WINDOWS;

/// A disk that keeps up has done what it got after this many windows. What a shard holds that has not
/// polled for as long is stale, and a shard that comes back later than that to take it is late.
const SERVICE_WINDOWS: u64 = 2;

/// How many of the shards that wait for room are woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomShare {
    /// As many at least,
    pub(crate) shards: usize,
    /// and more until their next requests need this room.
    pub(crate) room: DiskTime,
}

impl RoomShare {
    pub(crate) fn at_least(self, shards: usize) -> Self {
        Self { shards: self.shards.max(shards), ..self }
    }
}

/// The longest absence of all threads that is bridged where trials find the window, as disk time
/// (16 ms). A thread waits for as long where five others use its processor for 3 ms each. A longer
/// one lets more of the disk's work go outside of the window.
const BRIDGE_MAX: DiskTime = DiskTime::from_nanos(16_000_000);

impl Budget {
    /// Most disk time that may be unfinished when another request goes. Where the
    /// disk and not the figures say how much that is, never less than the figures do: patience
    /// with the disk and with other shards grows with the window, and does not shrink.
    pub(crate) fn window(&self) -> DiskTime {
        let found = self.controller.window(self.effective_goal()).map(DiskTime::from_units);
        let window = self.two_goals().max(found.unwrap_or_default());
        // what others have in the disk is in the way of this
        if self.controller.part.is_in_force() { window.max(self.busy_window()) } else { window }
    }

    /// After this time, in nanoseconds, a disk that keeps up has done what it got.
    pub(crate) fn service_horizon_nanos(&self) -> u64 {
        self.window().as_nanos_ceil().saturating_mul(SERVICE_WINDOWS)
    }

    /// Two effective goals of the default latency goal or more.
    pub(crate) fn busy_window(&self) -> DiskTime {
        let least = DiskTime::from_nanos(saturating_nanos(LATENCY_GOAL_DEFAULT));
        let goal = self.effective_goal().max(least);
        DiskTime::from_units(two_goals_units(goal))
    }

    /// The window of all processes that use the disk, where trials would find that of one. A larger one
    /// than needed holds all requests that there are, and shares have no effect then.
    fn window_of_all(&self) -> DiskTime {
        let is_known = self.base_latency() > DiskTime::ZERO;
        if is_known { self.two_goals() } else { self.busy_window() }
    }

    /// The window by the figures, which no trial moves.
    pub(crate) fn two_goals(&self) -> DiskTime {
        DiskTime::from_units(two_goals_units(self.effective_goal()))
    }

    /// Most disk time that may be unfinished now, in units.
    pub(super) fn limit_units(&self, goal: DiskTime) -> u64 {
        self.terms(goal).window
    }

    /// What disk time of the present mix costs by the figures. Windows are counted by it: a pace
    /// that does not bind is no reason for a larger window.
    #[inline]
    pub(super) fn price_of_figures(&self) -> Price {
        self.mix.0.price()
    }

    /// What binds a request now.
    #[inline(always)]
    pub(super) fn terms(&self, goal: DiskTime) -> Terms {
        if self.controller.part.is_in_force() {
            return self.terms_of_part(goal);
        }
        self.controller.alone(goal, || self.price_of_figures())
    }

    #[cold]
    fn terms_of_part(&self, goal: DiskTime) -> Terms {
        let by_figures = || self.price_of_figures();
        let Terms { mut price, mut window, .. } = self.controller.alone(goal, by_figures);
        if self.searches_knee() {
            // trials of one process would take the disk from the others
            price = self.controller.figures_bound.price(by_figures).unwrap_or_else(by_figures);
            window = price.done_in(self.window_of_all().units());
        }
        // what is reserved would be the others' room
        Terms { price, window: self.controller.part.of_window(window), reserves: false }
    }

    /// Whether fresh requests find a larger window.
    pub(crate) fn reserves_for_fresh(&self) -> bool {
        self.terms(self.effective_goal()).reserves
    }

    /// Whether completed requests are reported to the search for the window.
    #[inline]
    pub(crate) fn searches_knee(&self) -> bool {
        self.controller.knee().is_some()
    }

    /// How much of what late shards hold unattended does not count: no more than they may have sent.
    pub(crate) fn uncounted(&self, unattended: DiskTime) -> DiskTime {
        let (window, goal) = (self.window().units(), self.effective_goal());
        let sent = Terms { window, ..self.terms(goal) }.window_of_fresh(DiskTime::ZERO);
        let most = sent.saturating_add(goal.units().saturating_mul(OVERDRAFT_GOALS));
        unattended.min(DiskTime::from_units(most))
    }

    /// By how much what is unfinished may exceed the window so that the disk has work while all
    /// threads are away.
    pub(crate) fn bridge_max(&self) -> DiskTime {
        let goals = self.effective_goal().units().saturating_mul(OVERDRAFT_GOALS);
        let most = if self.searches_knee() { BRIDGE_MAX.units() } else { 0 };
        DiskTime::from_units(goals.max(most))
    }

    /// Whom to wake of those that wait for room when some was freed: one for each
    /// request, and where little is used, as many as there is room for. Where a
    /// budget is not counted in disk time, all.
    pub(crate) fn room_share(&self) -> RoomShare {
        if !self.limit.is_window() {
            return RoomShare { shards: usize::MAX, room: DiskTime::ZERO };
        }
        let (used, window) = (self.limit.in_flight(), self.limit_units(self.effective_goal()));
        match used {
            _ if used < window / 8 => {
                RoomShare { shards: 2, room: DiskTime::from_units(window - used) }
            }
            _ if used < window / 2 => RoomShare { shards: 2, room: DiskTime::ZERO },
            _ => RoomShare { shards: 1, room: DiskTime::ZERO },
        }
    }

    /// Whether what is unfinished beyond the window may be what the holders of nested requests keep
    /// while a limit holds them back.
    pub(crate) fn has_room_for_others(&self) -> bool {
        let most = self.window().units().saturating_mul(1 + HELD_WINDOWS);
        self.limit.in_flight() < most
    }

    /// Whether the window, if that is what bounds the disk, is open.
    pub(crate) fn has_room(&self) -> bool {
        self.limit.is_window() && self.limit.in_flight() < self.limit_units(self.effective_goal())
    }

    /// Whether there is room, asked by a queue that has just left a mark and
    /// would otherwise sleep.
    pub(crate) fn room_after_mark(&self) -> bool {
        let goal = self.effective_goal();
        self.limit.open_after_mark(goal, self.limit_units(goal))
    }
}
