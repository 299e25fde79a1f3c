//! The requests of one device.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use forebay_block::{Striping, parts_in_flight};

use super::block_edges::BlockEdges;
use super::direction::DirectionCounts;
use super::in_flight::{Done, Part};
use super::split_points::{SplitCause, SplitPoints, first_border};
use super::summary::{
    BorderKnown, BorderSummary, DeviceSummary, ErrorCount, SplitPart, SplitRequest,
};
use super::watched::{Chunk, Watched};
use crate::block_event::{Action, BlockEvent, Direction};

/// As many split requests are kept one by one, and as many points and parts of each.
const SPLIT_REQUESTS_MAX: usize = 1000;
const PARTS_MAX: usize = 16;

/// Those of which something is counted.
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Discard];

/// What is counted of a device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// What is known of it: blocks of a byte or more, and no chunk of none.
    watched: Watched,
    striping: Option<Striping>,
    /// By member, the time for which it had requests, in nanoseconds, summed over these.
    in_flight_nanos: Vec<u64>,
    directions: [DirectionCounts; 3],
    points: SplitPoints,
    edges: BlockEdges,
    others: u64,
    completions: u64,
    errors: BTreeMap<u16, u64>,
    split_requests: Vec<SplitRequest>,
    split_requests_more: u64,
}

impl Device {
    pub(super) fn new(mut watched: Watched) -> Self {
        watched.block_bytes = watched.block_bytes.max(1);
        watched.chunk = watched.chunk.filter(|chunk| chunk.bytes > 0);
        let (block_bytes, chunk) = (watched.block_bytes, watched.chunk);
        let members = watched.members.filter(|&members| members > 1);
        let striping =
            chunk.zip(members).map(|(chunk, members)| Striping { chunk: chunk.bytes, members });
        Self {
            watched,
            directions: Default::default(),
            points: SplitPoints::new(chunk.map(|chunk| chunk.bytes)),
            edges: BlockEdges::new(block_bytes),
            striping,
            in_flight_nanos: vec![0; striping.map_or(0, |striping| striping.members as usize)],
            others: 0,
            completions: 0,
            errors: BTreeMap::new(),
            split_requests: Vec::new(),
            split_requests_more: 0,
        }
    }

    /// Takes an event, so long after the beginning.
    pub(super) fn see(&mut self, since: Duration, event: &BlockEvent) {
        self.completions += u64::from(event.action == Action::Complete);
        if event.error != 0 {
            *self.errors.entry(event.error).or_default() += 1;
        }
        let place = DIRECTIONS.iter().position(|&direction| direction == event.direction);
        let requests = place.and_then(|place| self.directions.get_mut(place));
        let Some(requests) = requests.filter(|_| event.bytes > 0) else {
            self.others += u64::from(event.action == Action::Queue);
            return;
        };
        let range = event.range();
        let is_misaligned = self.edges.is_misaligned(&range);
        match event.action {
            Action::Issue => requests.issue(since, &range, is_misaligned),
            Action::Requeue => requests.requeue(&range),
            Action::Split => requests.split(&range),
            Action::Queue => {
                if !requests.queue(since, &range, is_misaligned) {
                    return;
                }
                match event.direction {
                    Direction::Read => self.edges.read(since, range),
                    Direction::Write => self.edges.write(since, &range),
                    _ => {}
                }
            }
            Action::Complete => {
                let ended = requests.complete(since, &range, event.error);
                if let Some(striping) = self.striping {
                    ended
                        .iter()
                        .for_each(|done| note_members(&mut self.in_flight_nanos, striping, done));
                }
                if event.direction != Direction::Discard {
                    ended.iter().for_each(|done| self.locate(event.direction, done));
                }
            }
        }
    }

