//! Requests from when they are handed over until all of them is done.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// As many are under way on a disk and in a direction; the one with the least offset is given up
/// for the next.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// A request has as many parts; what is more counts to the last.
const PARTS_MAX: usize = 1 << 10;

/// Requests of a disk in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// By offset, and by their order where they have the same.
    requests: BTreeMap<(u64, u64), Request>,
    order: u64,
    /// No request was longer.
    longest: u64,
    unfinished: u64,
    /// Whether the trace has splits.
    has_splits: bool,
}

/// A request that is handed over.
#[derive(Clone, Debug, Default)]
struct Request {
    queued: Duration,
    range: Range<u64>,
    /// Where the kernel has said that it splits it.
    splits: Vec<u64>,
    /// What was issued to the driver at once, of this request or beyond it.
    issued: Vec<Range<u64>>,
    /// Whether the driver gave it back, or what is open of it.
    comes_again: bool,
    /// What is not done yet, in order.
    open: Vec<Range<u64>>,
    done: Vec<Part>,
    /// The first error of its completions; 0 without.
    error: u16,
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
    /// Where the kernel split it, in order: as it said, or else where parts meet that it issued one
    /// by one.
    pub(super) splits: Vec<u64>,
    /// In order; one where it was done at once.
    pub(super) parts: Vec<Part>,
    /// Whether the disk completed in parts what it was sent at once.
    pub(super) partial: bool,
    /// The first error of its completions; 0 without.
    pub(super) error: u16,
}

impl InFlight {
    /// A request is handed over; false where it is the rest of one that was split, which old
    /// kernels hand over again, or one that was given back, or the rest of one.
    pub(super) fn queue(&mut self, time: Duration, range: Range<u64>) -> bool {
        let rest_of = |request: &Request| {
            request.splits.contains(&range.start) && request.range.end == range.end
        };
        for key in self.overlapping(&range) {
            let Some(request) = self.requests.get_mut(&key) else { continue };
            if request.open.as_slice() == std::slice::from_ref(&range)
                && (request.comes_again || !request.done.is_empty())
            {
                request.comes_again = false;
                if request.done.is_empty() {
                    request.queued = time;
                }
                return false;
            }
            if rest_of(request) {
                return false;
            }
        }
        if self.requests.len() >= IN_FLIGHT_MAX {
            self.requests.pop_first();
            self.unfinished += 1;
        }
        self.longest = self.longest.max(range.end - range.start);
        self.order += 1;
        let key = (range.start, self.order);
        let open = vec![range.clone()];
        let request = Request { queued: time, range, open, ..Request::default() };
        self.requests.insert(key, request);
        true
    }

