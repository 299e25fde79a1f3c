//! Requests whose owners hold others in the disk: they wait for their turn and
//! the pace, but not for room, which they may keep themselves.

use super::lead::LEAD_PER_UNUSED;
use super::stop::Stop;
use super::{EnqueueError, IoQueue};
use crate::budget::Demand;
use crate::requests::Ticket;
use crate::shard_set::ShardSet;
use crate::{Access, Blocked, ClassId, DiskTime, Time};

/// After this time a policy whose rate needs completions is asked again.
const RETRY_NANOS: u64 = 1_000_000;

impl IoQueue {
    /// [`enqueue`](Self::enqueue), for an owner who has a request in the disk
    /// and will not complete it before this one is done: two such owners would
    /// wait for each other where their requests fill the window.
    ///
    /// The request stands in the order like any other. But while it waits, the
    /// window binds nobody in the group: what is before it goes at the pace,
    /// and then it goes. So at most what the pace hands out while it waits is
    /// in the disk beyond the window; [`QueueCounters::window_bypasses`] counts
    /// it. A policy without a rate lets all that is before it go at once.
    ///
    /// [`Limits`](crate::Limits) bind it like any other. While one holds it
    /// back, what its owner holds would keep others out of the disk: so they go
    /// past the window then, at the pace, as long as at most eight windows more
    /// are in the disk.
    ///
    /// [`QueueCounters::window_bypasses`]: crate::QueueCounters::window_bypasses
    ///
    /// # Errors
    /// As for [`enqueue`](Self::enqueue).
    pub fn enqueue_nested(
        &mut self,
        now: Time,
        class: ClassId,
        access: impl Into<Access>,
        len: u64,
    ) -> Result<Ticket, EnqueueError> {
        self.queue(now, class, access.into(), len, true)
    }

    /// Whether a nested request waits that no limit holds back: here, or on another
    /// shard that polls as it promised.
    pub(super) fn nested_waits(&self, now: Time) -> bool {
        self.fair.nested_waits() || self.is_told(&self.shared.nested, now)
    }

    /// Whether what waits goes at the pace alone where the window is full.
    pub(super) fn may_bypass_window(&self, now: Time) -> bool {
        self.nested_waits(now)
            || (self.shared.tree.is_limited()
                && (self.fair.nested_is_throttled()
                    || self.is_told(&self.shared.nested_throttled, now))
                && self.shared.budget.has_room_beside_held())
    }

    fn is_told(&self, nested: &ShardSet, now: Time) -> bool {
        let (peers, patience) = (&self.shared.peers, self.shared.patience());
        nested.any_of(|shard| peers.is_live(shard, now, patience))
    }

    /// [`attempt`](Self::attempt) where the window is full and binds nobody.
    #[cold]
    pub(super) fn attempt_bypass(
        &mut self,
        now: Time,
        class: u16,
        index: u32,
        ask: &Demand,
    ) -> Result<Ticket, Stop> {
        if !self.is_of_run(index) {
            self.check_lead_of_pace(class, now)?;
        }
        match self.shared.budget.reserve_bypass(now, ask) {
            Ok(()) => {
                self.pop(now, class, index);
                self.totals.window_bypasses += 1;
                self.totals.window_bypass_consumption =
                    self.totals.window_bypass_consumption.plus(ask.cost);
                Ok(self.dispatch(now, index, false))
            }
            Err(Some(open_at)) => Err(self.stop_by_pace(now, class, index, open_at)),
            Err(None) => {
                let resume_at = Some(now.plus_nanos(RETRY_NANOS));
                Err(Stop { reason: Blocked::Window, resume_at })
            }
        }
    }

    /// Shards that are behind go first, until the pace has left so much unused
    /// that they had their turn.
    fn check_lead_of_pace(&mut self, class: u16, now: Time) -> Result<(), Stop> {
        if self.shared.peers.alone() {
            return Ok(());
        }
        let lead = self.lead(class, now);
        if self.passes_over(&lead) {
            // where the disk is slower than its model the pace is always open
            let waits_until = self.waits_until(lead.lagging_shard, DiskTime::ZERO, now);
            if waits_until > now {
                return Err(self.stop_for(&lead, waits_until, now));
            }
            self.shared.peers.stop_waiting_for(lead.lagging_shard);
        }
        let (unused, wasted) =
            (self.shared.budget.unused_of_rate(now), self.idle_budget_threshold());
        let needed = DiskTime::from_units((lead.units / LEAD_PER_UNUSED).min(wasted));
        if unused == DiskTime::ZERO || unused >= needed {
            return Ok(());
        }
        let resume_at = self.shared.budget.unused_at(now, needed);
        Err(Stop { reason: Blocked::FairnessLead, resume_at: Some(resume_at) })
    }

    /// Nothing goes from here now: the others learn whether a nested request waits
    /// here, and those that sleep until there is room are woken.
    pub(super) fn report_nested(&mut self, now: Time) {
        let (waits, throttled_nested) = (self.fair.nested_waits(), self.fair.nested_is_throttled());
        let changed = (waits, throttled_nested) != self.nested_reported;
        if changed {
            self.nested_reported = (waits, throttled_nested);
            self.shared.nested.set(self.shard, waits);
            self.shared.nested_throttled.set(self.shard, throttled_nested);
        }
        // two with nested requests of limited classes must not wake each other for ever
        if waits || (changed && throttled_nested) {
            self.collect_wakes(now);
        }
    }
}
