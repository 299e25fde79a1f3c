//! The requests of one device.

use std::ops::Range;
use std::time::Duration;

use super::alignment::Alignment;
use super::block_edges::BlockEdges;
use super::latencies::Latencies;
use super::split_points::{SplitCause, SplitPoints, first_border};
use super::summary::{
    BorderKnown, BorderSummary, DeviceSummary, DirectionSummary, SplitPart, SplitRequest,
};
use super::under_way::{Done, Part, UnderWay};
use super::watched::{Chunk, FileSystem, Watched};
use crate::block_event::{Action, BlockEvent, Direction};

/// As many split requests are kept one by one, and as many points and parts of each.
const SPLIT_REQUESTS_MAX: usize = 1000;
const PARTS_MAX: usize = 16;

/// Those of which something is counted.
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Discard];

/// What is counted of a device.
#[derive(Clone, Debug)]
pub(super) struct Device {
    name: String,
    block_bytes: u64,
    chunk: Option<Chunk>,
    longest_bytes: Option<u64>,
    pages_bytes: Option<u64>,
    longest_possible_bytes: Option<u64>,
    file_system: Option<FileSystem>,
    directions: [Requests; 3],
    points: SplitPoints,
    edges: BlockEdges,
    others: u64,
    split_requests: Vec<SplitRequest>,
    split_requests_more: u64,
}

/// What is counted of a direction.
#[derive(Clone, Debug, Default)]
struct Requests {
    count: u64,
    bytes: u64,
    alignment: Alignment,
    misaligned: u64,
    under_way: UnderWay,
    whole: Latencies,
    split: Latencies,
    first_part: Latencies,
}

impl Device {
    pub(super) fn new(watched: Watched) -> Self {
        let Watched { name, block_bytes, chunk, longest_bytes, .. } = watched;
        let Watched { pages_bytes, longest_possible_bytes, file_system, .. } = watched;
        let block_bytes = block_bytes.max(1);
        let chunk = chunk.filter(|chunk| chunk.bytes > 0);
        Self {
            name,
            block_bytes,
            longest_bytes,
            pages_bytes,
            longest_possible_bytes,
            file_system,
            directions: Default::default(),
            points: SplitPoints::new(chunk.map(|chunk| chunk.bytes)),
            edges: BlockEdges::new(block_bytes),
            chunk,
            others: 0,
            split_requests: Vec::new(),
            split_requests_more: 0,
        }
    }

    /// Takes an event, so long after the beginning.
    pub(super) fn see(&mut self, since: Duration, event: &BlockEvent) {
        let place = DIRECTIONS.iter().position(|&direction| direction == event.direction);
        let requests = place.and_then(|place| self.directions.get_mut(place));
        let Some(requests) = requests.filter(|_| event.bytes > 0) else {
            self.others += u64::from(event.action == Action::Queue);
            return;
        };
        let range = event.range();
        match event.action {
            Action::Issue => {}
            Action::Split => requests.under_way.split(&range),
            Action::Queue => {
                if !requests.under_way.queue(since, range.clone()) {
                    return;
                }
                requests.count += 1;
                requests.bytes = requests.bytes.saturating_add(event.bytes);
                requests.alignment.add(event.offset);
                requests.misaligned += u64::from(self.edges.is_misaligned(&range));
                match event.direction {
                    Direction::Read => self.edges.read(since, range),
                    Direction::Write => self.edges.write(since, &range),
                    _ => {}
                }
            }
            Action::Complete => {
                let ended = requests.under_way.complete(since, &range);
                ended.iter().for_each(|done| requests.end(done));
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
            false => borders(&done.range, self.chunk).take(PARTS_MAX).collect(),
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
        let directions = directions.filter(|(requests, _)| requests.count > 0);
        let has_chunk = self.chunk.is_some();
        let cause = self.points.cause(self.longest_bytes, self.pages_bytes.filter(|_| !has_chunk));
        DeviceSummary {
            name: self.name.clone(),
            block_bytes: self.block_bytes,
            directions: directions.map(|(requests, is)| requests.summary(is)).collect(),
            border: self.border(cause),
            cause,
            longest_bytes: self.longest_bytes,
            pages_bytes: self.pages_bytes,
            longest_possible_bytes: self.longest_possible_bytes,
            file_system: self.file_system.clone(),
            read_before_misaligned: self.edges.writes,
            other_requests: self.others,
            split_requests: self.split_requests.clone(),
            split_requests_more: self.split_requests_more,
        }
    }

    /// The border that is known, or else the one that was found.
    fn border(&self, cause: Option<SplitCause>) -> Option<BorderSummary> {
        let (bytes, known) = match (self.chunk, cause) {
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

impl Requests {
    fn end(&mut self, done: &Done) {
        let latencies = || done.parts.iter().map(|part| part.latency);
        let Some(last) = latencies().max() else { return };
        if done.splits.is_empty() {
            self.whole.add(last);
            return;
        }
        self.split.add(last);
        latencies().min().iter().for_each(|&first| self.first_part.add(first));
    }

    fn summary(&self, direction: Direction) -> DirectionSummary {
        DirectionSummary {
            direction,
            requests: self.count,
            bytes: self.bytes,
            alignment: self.alignment.histogram(),
            misaligned: self.misaligned,
            whole_us: self.whole.summary(),
            split_us: self.split.summary(),
            first_part_us: self.first_part.summary(),
            unfinished: self.under_way.unfinished(),
        }
    }
}

/// The borders inside of a range.
fn borders(range: &Range<u64>, chunk: Option<Chunk>) -> impl Iterator<Item = u64> {
    let end = range.end;
    let first = chunk.and_then(|chunk| first_border(range, chunk.bytes));
    let bytes = chunk.map_or(1, |chunk| chunk.bytes);
    let next = move |border: &u64| border.checked_add(bytes);
    std::iter::successors(first, next).take_while(move |&border| border < end)
}