    /// The first part of a request, or of the rest of one.
    pub(super) fn split(&mut self, part: &Range<u64>) {
        self.has_splits = true;
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

    /// So much goes to the driver at once.
    pub(super) fn issue(&mut self, range: &Range<u64>) {
        for key in self.overlapping(range) {
            let request = self.requests.get_mut(&key);
            if let Some(request) = request.filter(|request| request.issued.len() < PARTS_MAX) {
                request.issued.push(range.clone());
            }
        }
    }

    /// The driver gives back what is open of a request: it will be handed over once more.
    pub(super) fn requeue(&mut self, range: &Range<u64>) {
        let keys = self.overlapping(range);
        let is_it = |request: &Request| request.open.as_slice() == std::slice::from_ref(range);
        let key = keys.iter().rfind(|key| self.requests.get(key).is_some_and(is_it));
        if let Some(request) = key.and_then(|key| self.requests.get_mut(key)) {
            request.comes_again = true;
        }
    }

    /// All of `range` is done, or failed with an error that is not 0; what has ended by that. The
    /// same bytes are done for the request first that was handed over first.
    pub(super) fn complete(&mut self, time: Duration, range: &Range<u64>, error: u16) -> Vec<Done> {
        let mut rest = vec![range.clone()];
        let mut ended = Vec::new();
        for key in self.overlapping(range) {
            let Some(request) = self.requests.get_mut(&key) else { continue };
            if request.complete(time, &mut rest) && request.error == 0 {
                request.error = error;
            }
            if request.open.is_empty() {
                let request = self.requests.remove(&key);
                ended.extend(request.map(|request| request.ended(self.has_splits)));
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

impl Done {
    /// Of its last part.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.parts.iter().map(|part| part.latency).max()
    }
}

impl Request {
    /// Takes what it waits for out of `rest`; false where that is nothing.
    fn complete(&mut self, time: Duration, rest: &mut Vec<Range<u64>>) -> bool {
        let mut is_of_it = false;
        let latency = time.saturating_sub(self.queued);
        for done in rest.clone() {
            for open in self.open.clone() {
                let both = open.start.max(done.start)..open.end.min(done.end);
                if both.is_empty() {
                    continue;
                }
                is_of_it = true;
                remove(&mut self.open, &both);
                remove(rest, &both);
                let is_full = self.done.len() >= PARTS_MAX;
                match self.done.last_mut() {
                    Some(last) if is_full => last.latency = latency,
                    _ => self.done.push(Part { range: both, latency }),
                }
            }
        }
        is_of_it
    }

    fn ended(mut self, has_splits: bool) -> Done {
        self.done.sort_by_key(|part| part.range.start);
        self.splits.sort_unstable();
        let begins: Vec<u64> = self.done.iter().skip(1).map(|part| part.range.start).collect();
        if self.splits.is_empty() {
            let is_split = |at: &&u64| self.is_split_at(**at, has_splits);
            self.splits = begins.iter().filter(is_split).copied().collect();
        }
        let partial = begins.iter().any(|begin| !self.splits.contains(begin));
        let Self { queued, range, splits, done, error, .. } = self;
        Done { range, queued, splits, parts: done, partial, error }
    }

    /// Whether the kernel split it where a part begins, though it did not say so: what it issued
    /// begins there, and nothing that it issued reaches beyond. Where nothing is known of splits and
    /// of what was issued, parts are taken for it.
    fn is_split_at(&self, at: u64, has_splits: bool) -> bool {
        let begins = self.issued.iter().any(|issued| issued.start == at);
        let is_within = |issued: &Range<u64>| issued.start < at && at < issued.end;
        match self.issued.is_empty() {
            true => !has_splits,
            false => begins && !self.issued.iter().any(is_within),
        }
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
        let mut in_flight = InFlight::default();
        assert!(in_flight.queue(micros(10), 100..356));
        in_flight.split(&(100..172));
        assert_eq!(in_flight.complete(micros(171), &(100..172), 0), []);
        assert_eq!(in_flight.unfinished(), 1);
        let done = in_flight.complete(micros(5259), &(172..356), 0);
        let part = |range, latency| Part { range, latency: micros(latency) };
        let parts = vec![part(100..172, 161), part(172..356, 5249)];
        let (range, splits) = (100..356, vec![172]);
        let (queued, partial, error) = (micros(10), false, 0);
        let expected = Done { range, queued, splits, parts, partial, error };
        assert_eq!(done, [expected]);
        assert_eq!(in_flight.unfinished(), 0);
    }

    #[test]
    fn the_rest_of_a_split_request_is_no_request_of_its_own() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.queue(micros(0), 0..96));
        in_flight.split(&(0..32));
        assert!(!in_flight.queue(micros(1), 32..96));
        in_flight.split(&(32..64));
        assert!(!in_flight.queue(micros(1), 64..96));
        assert!(in_flight.queue(micros(2), 32..95));
        let done = in_flight.complete(micros(9), &(0..96), 0);
        assert_eq!(done[0].splits, [32, 64]);
        assert_eq!(done[0].parts.len(), 1);
    }

    #[test]
    fn parts_of_what_was_sent_at_once_are_partial_completions() {
        // what is issued, and whether the parts 0..16 and 16..64 are then a split
        for (issued, splits) in [
            (vec![(0, 64)], false),
            (vec![(0, 16), (16, 64)], true),
            // the rest is sent once more
            (vec![(0, 64), (16, 64)], false),
            // merged with what follows
            (vec![(0, 16), (16, 200)], true),
            (vec![], true),
        ] {
            let mut in_flight = InFlight::default();
            in_flight.queue(micros(0), 0..64);
            issued.iter().for_each(|&(begin, end)| in_flight.issue(&(begin..end)));
            in_flight.complete(micros(4), &(0..16), 0);
            let done = in_flight.complete(micros(6), &(16..64), 0).remove(0);
            assert_eq!((done.splits.len(), done.partial), (usize::from(splits), !splits));
            assert_eq!(done.parts.len(), 2, "{issued:?}");
        }
        // a trace that has splits would have this one
        let mut in_flight = InFlight::default();
        in_flight.queue(micros(0), 100..200);
        in_flight.split(&(100..150));
        in_flight.queue(micros(0), 0..64);
        in_flight.complete(micros(4), &(0..16), 0);
        assert!(in_flight.complete(micros(6), &(16..64), 0)[0].partial);
    }

    #[test]
    fn an_error_fails_the_requests_of_its_bytes_and_a_requeued_one_is_as_if_not_sent() {
        let mut in_flight = InFlight::default();
        for n in 0..3 {
            in_flight.queue(micros(n), n * 8..n * 8 + 8);
        }
        let failed = in_flight.complete(micros(9), &(0..16), 5);
        assert_eq!(failed.iter().map(|done| done.error).collect::<Vec<_>>(), [5, 5]);
        in_flight.requeue(&(16..24));
        assert!(!in_flight.queue(micros(10), 16..24));
        let done = in_flight.complete(micros(12), &(16..24), 0);
        assert_eq!((done[0].error, done[0].parts[0].latency), (0, micros(2)));
    }

    #[test]
    fn requests_that_were_merged_end_at_once() {
        let mut in_flight = InFlight::default();
        for start in [0, 8, 16] {
            in_flight.queue(micros(start), start..start + 8);
        }
        let done = in_flight.complete(micros(20), &(0..24), 0);
        assert!(done.iter().all(|done| done.splits.is_empty() && done.parts.len() == 1));
        let latencies: Vec<_> = done.iter().map(|done| done.parts[0].latency.as_micros()).collect();
        assert_eq!(latencies, [20, 12, 4]);
    }

    #[test]
    fn the_same_bytes_end_first_for_who_asked_first() {
        let mut in_flight = InFlight::default();
        in_flight.queue(micros(1), 0..8);
        in_flight.queue(micros(2), 0..8);
        assert_eq!(in_flight.complete(micros(5), &(0..8), 0)[0].queued, micros(1));
        assert_eq!(in_flight.complete(micros(6), &(0..8), 0)[0].queued, micros(2));
        assert_eq!(in_flight.complete(micros(7), &(0..8), 0), []);
    }

    #[test]
    fn unfinished_requests_take_bounded_memory() {
        let mut in_flight = InFlight::default();
        let count = IN_FLIGHT_MAX as u64 + 10;
        for start in 0..count {
            in_flight.queue(micros(start), start * 8..start * 8 + 8);
        }
        assert_eq!((in_flight.requests.len(), in_flight.unfinished()), (IN_FLIGHT_MAX, count));
        let mut in_flight = InFlight::default();
        in_flight.queue(micros(0), 0..1 << 20);
        (0..1 << 12).for_each(|part| in_flight.split(&(part * 8..part * 8 + 8)));
        for part in 0..1 << 17 {
            let done = in_flight.complete(micros(1), &(part * 8..part * 8 + 8), 0);
            assert!(done.iter().all(|done| done.parts.len() <= PARTS_MAX));
            assert_eq!(done.len(), usize::from(part + 1 == 1 << 17));
        }
    }
}
