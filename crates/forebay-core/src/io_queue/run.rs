//! Runs: a stream that has the head of a disk that seeks keeps it for a while.
//!
//! Each change between a stream and other requests costs a seek, and a disk that
//! chooses the nearest request leaves a stream late or never. So a stream whose
//! turn it is, and of which more waits, gets the disk for itself: when what is in
//! the disk has been served, and then for [`RUN_NANOS`] of disk time. It is charged
//! as always, so classes that wait meanwhile go first afterwards.

use super::IoQueue;
use super::stop::Stop;
use super::streams::Span;
use crate::budget::Demand;
use crate::head::NOWHERE;
use crate::head_run::{Held, RUN_CHARGED_NANOS, RUN_NANOS, Run};
use crate::{Blocked, DiskTime, Op, Time};

/// After so long without a random request streams are alone, in nanoseconds: 20 runs.
const ALONE_NANOS: u64 = 20 * RUN_NANOS;

impl IoQueue {
    /// The next request of this queue's run, if it has one.
    #[inline(always)]
    pub(super) fn first_of_run(&mut self, now: Time) -> Result<Option<(u16, u32)>, Stop> {
        match self.streams.run {
            None => Ok(None),
            Some(run) => self.next_of_run(now, run),
        }
    }

    #[cold]
    fn next_of_run(&mut self, now: Time, run: Run) -> Result<Option<(u16, u32)>, Stop> {
        if !self.shared.peers.alone() {
            self.refresh_stale_peers(now);
        }
        let held = self.shared.head_run.held(now).filter(|held| held.shard == self.shard);
        let next = self.fair.first_of(run.class, now).filter(|&index| {
            self.streams.span(index).begin == run.next && !self.requests.at(index).already_charged
        });
        match (held, next) {
            // until it begins every class has its turn
            (Some(_), Some(_)) if run.begins_by.is_some() => Ok(None),
            (Some(_), Some(index)) => Ok(Some((run.class, index))),
            // its owner sends more when that is done
            (Some(held), None) if self.streams.ends_at(run.next, &self.requests) => {
                Err(Stop { reason: Blocked::FairnessLead, resume_at: Some(held.until) })
            }
            _ => {
                self.end_run(now);
                Ok(None)
            }
        }
    }

    /// Whether a request is the next one of this queue's run.
    #[inline(always)]
    pub(super) fn is_of_run(&self, index: u32) -> bool {
        self.streams.run.is_some_and(|run| self.streams.span(index).begin == run.next)
    }

    /// Whether a request of this queue's run pays for its bytes alone, if it is one.
    pub(super) fn pays_bytes_in_run(&self, index: u32) -> Option<bool> {
        self.streams.run.filter(|_| self.is_of_run(index)).map(|run| run.pays_bytes)
    }

    /// Whether no stream has the head.
    #[inline(always)]
    pub(super) fn has_no_run(&self, now: Time) -> bool {
        !self.model.seeks() || self.shared.head_run.held(now).is_none()
    }

    /// Whether a run is the reason for this stop: another shard has the head, or this shard
    /// looks again within a tick whether its own run may begin.
    pub(super) fn waits_for_a_run(&self, now: Time, stop: &Stop) -> bool {
        let looks_at = now.plus_nanos(self.shared.tick_nanos);
        self.model.seeks()
            && (!self.has_no_run(now) || stop.resume_at.is_some_and(|at| at <= looks_at))
    }

    /// While a stream of another shard has the head nothing goes, and while one waits
    /// for it only what is before it.
    #[inline(always)]
    pub(super) fn wait_for_run(&mut self, now: Time, class: u16) -> Result<(), Stop> {
        if self.has_no_run(now) { Ok(()) } else { self.wait_for_run_of_others(now, class) }
    }

    #[cold]
    fn wait_for_run_of_others(&mut self, now: Time, class: u16) -> Result<(), Stop> {
        self.shared.head_run.wait(self.shard);
        // it may have ended meanwhile
        match self.shared.head_run.held(now) {
            Some(held)
                if held.shard != self.shard
                    && (held.has_begun || self.lead(class, now).units > 0) =>
            {
                Err(Stop { reason: Blocked::FairnessLead, resume_at: Some(held.until) })
            }
            _ => Ok(()),
        }
    }

    /// A stream whose turn it is gets the head if more of it waits, and waits until
    /// it is there.
    #[inline(always)]
    pub(super) fn enter_run(&mut self, now: Time, class: u16, index: u32) -> Result<(), Stop> {
        if !self.model.seeks() {
            return Ok(());
        }
        self.begin_run(now, class, index)?;
        self.wait_for_head(now, index)
    }

