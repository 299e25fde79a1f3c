//! Requests from when they are handed over until all of them is done.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// As many are under way on a disk and in a direction; the one with the least offset is given up
/// for the next.
const UNDER_WAY_MAX: usize = 1 << 16;

/// A request has as many parts; what is more counts to the last.
const PARTS_MAX: usize = 1 << 10;

/// Requests of a disk in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    /// By offset, and by their order where they have the same.
    requests: BTreeMap<(u64, u64), Request>,
    order: u64,
    /// No request was longer.
    longest: u64,
    unfinished: u64,
}

/// A request that is handed over.
#[derive(Clone, Debug)]
struct Request {
    queued: Duration,
    range: Range<u64>,
    /// Where the kernel has said that it splits it.
    splits: Vec<u64>,
    /// What is not done yet, in order.
    open: Vec<Range<u64>>,
    done: Vec<Part>,
}

/// What was done at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) range: Range<u64>,
    /// Since the request was handed over.
    pub(super) latency: Duration,
}

/// A request that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) range: Range<u64>,
    /// When it was handed over.
    pub(super) queued: Duration,
    /// Where it was split, in order: as the kernel said, or else where its parts meet.
    pub(super) splits: Vec<u64>,
    /// In order; one where it was done at once.
    pub(super) parts: Vec<Part>,
}

impl UnderWay {
    /// A request is handed over; false where it is the rest of one that was split, which old
    /// kernels hand over anew.
    pub(super) fn queue(&mut self, time: Duration, range: Range<u64>) -> bool {
        let rest_of = |request: &Request| {
            request.splits.contains(&range.start) && request.range.end == range.end
        };
        if self.overlapping(&range).iter().any(|key| self.requests.get(key).is_some_and(rest_of)) {
            return false;
        }
        if self.requests.len() >= UNDER_WAY_MAX {
            self.requests.pop_first();
            self.unfinished += 1;
        }
        self.longest = self.longest.max(range.end - range.start);
        self.order += 1;
        let key = (range.start, self.order);
        let open = vec![range.clone()];
        let request = Request { queued: time, range, splits: Vec::new(), open, done: Vec::new() };
        self.requests.insert(key, request);
        true
    }

    /// The first part of a request, or of the rest of one.
    pub(super) fn split(&mut self, part: &Range<u64>) {
        let at = part.end;
        let keys = self.overlapping(part);
        let is_of = |request: &Request| {
            let is_new = !request.splits.contains(&at);
            let begins = request.range.start == part.start || request.splits.contains(&part.start);
            (request.range.start + 1..request.range.end).contains(&at) && is_new && begins
        };
        let key = keys.iter().find(|key| self.requests.get(key).is_some_and(is_of));
        let request = key.and_then(|key| self.requests.get_mut(key));
        if let Some(request) = request.filter(|request| request.splits.len() < PARTS_MAX) {
            request.splits.push(at);
        }
    }

    /// All of `range` is done; what has ended by that. The same bytes are done for the request
    /// first that was handed over first.
    pub(super) fn complete(&mut self, time: Duration, range: &Range<u64>) -> Vec<Done> {
        let mut rest = vec![range.clone()];
        let mut ended = Vec::new();
        for key in self.overlapping(range) {
            let Some(request) = self.requests.get_mut(&key) else { continue };
            request.complete(time, &mut rest);
            if request.open.is_empty() {
                ended.extend(self.requests.remove(&key).map(Request::ended));
            }
        }
        ended
    }

    /// How many have not ended.
    pub(super) fn unfinished(&self) -> u64 {
        self.unfinished + self.requests.len() as u64
    }

    /// The requests that overlap with `range`, the oldest first.
    fn overlapping(&self, range: &Range<u64>) -> Vec<(u64, u64)> {
        let least = range.start.saturating_sub(self.longest);
        let near = self.requests.range((least, 0)..(range.end.max(least), 0));
        let overlaps = near.filter(|(_, request)| request.range.end > range.start);
        let mut keys: Vec<(u64, u64)> = overlaps.map(|(&key, _)| key).collect();
        keys.sort_by_key(|key| key.1);
        keys
    }
}

