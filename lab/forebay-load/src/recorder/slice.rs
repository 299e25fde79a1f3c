//! What happened to the requests of a job in a short time, to draw it over time.

use hdrhistogram::CreationError;

use super::{Completion, Latencies};

/// What happened to the requests of a job since the last look, warm-up included. Takes 60 kB.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Requests done.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// From the intended start to the completion, within 1 %.
    pub latency: Latencies,
    /// From the hand-over to the scheduler to the dispatch, within 1 %.
    pub queue: Latencies,
    /// From the dispatch to the completion, within 1 %.
    pub disk: Latencies,
    /// The request that took longest from its intended start on.
    pub slowest: Option<Completion>,
}

impl Slice {
    /// Nothing has happened yet.
    ///
    /// # Errors
    /// As [`Latencies::new`].
    pub fn new() -> Result<Self, CreationError> {
        let [latency, queue, disk] =
            [Latencies::coarse()?, Latencies::coarse()?, Latencies::coarse()?];
        Ok(Self { requests: 0, errors: 0, bytes: 0, latency, queue, disk, slowest: None })
    }

    /// Adds what has happened elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.queue.merge(&other.queue);
        self.disk.merge(&other.disk);
        self.slowest = slower(self.slowest, other.slowest);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.requests, self.errors, self.bytes, self.slowest) = (0, 0, 0, None);
        self.latency.clear();
        self.queue.clear();
        self.disk.clear();
    }

    pub(super) fn record(&mut self, request: &Completion) {
        if !request.ok {
            self.errors += 1;
            return;
        }
        self.requests += 1;
        self.bytes += request.bytes;
        self.latency.record(request.completed.nanos_since(request.intended));
        self.queue.record(request.dispatched.nanos_since(request.enqueued));
        self.disk.record(request.completed.nanos_since(request.dispatched));
        self.slowest = slower(self.slowest, Some(*request));
    }
}

/// The one of the two that took longer.
fn slower(one: Option<Completion>, other: Option<Completion>) -> Option<Completion> {
    let nanos = |request: &Completion| request.completed.nanos_since(request.intended);
    one.into_iter().chain(other).max_by_key(nanos)
}
