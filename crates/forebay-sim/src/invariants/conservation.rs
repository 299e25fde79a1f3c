//! The disk does not idle while work waits.
//!
//! While a whole effective goal of the budget lies unused, a shard that has work and is awake sends
//! some of it within the bound: two windows, the tick and the wake-up latency, and as long as a
//! request has ever been in the disk, since a shard may wait for one of its own.

use forebay_core::{IoGroup, Time};

use super::Wrong;

#[derive(Debug)]
pub(super) struct Conservation {
    /// The tick and the wake-up latency.
    notice_nanos: u64,
    longest_in_disk: u64,
    dispatched: bool,
    /// Whether work waited when the last step ended, and when that was.
    waits_since: Option<Time>,
    /// Since when work waits and a whole goal lies unused.
    unused_since: Option<Time>,
}

impl Conservation {
    pub(super) fn new(notice_nanos: u64) -> Self {
        Self {
            notice_nanos,
            longest_in_disk: 0,
            dispatched: false,
            waits_since: None,
            unused_since: None,
        }
    }

    pub(super) fn dispatched(&mut self) {
        self.dispatched = true;
    }

    pub(super) fn completed(&mut self, disk_nanos: u64) {
        self.longest_in_disk = self.longest_in_disk.max(disk_nanos);
    }

    /// Whether too long a time has passed since the last step.
    pub(super) fn before_step(&mut self, now: Time, group: &IoGroup) -> Result<(), Wrong> {
        let bound = self.bound(group);
        let Some(since) = self.waits_since else { return Ok(()) };
        let Some(then) = now.as_nanos().checked_sub(bound).map(Time::from_nanos) else {
            return Ok(());
        };
        if then >= since && is_unused(group, then) {
            return Err(wasted(bound));
        }
        Ok(())
    }

    pub(super) fn after_step(
        &mut self,
        now: Time,
        group: &IoGroup,
        (someone_waits, oldest): (bool, Option<Time>),
    ) -> Result<(), Wrong> {
        let age = oldest.map_or(0, |at| now.nanos_since(at));
        self.longest_in_disk = self.longest_in_disk.max(age);
        let dispatched = std::mem::take(&mut self.dispatched);
        self.waits_since = someone_waits.then_some(now);
        if !someone_waits || dispatched || !is_unused(group, now) {
            self.unused_since = None;
            return Ok(());
        }
        let since = *self.unused_since.get_or_insert(now);
        let bound = self.bound(group);
        if now.nanos_since(since) > bound { Err(wasted(bound)) } else { Ok(()) }
    }

    fn bound(&self, group: &IoGroup) -> u64 {
        let windows = group.window().as_nanos_ceil().saturating_mul(2);
        windows.saturating_add(self.notice_nanos).saturating_add(self.longest_in_disk)
    }
}

fn is_unused(group: &IoGroup, now: Time) -> bool {
    group.unused(now) >= group.effective_goal()
}

fn wasted(bound: u64) -> Wrong {
    (None, format!("work has waited beside an unused budget for more than {bound} ns"))
}
