//! The requests of one device in one direction.

use std::ops::Range;
use std::time::Duration;

use super::in_flight::{Done, InFlight};
use super::latencies::Latencies;
use super::summary::{Alignment, CountBasis, DirectionSummary};
use crate::block_event::Direction;

/// What is counted of a direction.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectionCounts {
    queued: Counts,
    /// What went to the driver: all that is known where nothing was recorded earlier.
    issued: Counts,
    whole: Latencies,
    split: Latencies,
    first_part: Latencies,
    disk: Latencies,
}

/// What is counted of requests at one place on their way.
#[derive(Clone, Debug, Default)]
struct Counts {
    requests: u64,
    bytes: u64,
    alignment: Alignment,
    misaligned: u64,
    failed: u64,
    partial: u64,
    in_flight: InFlight,
}

impl DirectionCounts {
    /// A request is handed over; false where it is the rest of one that was split.
    pub(super) fn queue(&mut self, time: Duration, range: &Range<u64>, misaligned: bool) -> bool {
        self.queued.begin(time, range, misaligned)
    }

    pub(super) fn split(&mut self, part: &Range<u64>) {
        self.queued.in_flight.split(part);
    }

    pub(super) fn issue(&mut self, time: Duration, range: &Range<u64>, misaligned: bool) {
        self.queued.in_flight.issue(range);
        self.issued.begin(time, range, misaligned);
    }

    pub(super) fn requeue(&mut self, range: &Range<u64>) {
        self.issued.in_flight.requeue(range);
    }

    /// What was handed over and has ended by that.
    pub(super) fn complete(&mut self, time: Duration, range: &Range<u64>, error: u16) -> Vec<Done> {
        for done in self.issued.end(time, range, error) {
            done.latency().into_iter().for_each(|latency| self.disk.add(latency));
        }
        let ended = self.queued.end(time, range, error);
        for done in &ended {
            let Some(last) = done.latency() else { continue };
            if done.splits.is_empty() {
                self.whole.add(last);
                continue;
            }
            self.split.add(last);
            let first = done.parts.iter().map(|part| part.latency).min();
            first.into_iter().for_each(|first| self.first_part.add(first));
        }
        ended
    }

    /// Nothing where there were no requests.
    pub(super) fn summary(&self, direction: Direction) -> Option<DirectionSummary> {
        let (counts, counted) = match self.queued.requests {
            0 => (&self.issued, CountBasis::Issued),
            _ => (&self.queued, CountBasis::Queued),
        };
        (counts.requests > 0).then(|| DirectionSummary {
            direction,
            counted,
            requests: counts.requests,
            bytes: counts.bytes,
            alignment: counts.alignment.histogram(),
            misaligned: counts.misaligned,
            failed: counts.failed,
            partial: counts.partial,
            whole_us: self.whole.summary(),
            split_us: self.split.summary(),
            first_part_us: self.first_part.summary(),
            disk_us: self.disk.summary(),
            unfinished: counts.in_flight.unfinished(),
        })
    }
}

impl Counts {
    fn begin(&mut self, time: Duration, range: &Range<u64>, misaligned: bool) -> bool {
        let is_new = self.in_flight.queue(time, range.clone());
        if is_new {
            self.requests += 1;
            self.bytes = self.bytes.saturating_add(range.end - range.start);
            self.alignment.add(range.start);
            self.misaligned += u64::from(misaligned);
        }
        is_new
    }

    fn end(&mut self, time: Duration, range: &Range<u64>, error: u16) -> Vec<Done> {
        let ended = self.in_flight.complete(time, range, error);
        self.failed += ended.iter().filter(|done| done.error != 0).count() as u64;
        self.partial += ended.iter().filter(|done| done.partial).count() as u64;
        ended
    }
}
