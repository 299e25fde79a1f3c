//! The disk does not idle while work waits.
//!
//! While a whole effective goal of the budget lies unused, a shard that has work and is awake sends
//! some of it within the bound: two windows, the tick and the wake-up latency, as long as a request
//! has ever been in the disk, since a shard may wait for one of its own, and the tick of the
//! scheduler, for which a shard that was passed over is waited for.
//!
//! What a shard has not taken back yet is no work for the disk: while there is none, a shard that
//! has work and is awake sends some within two windows, the tick and the wake-up latency, and the
//! 100 ms for which a shard sleeps on others at the longest.

use forebay_core::{IoGroup, Time};

use super::violation::Wrong;

/// How long late shards are waited for, in ticks (100 ms). After that a waiting shard polls on its
/// own.
const TICKS: u64 = 200;

#[derive(Debug, Default)]
pub(super) struct Conservation {
    /// The tick and the wake-up latency.
    notice_nanos: u64,
    /// The tick of the scheduler; `None` where shards that are due may be waited for for ever.
    patience_nanos: Option<u64>,
    longest_in_disk: u64,
    dispatched: bool,
    /// Whether work waited when the last step ended, and when that was.
    waits_since: Option<Time>,
    /// Since when work waits and a whole goal lies unused.
    unused_since: Option<Time>,
    /// Since when work waits and the disk has none.
    empty_since: Option<Time>,
}

/// What there is at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Whether a shard that is awake has work that no limit holds back.
    pub(super) someone_waits: bool,
    /// When the oldest request in the disk of such a shard went.
    pub(super) oldest: Option<Time>,
    /// Whether the disk has nothing to do.
    pub(super) disk_is_empty: bool,
}

impl Conservation {
    /// `patience_nanos` is the tick of the scheduler, if nobody is waited for longer than some of it.
    pub(super) fn new(notice_nanos: u64, patience_nanos: Option<u64>) -> Self {
        Self { notice_nanos, patience_nanos, ..Self::default() }
    }

    pub(super) fn dispatched(&mut self) {
        self.dispatched = true;
    }

    /// A command has come back that was in the disk for so long.
    pub(super) fn completed(&mut self, disk_nanos: u64) {
        self.longest_in_disk = self.longest_in_disk.max(disk_nanos);
    }

    /// Whether too long a time has passed since the last step.
    pub(super) fn before_step(&mut self, now: Time, group: &IoGroup) -> Result<(), Wrong> {
        let bound = self.bound(group);
        let Some(since) = self.waits_since else { return Ok(()) };
        if let Some(then) = now.as_nanos().checked_sub(bound).map(Time::from_nanos)
            && then >= since
            && is_unused(group, then)
        {
            return Err(wasted(bound));
        }
        self.check_empty(now, group)
    }

    pub(super) fn after_step(
        &mut self,
        now: Time,
        group: &IoGroup,
        state: State,
    ) -> Result<(), Wrong> {
        let age = state.oldest.map_or(0, |at| now.nanos_since(at));
        self.longest_in_disk = self.longest_in_disk.max(age);
        let dispatched = std::mem::take(&mut self.dispatched);
        self.waits_since = state.someone_waits.then_some(now);
        if state.someone_waits && state.disk_is_empty {
            self.empty_since.get_or_insert(now);
        } else {
            self.empty_since = None;
        }
        if !state.someone_waits || dispatched || !is_unused(group, now) {
            self.unused_since = None;
            return Ok(());
        }
        let since = *self.unused_since.get_or_insert(now);
        let bound = self.bound(group);
        if now.nanos_since(since) > bound { Err(wasted(bound)) } else { Ok(()) }
    }

    fn check_empty(&self, now: Time, group: &IoGroup) -> Result<(), Wrong> {
        let (Some(since), Some(patience)) = (self.empty_since, self.patience_nanos) else {
            return Ok(());
        };
        let others = patience.saturating_mul(TICKS);
        let windows = group.window().as_nanos_ceil().saturating_mul(2);
        let bound = windows.saturating_add(self.notice_nanos).saturating_add(others);
        if now.nanos_since(since) <= bound {
            return Ok(());
        }
        Err((None, format!("work has waited for more than {bound} ns while the disk had none")))
    }

    fn bound(&self, group: &IoGroup) -> u64 {
        let windows = group.window().as_nanos_ceil().saturating_mul(2);
        let patience = self.patience_nanos.unwrap_or(0);
        windows
            .saturating_add(self.notice_nanos)
            .saturating_add(self.longest_in_disk)
            .saturating_add(patience)
    }
}

fn is_unused(group: &IoGroup, now: Time) -> bool {
    group.unused(now) >= group.effective_goal()
}

fn wasted(bound: u64) -> Wrong {
    (None, format!("work has waited for more than {bound} ns while the budget was unused"))
}
