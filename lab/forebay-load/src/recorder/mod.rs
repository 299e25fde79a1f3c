//! What is written down about the requests of one job on one shard.

pub mod buckets;
mod intervals;
mod latencies;
mod latency_breakdown;
mod slice;

use forebay_core::Time;
use hdrhistogram::CreationError;

pub use intervals::{INTERVALS, Interval, Intervals};
pub use latencies::Latencies;
pub use latency_breakdown::{LatencyBreakdown, LatencyParts};
pub use slice::Slice;

/// The part of a run that is measured: from the end of the warm-up to the deadline, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredInterval {
    /// The end of the warm-up.
    pub from: Time,
    /// The deadline.
    pub to: Time,
}

impl MeasuredInterval {
    /// The length in seconds.
    pub fn seconds(self) -> f64 {
        self.to.nanos_since(self.from) as f64 / 1e9
    }
}

/// The life of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it should have begun.
    pub intended: Time,
    /// When it was handed to the scheduler, or to the disk where there is no scheduler.
    pub enqueued: Time,
    /// When it was sent to the disk.
    pub dispatched: Time,
    /// When it was done.
    pub completed: Time,
    /// The bytes it moved.
    pub bytes: u64,
    /// Whether it succeeded.
    pub ok: bool,
    /// Whether it is a flush between other requests of its job, whose latency is apart from theirs.
    pub flush: bool,
}

/// What is written down about the requests of one job on one shard.
///
/// - Requests are counted if they *complete* in the measured part of the run: rates are what the
///   disk did in that time.
/// - Latencies are of the requests that were *meant to begin* in it and succeeded.
/// - Requests that were due but not done at the deadline are counted as unfinished, and their age
///   at the deadline is recorded as a latency: it is a lower bound, and leaving it out would hide
///   the slowest requests of all.
/// - Flushes between other requests are counted with them. Their latencies are apart.
///
/// All memory, about 820 kB, is taken when it is made; recording allocates nothing.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The part of the run that is measured.
    pub measured: MeasuredInterval,
    /// Requests done in it.
    pub requests: u64,
    /// Those of them that are [flushes between others](Completion::flush).
    pub flushes: u64,
    /// Requests that failed in it; not among [`Recorder::requests`].
    pub errors: u64,
    /// Requests due and not done at its end.
    pub unfinished: u64,
    /// Bytes moved by [`Recorder::requests`].
    pub bytes: u64,
    /// From the intended start to the completion.
    pub latency: Latencies,
    /// From the hand-over to the scheduler to the completion.
    pub service: Latencies,
    /// From the hand-over to the scheduler to the dispatch to the disk.
    pub queue: Latencies,
    /// From the dispatch to the disk to the completion.
    pub disk: Latencies,
    /// From the intended start to the completion of flushes, which are in none of the above.
    pub flush: Latencies,
    /// How even all of that was.
    pub intervals: Intervals,
    /// Where requests of each latency spent it.
    pub breakdown: LatencyBreakdown,
    recent: Recent,
    slice: Option<Box<Slice>>,
}

/// What has happened since the last look, warm-up included, for a line of progress.
#[derive(Clone, Debug)]
pub struct Recent {
    /// Requests done.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// From the intended start to the completion, within 1 %.
    pub latency: Latencies,
}

impl Recorder {
    /// Nothing recorded yet.
    ///
    /// # Errors
    /// As [`Latencies::new`].
    pub fn new(measured: MeasuredInterval) -> Result<Self, CreationError> {
        Ok(Self {
            measured,
            requests: 0,
            flushes: 0,
            errors: 0,
            unfinished: 0,
            bytes: 0,
            latency: Latencies::new()?,
            service: Latencies::new()?,
            queue: Latencies::new()?,
            disk: Latencies::new()?,
            flush: Latencies::new()?,
            intervals: Intervals::new(measured),
            breakdown: LatencyBreakdown::new(),
            recent: Recent { requests: 0, errors: 0, bytes: 0, latency: Latencies::coarse()? },
            slice: None,
        })
    }

