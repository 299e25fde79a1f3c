//! Where the requests of a queue are that go on where others end, or do not.

use alloc::vec::Vec;

use crate::head::NOWHERE;
use crate::head_run::Run;
use crate::requests::{Requests, State};

/// So many ends are remembered; where two local_for, a seek is charged that was none.
const ENDS: usize = 1024;

/// Where a request begins and ends, and whether it went on nowhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) is_random: bool,
}

impl Span {
    pub(super) const UNKNOWN: Self = Self { begin: NOWHERE, end: NOWHERE, is_random: false };
}

/// Where the requests of a queue are.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// By the index of the request; grows to the most that were present at once.
    spans: Vec<Span>,
    /// Where requests end that went, by the place.
    ends: Vec<End>,
    /// The run of one of them.
    pub(super) run: Option<Run>,
}

/// Where a request ends that went.
#[derive(Clone, Copy, Debug)]
struct End {
    place: u64,
    index: u32,
}

impl Streams {
    pub(super) fn span(&self, index: u32) -> Span {
        self.spans.get(index as usize).copied().unwrap_or(Span::UNKNOWN)
    }

    /// The request that ended there not long ago.
    pub(super) fn ended_at(&self, place: u64) -> Option<u32> {
        let end = self.ends.get(place as usize % ENDS)?;
        (end.place == place && place != NOWHERE).then_some(end.index)
    }

    /// Whether a request ends there that is in the disk.
    pub(super) fn ends_at(&self, place: u64, requests: &Requests) -> bool {
        self.ended_at(place).is_some_and(|index| {
            self.span(index).end == place
                && matches!(requests.state(index), State::InDisk | State::Overdue)
        })
    }

    pub(super) fn add(&mut self, index: u32, span: Span) {
        if self.spans.len() <= index as usize {
            self.spans.resize(index as usize + 1, Span::UNKNOWN);
        }
        self.spans[index as usize] = span;
    }

    /// Returns whether it goes on nowhere, as far as this queue knows.
    pub(super) fn enters_disk(&mut self, index: u32) -> bool {
        let Span { begin, end: place, .. } = self.span(index);
        let is_random = self.ended_at(begin).is_none();
        if let Some(span) = self.spans.get_mut(index as usize) {
            span.is_random = is_random;
        }
        self.ends.resize(ENDS, End { place: NOWHERE, index: 0 });
        self.ends[place as usize % ENDS] = End { place, index };
        is_random
    }
}