    #[cold]
    fn begin_run(&mut self, now: Time, class: u16, index: u32) -> Result<(), Stop> {
        let Span { begin, end, .. } = self.streams.span(index);
        let goes_on =
            self.streams.ended_at(begin).is_some() && !self.requests.at(index).already_charged;
        let successor = self.requests.after(index).map(|index| self.streams.span(index).begin);
        let more_waits = successor == Some(end) && end != NOWHERE;
        // streams alone are better served by a disk that goes on where its head is
        let has_runs = self.shared.budget.counts_disk_time()
            && !self.fair.has_turns()
            && self.nanos_since_random(now) < ALONE_NANOS;
        if self.streams.run.is_some() || !goes_on || !more_waits || !has_runs {
            return Ok(());
        }
        // unless the disk idles and may be used, shards that are behind go first
        let (lead, budget) = (self.lead(class, now), &self.shared.budget);
        let is_busy = budget.in_flight() > DiskTime::ZERO;
        let is_wasted = budget.unused(now, DiskTime::ZERO).units() >= self.idle_budget_threshold();
        if lead.units > 0 && (is_busy || !is_wasted) {
            let looks_at = now.plus_nanos(self.shared.tick_nanos);
            return Err(self.stop_for(&lead, looks_at, now));
        }
        let begins_by = now.plus_nanos(RUN_NANOS);
        let until = begins_by.plus_nanos(RUN_NANOS);
        if self.shared.head_run.give(now, Held { shard: self.shard, until, has_begun: false }) {
            self.streams.run = Some(Run {
                class,
                next: begin,
                left: DiskTime::from_nanos(RUN_NANOS),
                chargeable: DiskTime::from_nanos(RUN_CHARGED_NANOS),
                begins_by: Some(begins_by),
                pays_bytes: self.only_streams(now),
            });
        }
        Ok(())
    }

    /// The first of a run waits until the disk has no more to do than a seek.
    #[cold]
    fn wait_for_head(&mut self, now: Time, index: u32) -> Result<(), Stop> {
        let Some(Run { next, begins_by: Some(begins_by), .. }) = self.streams.run else {
            return Ok(());
        };
        let (head, shard) = (&self.shared.head, self.shard);
        if self.streams.span(index).begin != next {
            return Ok(());
        }
        if !head.is_at(next) && !self.disk_has_one() && now < begins_by {
            return Err(Stop { reason: Blocked::FairnessLead, resume_at: Some(begins_by) });
        }
        let until = now.plus_nanos(RUN_NANOS);
        self.shared.head_run.give(now, Held { shard, until, has_begun: true });
        self.streams.run = self.streams.run.map(|run| Run { begins_by: None, ..run });
        Ok(())
    }

    /// Whether the disk has no more to do than a seek.
    fn disk_has_one(&self) -> bool {
        self.shared.budget.in_flight() <= self.model.cost(Op::Read, 1)
    }

    /// A request has come back: a stream may wait for that.
    #[cold]
    pub(super) fn leave_to_run(&mut self, now: Time) {
        if let Some(held) = self.shared.head_run.held(now)
            && held.shard != self.shard
            && self.disk_has_one()
        {
            self.shared.peers.promise(held.shard, now);
            self.wakes.push(held.shard);
        }
    }

    /// The pace counts the time of the disk for a request of a run. Its class may be charged a
    /// seek in addition.
    #[inline(always)]
    pub(super) fn pace_run(&self, index: u32, ask: &mut Demand) {
        if self.is_of_run(index) {
            ask.paced = self.time_of_head(index);
        }
    }

    /// What the disk does for a request of a run: the first one takes a seek.
    fn time_of_head(&self, index: u32) -> DiskTime {
        let request = self.requests.at(index);
        if self.shared.head.is_at(self.streams.span(index).begin) {
            self.model.sequential_cost(request.op, request.len)
        } else {
            self.model.cost(request.op, request.len)
        }
    }

    /// Takes a request out of the order and charges it.
    // on the way of each request; other callers are rare
    #[inline(always)]
    pub(super) fn pop(&mut self, now: Time, class: u16, index: u32) {
        if self.is_of_run(index) {
            self.pop_of_run(now, class, index);
        } else {
            self.fair.pop(&mut self.requests, class, index, now);
        }
    }

    #[cold]
    fn pop_of_run(&mut self, now: Time, class: u16, index: u32) {
        self.fair.pop_out_of_turn(&mut self.requests, class, index, now);
        let (cost, next) = (self.time_of_head(index), self.streams.span(index).end);
        let charged = self.requests.at(index).cost;
        if let Some(run) = &mut self.streams.run {
            (run.left, run.next) = (run.left.minus(cost), next);
            run.chargeable = run.chargeable.minus(charged);
            if run.left == DiskTime::ZERO || run.chargeable == DiskTime::ZERO {
                self.end_run(now);
            }
        }
    }

    fn end_run(&mut self, now: Time) {
        self.streams.run = None;
        self.shared.head_run.give_back(self.shard);
        self.shared.head_run.take_waiting(&self.shared.peers, now, &mut self.wakes);
    }
}