    /// Looks where a read or a write was split.
    fn locate(&mut self, direction: Direction, done: &Done) {
        let split = !done.splits.is_empty();
        match split {
            true => self.points.add(&done.range, &done.splits),
            false => self.points.add_whole(&done.range),
        }
        let points: Vec<u64> = match split {
            true => done.splits.iter().copied().take(PARTS_MAX).collect(),
            false => borders(&done.range, self.watched.chunk).take(PARTS_MAX).collect(),
        };
        if points.is_empty() {
            return;
        }
        if self.split_requests.len() >= SPLIT_REQUESTS_MAX {
            self.split_requests_more += 1;
            return;
        }
        let part = |part: &Part| SplitPart {
            offset: part.range.start,
            bytes: part.range.end - part.range.start,
            latency_us: part.latency.as_secs_f64() * 1e6,
        };
        self.split_requests.push(SplitRequest {
            at_s: done.queued.as_secs_f64(),
            direction,
            offset: done.range.start,
            bytes: done.range.end - done.range.start,
            split,
            points,
            parts: done.parts.iter().take(PARTS_MAX).map(part).collect(),
        });
    }

    pub(super) fn summary(&self) -> DeviceSummary {
        let directions = self.directions.iter().zip(DIRECTIONS);
        let has_chunk = self.watched.chunk.is_some();
        let cause = self
            .points
            .cause(self.watched.longest_bytes, self.watched.pages_bytes.filter(|_| !has_chunk));
        DeviceSummary {
            name: self.watched.name.clone(),
            block_bytes: self.watched.block_bytes,
            directions: directions.filter_map(|(requests, is)| requests.summary(is)).collect(),
            border: self.border(cause),
            members: parts_in_flight(&self.in_flight_nanos),
            cause,
            longest_bytes: self.watched.longest_bytes,
            pages_bytes: self.watched.pages_bytes,
            longest_possible_bytes: self.watched.longest_possible_bytes,
            file_system: self.watched.file_system.clone(),
            read_before_misaligned: self.edges.writes,
            other_requests: self.others,
            completions: self.completions,
            errors: self.errors.iter().map(error_count).collect(),
            split_requests: self.split_requests.clone(),
            split_requests_more: self.split_requests_more,
        }
    }

    /// The border that is known, or else the one that was found.
    fn border(&self, cause: Option<SplitCause>) -> Option<BorderSummary> {
        let (bytes, known) = match (self.watched.chunk, cause) {
            (Some(Chunk { bytes, stated: true }), _) => (bytes, BorderKnown::Stated),
            (Some(Chunk { bytes, stated: false }), _) => (bytes, BorderKnown::System),
            (None, Some(SplitCause::Border { bytes, or_less: true })) => {
                (bytes, BorderKnown::FewSplits)
            }
            (None, Some(SplitCause::Border { bytes, or_less: false })) => {
                (bytes, BorderKnown::Splits)
            }
            _ => return None,
        };
        let border = self.points.at(bytes)?;
        Some(BorderSummary { bytes, known, split: border.split, whole: border.whole })
    }
}

/// Counts for how long each member had what is done of a request.
fn note_members(in_flight_nanos: &mut [u64], striping: Striping, done: &Done) {
    for part in &done.parts {
        let nanos = u64::try_from(part.latency.as_nanos()).unwrap_or(u64::MAX);
        for member in striping.members_of(&part.range) {
            if let Some(of_member) = in_flight_nanos.get_mut(member) {
                *of_member = of_member.saturating_add(nanos);
            }
        }
    }
}

fn error_count((&error, &completions): (&u16, &u64)) -> ErrorCount {
    ErrorCount { error, completions }
}

/// The borders inside of a range.
fn borders(range: &Range<u64>, chunk: Option<Chunk>) -> impl Iterator<Item = u64> {
    let end = range.end;
    let first = chunk.and_then(|chunk| first_border(range, chunk.bytes));
    let bytes = chunk.map_or(1, |chunk| chunk.bytes);
    let next = move |border: &u64| border.checked_add(bytes);
    std::iter::successors(first, next).take_while(move |&border| border < end)
}