    /// Records what happens over time, too, for [`Recorder::slice`].
    ///
    /// # Errors
    /// As [`Latencies::new`].
    pub fn record_slices(&mut self) -> Result<(), CreationError> {
        self.slice = Some(Box::new(Slice::new()?));
        Ok(())
    }

    /// What has happened since it was cleared last, if [`Recorder::record_slices`] was called.
    pub fn slice(&mut self) -> Option<&mut Slice> {
        self.slice.as_deref_mut()
    }

    /// Records a request that is done, whenever it was.
    ///
    /// One done after the deadline is recorded as unfinished at the deadline. A driver may thus
    /// wait for what is in flight then, or hand it to [`Recorder::record_unfinished`]; not both.
    pub fn record(&mut self, request: &Completion) {
        let Completion { intended, enqueued, dispatched, completed, bytes, ok, flush } = *request;
        if completed > self.measured.to {
            self.record_unfinished(intended, flush);
            return;
        }
        let latency_ns = completed.nanos_since(intended);
        self.recent.record(latency_ns, bytes, ok);
        if let Some(slice) = &mut self.slice {
            slice.record(request);
        }
        if completed >= self.measured.from {
            self.requests += u64::from(ok);
            self.flushes += u64::from(ok && flush);
            self.errors += u64::from(!ok);
            self.bytes += if ok { bytes } else { 0 };
            if ok {
                self.intervals.done(completed, bytes);
            }
        }
        if ok && intended >= self.measured.from {
            self.intervals.took(intended, latency_ns, flush);
            if flush {
                self.flush.record(latency_ns);
                return;
            }
            self.latency.record(latency_ns);
            self.breakdown.record(request);
            self.service.record(completed.nanos_since(enqueued));
            self.queue.record(dispatched.nanos_since(enqueued));
            self.disk.record(completed.nanos_since(dispatched));
        }
    }

    /// Records a request that was meant to begin at `intended` and is not done at the deadline:
    /// in the disk, in the queue, or never sent
    /// (see [`Generator::overdue`](crate::generator::Generator::overdue)). Whether it is a
    /// [flush between others](Completion::flush) is in `flush`.
    pub fn record_unfinished(&mut self, intended: Time, flush: bool) {
        if intended > self.measured.to {
            return;
        }
        self.unfinished += 1;
        if intended >= self.measured.from {
            let age_ns = self.measured.to.nanos_since(intended);
            self.intervals.took(intended, age_ns, flush);
            if flush {
                self.flush.record(age_ns);
                return;
            }
            self.latency.record(age_ns);
            self.breakdown.unfinished(age_ns);
        }
    }

    /// Adds what `other`, for the same job on another shard, has recorded.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.flushes += other.flushes;
        self.errors += other.errors;
        self.unfinished += other.unfinished;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.queue.merge(&other.queue);
        self.disk.merge(&other.disk);
        self.flush.merge(&other.flush);
        self.intervals.merge(&other.intervals);
        self.breakdown.merge(&other.breakdown);
        self.recent.merge(&other.recent);
    }

    /// What has happened since the last call, or since the start.
    ///
    /// Allocates; for a line of progress once or so a second.
    pub fn take_recent(&mut self) -> Recent {
        let taken = self.recent.clone();
        self.recent.clear();
        taken
    }
}

