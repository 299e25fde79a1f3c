//! The sizes of windows: how much disk time may be in flight.

use super::control::Terms;
use super::goal::two_goals_units;
use super::price::Price;
use super::{Budget, LATENCY_GOAL_DEFAULT, OVERDRAFT_GOALS, overdue};
use crate::{DiskTime, saturating_nanos};

/// The windows that others may have in flight beyond the window while a limit holds nested requests back. The
/// pace hands out this much before the requests of the holders may be given up. With fewer, requests of the
/// holders keep others out of an empty disk.
const HELD_WINDOWS: u64 = overdue::WINDOWS;

/// The time in which a disk that keeps up completes what it was sent, in windows. Requests of a shard that
/// has not polled for longer are stale. A shard that comes back later than that for its completions is late.
const SERVICE_WINDOWS: u64 = 2;

/// Which of the shards that wait for room are woken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomShare {
    /// The number of shards that are woken in any case.
    pub(crate) shards: usize,
    /// More shards are woken, until their next requests need this much room.
    pub(crate) room: DiskTime,
}

impl RoomShare {
    pub(crate) fn at_least(self, shards: usize) -> Self {
        Self { shards: self.shards.max(shards), ..self }
    }
}

/// The longest absence of all threads that is bridged where trials find the window, as disk time (16 ms). A
/// thread waits for as long if five others use its processor for 3 ms each. A longer bridge lets more work go
/// beyond the window.
const BRIDGE_MAX: DiskTime = DiskTime::from_nanos(16_000_000);

impl Budget {
    /// The window in which patience is counted: the window in force, but at least the window by the figures.
    /// So the patience with the disk and with other shards grows with the window, and does not shrink.
    pub(crate) fn window(&self) -> DiskTime {
        let found = self.controller.window(self.effective_goal()).map(DiskTime::from_units);
        let window = self.two_goals().max(found.unwrap_or_default());
        // requests of other processes in the disk delay those of this one
        if self.controller.part.is_in_force() { window.max(self.busy_window()) } else { window }
    }

    /// The time in which a disk that keeps up completes what it was sent, in nanoseconds.
    pub(crate) fn service_horizon_nanos(&self) -> u64 {
        self.window().as_nanos_ceil().saturating_mul(SERVICE_WINDOWS)
    }

    /// The window by the figures, with an effective goal of at least the default latency goal.
    pub(crate) fn busy_window(&self) -> DiskTime {
        let least = DiskTime::from_nanos(saturating_nanos(LATENCY_GOAL_DEFAULT));
        let goal = self.effective_goal().max(least);
        DiskTime::from_units(two_goals_units(goal))
    }

    /// The window of all processes that share the disk, without trials, which would find that of one process.
    /// A larger window than needed holds all requests that there are, and shares have no effect then.
    fn window_of_all(&self) -> DiskTime {
        let is_known = self.base_latency() > DiskTime::ZERO;
        if is_known { self.two_goals() } else { self.busy_window() }
    }

    /// The window by the figures, which trials do not move.
    pub(crate) fn two_goals(&self) -> DiskTime {
        DiskTime::from_units(two_goals_units(self.effective_goal()))
    }

    /// The window for requests that are not fresh, in units of disk time.
    pub(super) fn limit_units(&self, goal: DiskTime) -> u64 {
        self.terms(goal).window
    }

    /// The price of the present mix by the figures. Windows are counted by it, because a pace that does not
    /// bind is no reason for a larger window.
    #[inline]
    pub(super) fn price_of_figures(&self) -> Price {
        self.mix.0.price()
    }

    /// The bounds on a request now.
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
            // the trials of one process would take the disk from the others
            price = self.controller.figures_bound.price(by_figures).unwrap_or_else(by_figures);
            window = price.done_in(self.window_of_all().units());
        }
        // a reserve would be the room of other processes
        Terms { price, window: self.controller.part.of_window(window), reserves: false }
    }

    /// Whether fresh requests find a larger window.
    pub(crate) fn reserves_for_fresh(&self) -> bool {
        self.terms(self.effective_goal()).reserves
    }

    /// Whether trials search for the window.
    #[inline]
    pub(crate) fn searches_knee(&self) -> bool {
        self.controller.knee().is_some()
    }

    /// The part of `unattended` that does not count in the window, at most what late shards may have sent.
    /// `unattended` is disk time that the disk must have completed and late shards have not taken back.
    pub(crate) fn uncounted(&self, unattended: DiskTime) -> DiskTime {
        let (window, goal) = (self.window().units(), self.effective_goal());
        let sent = Terms { window, ..self.terms(goal) }.window_of_fresh(DiskTime::ZERO);
        let most = sent.saturating_add(goal.units().saturating_mul(OVERDRAFT_GOALS));
        unattended.min(DiskTime::from_units(most))
    }

    /// The disk time by which the window may be exceeded so that the disk has work while all threads are
    /// away.
    pub(crate) fn bridge_max(&self) -> DiskTime {
        let goals = self.effective_goal().units().saturating_mul(OVERDRAFT_GOALS);
        let most = if self.searches_knee() { BRIDGE_MAX.units() } else { 0 };
        DiskTime::from_units(goals.max(most))
    }

    /// Which of the shards that wait for room are woken when a request frees some. Usually it is one; it is
    /// two while less than half of the window is used. While less than an eighth is used, it is as many as
    /// there is room for. It is all of them if the policy has no window.
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

    /// Whether others may go beyond the window while a limit holds nested requests back, because the holders
    /// may be what fills it.
    pub(crate) fn has_room_for_others(&self) -> bool {
        let most = self.window().units().saturating_mul(1 + HELD_WINDOWS);
        self.limit.in_flight() < most
    }

    /// Whether the policy has a window, and there is room in it.
    pub(crate) fn has_room(&self) -> bool {
        self.limit.is_window() && self.limit.in_flight() < self.limit_units(self.effective_goal())
    }

    /// Whether there is room. A queue calls this after it has left its mark and before it sleeps.
    pub(crate) fn room_after_mark(&self) -> bool {
        let goal = self.effective_goal();
        self.limit.open_after_mark(goal, self.limit_units(goal))
    }
}