impl Request {
    /// Takes what it waits for out of `rest`.
    fn complete(&mut self, time: Duration, rest: &mut Vec<Range<u64>>) {
        let latency = time.saturating_sub(self.queued);
        for done in rest.clone() {
            for open in self.open.clone() {
                let both = open.start.max(done.start)..open.end.min(done.end);
                if both.is_empty() {
                    continue;
                }
                remove(&mut self.open, &both);
                remove(rest, &both);
                let is_full = self.done.len() >= PARTS_MAX;
                match self.done.last_mut() {
                    Some(last) if is_full => last.latency = latency,
                    _ => self.done.push(Part { range: both, latency }),
                }
            }
        }
    }

    fn ended(mut self) -> Done {
        self.done.sort_by_key(|part| part.range.start);
        self.splits.sort_unstable();
        if self.splits.is_empty() {
            self.splits = self.done.iter().skip(1).map(|part| part.range.start).collect();
        }
        Done { range: self.range, queued: self.queued, splits: self.splits, parts: self.done }
    }
}

/// Cuts `part` out of ranges.
fn remove(ranges: &mut Vec<Range<u64>>, part: &Range<u64>) {
    *ranges = ranges
        .iter()
        .flat_map(|range| {
            [range.start..range.end.min(part.start), range.start.max(part.end)..range.end]
        })
        .filter(|range| !range.is_empty())
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_request_ends_with_its_last_part() {
        let mut under_way = UnderWay::default();
        assert!(under_way.queue(micros(10), 100..356));
        under_way.split(&(100..172));
        assert_eq!(under_way.complete(micros(171), &(100..172)), []);
        assert_eq!(under_way.unfinished(), 1);
        let done = under_way.complete(micros(5259), &(172..356));
        let part = |range, latency| Part { range, latency: micros(latency) };
        let parts = vec![part(100..172, 161), part(172..356, 5249)];
        let expected = Done { range: 100..356, queued: micros(10), splits: vec![172], parts };
        assert_eq!(done, [expected]);
        assert_eq!(under_way.unfinished(), 0);
    }

    #[test]
    fn the_rest_of_a_split_request_is_no_request_of_its_own() {
        let mut under_way = UnderWay::default();
        assert!(under_way.queue(micros(0), 0..96));
        under_way.split(&(0..32));
        assert!(!under_way.queue(micros(1), 32..96));
        under_way.split(&(32..64));
        assert!(!under_way.queue(micros(1), 64..96));
        assert!(under_way.queue(micros(2), 32..95));
        let done = under_way.complete(micros(9), &(0..96));
        assert_eq!(done[0].splits, [32, 64]);
        assert_eq!(done[0].parts.len(), 1);
    }

    #[test]
    fn requests_that_were_merged_end_at_once() {
        let mut under_way = UnderWay::default();
        for start in [0, 8, 16] {
            under_way.queue(micros(start), start..start + 8);
        }
        let done = under_way.complete(micros(20), &(0..24));
        assert!(done.iter().all(|done| done.splits.is_empty() && done.parts.len() == 1));
        let latencies: Vec<_> = done.iter().map(|done| done.parts[0].latency.as_micros()).collect();
        assert_eq!(latencies, [20, 12, 4]);
    }

    #[test]
    fn the_same_bytes_end_first_for_who_asked_first() {
        let mut under_way = UnderWay::default();
        under_way.queue(micros(1), 0..8);
        under_way.queue(micros(2), 0..8);
        assert_eq!(under_way.complete(micros(5), &(0..8))[0].queued, micros(1));
        assert_eq!(under_way.complete(micros(6), &(0..8))[0].queued, micros(2));
        assert_eq!(under_way.complete(micros(7), &(0..8)), []);
    }

    #[test]
    fn what_never_ends_takes_no_memory_without_bound() {
        let mut under_way = UnderWay::default();
        let count = UNDER_WAY_MAX as u64 + 10;
        for start in 0..count {
            under_way.queue(micros(start), start * 8..start * 8 + 8);
        }
        assert_eq!((under_way.requests.len(), under_way.unfinished()), (UNDER_WAY_MAX, count));
        let mut under_way = UnderWay::default();
        under_way.queue(micros(0), 0..1 << 20);
        (0..1 << 12).for_each(|part| under_way.split(&(part * 8..part * 8 + 8)));
        for part in 0..1 << 17 {
            let done = under_way.complete(micros(1), &(part * 8..part * 8 + 8));
            assert!(done.iter().all(|done| done.parts.len() <= PARTS_MAX));
            assert_eq!(done.len(), usize::from(part + 1 == 1 << 17));
        }
    }
}