impl Recent {
    /// Adds what has happened elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    fn record(&mut self, latency_ns: u64, bytes: u64, ok: bool) {
        if ok {
            self.requests += 1;
            self.bytes += bytes;
            self.latency.record(latency_ns);
        } else {
            self.errors += 1;
        }
    }

    fn clear(&mut self) {
        (self.requests, self.errors, self.bytes) = (0, 0, 0);
        self.latency.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * MS)
    }

    fn recorder() -> Recorder {
        Recorder::new(MeasuredInterval { from: ms(100), to: ms(200) }).unwrap()
    }

    /// Intended, enqueued, dispatched and completed at these milliseconds.
    fn request([intended, enqueued, dispatched, completed]: [u64; 4]) -> Completion {
        Completion {
            intended: ms(intended),
            enqueued: ms(enqueued),
            dispatched: ms(dispatched),
            completed: ms(completed),
            bytes: 4096,
            ok: true,
            flush: false,
        }
    }

    #[test]
    fn each_part_of_a_latency_is_told() {
        let mut recorder = recorder();
        recorder.record(&request([110, 120, 150, 190]));
        assert_eq!(recorder.latency.max_ns(), 80 * MS);
        assert_eq!(recorder.service.max_ns(), 70 * MS);
        assert_eq!(recorder.queue.max_ns(), 30 * MS);
        assert_eq!(recorder.disk.max_ns(), 40 * MS);
        assert_eq!((recorder.requests, recorder.bytes), (1, 4096));
    }

    #[test]
    fn the_warm_up_is_left_out() {
        let mut recorder = recorder();
        recorder.record(&request([10, 10, 10, 20]));
        assert_eq!((recorder.requests, recorder.latency.count()), (0, 0));
        // Begun in the warm-up and done after it: the disk's work, but not a latency.
        recorder.record(&request([90, 90, 90, 100]));
        assert_eq!((recorder.requests, recorder.latency.count()), (1, 0));
        recorder.record(&request([100, 100, 100, 200]));
        assert_eq!((recorder.requests, recorder.latency.count()), (2, 1));
    }

    #[test]
    fn requests_unfinished_at_the_deadline_count_with_their_age() {
        let mut recorder = recorder();
        recorder.record(&request([150, 150, 150, 201]));
        recorder.record_unfinished(ms(160), false);
        recorder.record_unfinished(ms(50), false);
        recorder.record_unfinished(ms(201), false);
        assert_eq!((recorder.requests, recorder.unfinished), (0, 3));
        assert_eq!((recorder.latency.count(), recorder.latency.max_ns()), (2, 50 * MS));
        assert_eq!(recorder.service.count(), 0);
    }

    #[test]
    fn the_latencies_of_flushes_are_apart_from_those_of_their_writes() {
        let mut recorder = recorder();
        let flush = |at| Completion { flush: true, bytes: 0, ..request(at) };
        recorder.record(&request([110, 110, 110, 111]));
        recorder.record(&flush([111, 111, 111, 120]));
        recorder.record(&flush([130, 130, 130, 201]));
        recorder.record_unfinished(ms(199), true);
        let mut both = recorder.clone();
        both.merge(&recorder);
        assert_eq!((both.requests, both.flushes, both.unfinished), (4, 2, 4));
        for latencies in [&both.latency, &both.service, &both.queue, &both.disk] {
            assert!(latencies.count() == 2 && latencies.max_ns() <= MS);
        }
        assert_eq!((both.flush.count(), both.flush.max_ns()), (6, 70 * MS));
        assert_eq!(both.breakdown.around(0.99).requests, 2);
    }

    #[test]
    fn failures_are_counted_apart() {
        let mut recorder = recorder();
        recorder.record(&Completion { ok: false, ..request([110, 110, 110, 111]) });
        assert_eq!((recorder.requests, recorder.errors, recorder.bytes), (0, 1, 0));
        assert_eq!(recorder.latency.count(), 0);
        assert_eq!(recorder.take_recent().errors, 1);
    }

    #[test]
    fn a_look_shows_what_came_since_the_last_one() {
        let mut recorder = recorder();
        recorder.record(&request([10, 10, 10, 20]));
        recorder.record(&request([20, 20, 20, 50]));
        let mut recent = recorder.take_recent();
        assert_eq!((recent.requests, recent.bytes), (2, 8192));
        assert_eq!(recent.latency.quantile_ns(0.99), 30 * MS);
        assert_eq!(recorder.take_recent().requests, 0);
        recorder.record(&request([60, 60, 60, 61]));
        recent.merge(&recorder.take_recent());
        assert_eq!(recent.requests, 3);
    }

    #[test]
    fn shards_add_up() {
        let (mut one, mut other) = (recorder(), recorder());
        one.record(&request([110, 110, 110, 120]));
        other.record(&request([110, 110, 110, 130]));
        other.record_unfinished(ms(150), false);
        one.merge(&other);
        assert_eq!((one.requests, one.unfinished, one.bytes), (2, 1, 8192));
        assert_eq!((one.latency.count(), one.disk.count()), (3, 2));
        assert_eq!(one.latency.max_ns(), 50 * MS);
    }
}
