//! The load of a phase, request by request: the same for threads and under virtual time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_core::{Op, Time};
use forebay_load::Rng;

use crate::phase::{FileState, Pattern, Phase, Work};
use crate::samples::PhaseRecorder;

/// A slow disk gets this many times the time that was planned.
const PATIENCE: f64 = 3.0;
/// What any cache holds.
const CACHED_BYTES: u64 = 1 << 20;

/// Where the data of a phase lies: segments of equal length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) segments: u64,
    pub(crate) segment_len: u64,
    /// Where random requests go, if not anywhere.
    pub(crate) places: Option<Places>,
}

/// Places at equal distances from the start of the only segment on, also beyond what streams use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) count: u64,
    pub(crate) apart: u64,
    pub(crate) len: u64,
}

/// What the threads of a phase share.
#[derive(Debug, Default)]
pub(crate) struct SharedProgress {
    /// How far the stream through each segment has come.
    cursors: Vec<AtomicU64>,
    written: AtomicU64,
    completed: AtomicU64,
    /// Whether it is over, in a phase that ends with another one.
    ended: Option<AtomicBool>,
}

impl SharedProgress {
    pub(crate) fn new(area: Area) -> Self {
        let cursors = (0..area.segments).map(|_| AtomicU64::new(0)).collect();
        Self { cursors, ..Self::default() }
    }

    /// Of a phase that goes on until [`SharedProgress::end`], whatever its bound.
    pub(crate) fn until_ended(area: Area) -> Self {
        Self { ended: Some(AtomicBool::new(false)), ..Self::new(area) }
    }

    /// Ends a phase that goes on until then.
    pub(crate) fn end(&self) {
        self.ended.iter().for_each(|ended| ended.store(true, Ordering::Relaxed));
    }

    /// Bytes written or discarded.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes from the start that the streams have gone through in every segment.
    pub(crate) fn streamed(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.load(Ordering::Relaxed)).min().unwrap_or(0)
    }
}

/// A request of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseRequest {
    pub(crate) op: Op,
    pub(crate) segment: u64,
    /// Within the segment.
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// The load of one thread.
pub(crate) struct PhaseLoad<'a> {
    phase: &'a Phase,
    area: Area,
    shared: &'a SharedProgress,
    began: Time,
    /// The index of the thread, and with that the segment of its stream.
    thread: u64,
    offsets: Rng,
    /// Writes that are still to be flushed.
    unflushed: u64,
    /// Where the last request went.
    last_segment: u64,
    pub(crate) recorder: PhaseRecorder,
}

impl<'a> PhaseLoad<'a> {
    /// The load of the thread with the index `thread`; `None` without memory for the record.
    pub(crate) fn new(
        phase: &'a Phase,
        area: Area,
        shared: &'a SharedProgress,
        began: Time,
        thread: u64,
    ) -> Option<Self> {
        let recorder = PhaseRecorder::new(began, phase.bound.seconds)?;
        let path = [thread, began.as_nanos()];
        Some(Self {
            phase,
            area,
            shared,
            began,
            thread,
            offsets: Rng::new(1, &path),
            unflushed: 0,
            last_segment: 0,
            recorder,
        })
    }

    /// The next request, or `None` when the phase is over.
    pub(crate) fn next(&mut self, now: Time) -> Option<PhaseRequest> {
        if self.is_over(now) {
            return None;
        }
        let len = self.phase.request_bytes;
        let op = match self.phase.work {
            Work::Read => Op::Read,
            Work::Write => Op::Write,
            Work::Discard => Op::Discard,
            Work::Flush if self.unflushed > 0 => {
                self.unflushed -= 1;
                return Some(PhaseRequest {
                    op: Op::Flush,
                    segment: self.last_segment,
                    offset: 0,
                    len: 0,
                });
            }
            Work::Flush => Op::Write,
        };
        // A stream at its end must not take bytes from the others.
        if op != Op::Read && (self.is_streamed() || !self.may_write(u64::from(len))) {
            return None;
        }
        let (segment, offset) = self.next_offset()?;
        self.last_segment = segment;
        Some(PhaseRequest { op, segment, offset, len })
    }

    /// A request that began at `began` is done.
    pub(crate) fn completed(&mut self, now: Time, began: Time, op: Op) {
        match (self.phase.work, op) {
            (Work::Flush, Op::Write) => self.unflushed += 1,
            _ => {
                self.shared.completed.fetch_add(1, Ordering::Relaxed);
                self.recorder.record(began, now);
            }
        }
    }

    fn is_over(&self, now: Time) -> bool {
        if let Some(ended) = &self.shared.ended {
            return ended.load(Ordering::Relaxed);
        }
        let bound = &self.phase.bound;
        let elapsed = now.nanos_since(self.began) as f64 / 1e9;
        let done = self.shared.completed.load(Ordering::Relaxed);
        elapsed >= bound.seconds
            && (done >= bound.requests_min || elapsed >= bound.seconds * PATIENCE)
    }

    fn may_write(&self, len: u64) -> bool {
        let before = self.shared.written.fetch_add(len, Ordering::Relaxed);
        if before.saturating_add(len) <= self.phase.bound.bytes_max {
            return true;
        }
        self.shared.written.fetch_sub(len, Ordering::Relaxed);
        false
    }

    /// Whether it streams through its segment only once, and has done so.
    fn is_streamed(&self) -> bool {
        let segment = self.thread % self.area.segments.max(1);
        let at = self.shared.cursors.get(segment as usize);
        let at = at.map_or(0, |cursor| cursor.load(Ordering::Relaxed));
        let ends = self.phase.pattern == Pattern::Sequential && !self.wraps();
        ends && at / u64::from(self.phase.request_bytes) >= self.slots()
    }

    /// Whether a stream begins again at its end.
    fn wraps(&self) -> bool {
        self.phase.file == FileState::Written && self.phase.work != Work::Discard
    }

    /// Requests that fit into a segment.
    fn slots(&self) -> u64 {
        self.slots_in(self.area.segment_len)
    }

    fn slots_in(&self, bytes: u64) -> u64 {
        let (len, shift) = (self.phase.request_bytes, self.phase.misalignment);
        (bytes.saturating_sub(shift.into()) / u64::from(len)).max(1)
    }

    /// Segment and offset of the next request; `None` at the end of what is streamed only once.
    fn next_offset(&mut self) -> Option<(u64, u64)> {
        let (segments, slots) = (self.area.segments, self.slots());
        let (len, shift) =
            (u64::from(self.phase.request_bytes), u64::from(self.phase.misalignment));
        match self.phase.pattern {
            Pattern::Random => Some(match self.area.places {
                Some(places) => {
                    let place = self.offsets.below(places.count) * places.apart;
                    (0, place + self.offsets.below(self.slots_in(places.len)) * len + shift)
                }
                None => (self.offsets.below(segments), self.offsets.below(slots) * len + shift),
            }),
            Pattern::Cached => {
                let slots = slots.min((CACHED_BYTES / len).max(1));
                Some((0, self.offsets.below(slots) * len + shift))
            }
            Pattern::Sequential => {
                let segment = self.thread % segments.max(1);
                let cursor = self.shared.cursors.get(segment as usize)?;
                let at = cursor.fetch_add(len, Ordering::Relaxed) / len;
                (self.wraps() || at < slots).then_some((segment, at % slots * len + shift))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::phase::Bound;

    const AREA: Area = Area { segments: 2, segment_len: 1 << 20, places: None };

    fn phase(work: Work, pattern: Pattern) -> Phase {
        Phase {
            work,
            pattern,
            file: FileState::Written,
            request_bytes: 4096,
            misalignment: 0,
            depth: 1,
            bound: Bound { seconds: 1.0, requests_min: 10, bytes_max: 8192 },
        }
    }

    fn requests(phase: &Phase, count: usize) -> Vec<PhaseRequest> {
        let shared = SharedProgress::new(AREA);
        let mut load = PhaseLoad::new(phase, AREA, &shared, Time::ZERO, 1).unwrap();
        std::iter::from_fn(|| load.next(Time::ZERO)).take(count).collect()
    }

    #[test]
    fn a_phase_writes_no_more_than_it_may() {
        assert_eq!(requests(&phase(Work::Write, Pattern::Random), 10).len(), 2);
        assert_eq!(requests(&phase(Work::Read, Pattern::Random), 10).len(), 10);
    }

    #[test]
    fn a_stream_stays_in_its_segment_and_begins_again() {
        let all = requests(&phase(Work::Read, Pattern::Sequential), 257);
        assert!(all.iter().all(|request| request.segment == 1));
        assert_eq!((all[1].offset, all[255].offset, all[256].offset), (4096, 255 * 4096, 0));
        let fresh = Phase { file: FileState::Fresh, ..phase(Work::Read, Pattern::Sequential) };
        assert_eq!(requests(&fresh, 300).len(), 256);
    }

    #[test]
    fn a_stream_at_its_end_leaves_the_bytes_to_the_others() {
        let mut phase = Phase { file: FileState::Fresh, ..phase(Work::Write, Pattern::Sequential) };
        phase.bound.bytes_max = 2 * AREA.segment_len;
        let shared = SharedProgress::new(AREA);
        let written = |thread| {
            let mut load = PhaseLoad::new(&phase, AREA, &shared, Time::ZERO, thread).unwrap();
            std::iter::from_fn(|| load.next(Time::ZERO)).count()
        };
        assert_eq!((written(0), written(0), written(1)), (256, 0, 256));
        assert_eq!(shared.written(), phase.bound.bytes_max);
    }

    #[test]
    fn misaligned_requests_stay_within_the_segment() {
        let shifted = Phase { misalignment: 512, ..phase(Work::Read, Pattern::Random) };
        for request in requests(&shifted, 1000) {
            assert_eq!(request.offset % 4096, 512);
            assert!(request.offset + 4096 <= AREA.segment_len && request.segment < 2);
        }
    }

    #[test]
    fn random_requests_keep_to_the_places_and_streams_do_not() {
        let places = Places { count: 4, apart: 1 << 30, len: 1 << 20 };
        let area = Area { segments: 1, segment_len: 1 << 20, places: Some(places) };
        let offsets = |pattern| {
            let (phase, shared) = (phase(Work::Read, pattern), SharedProgress::new(area));
            let mut load = PhaseLoad::new(&phase, area, &shared, Time::ZERO, 0).unwrap();
            (0..1000).map(|_| load.next(Time::ZERO).unwrap().offset).collect::<Vec<_>>()
        };
        let random = offsets(Pattern::Random);
        assert!(random.iter().all(|offset| offset % places.apart + 4096 <= places.len));
        let reached: HashSet<u64> = random.iter().map(|offset| offset / places.apart).collect();
        assert_eq!(reached.len(), 4);
        assert!(offsets(Pattern::Sequential).iter().all(|offset| offset + 4096 <= 1 << 20));
    }

    #[test]
    fn a_flush_follows_each_write_and_alone_is_recorded() {
        let phase = phase(Work::Flush, Pattern::Random);
        let shared = SharedProgress::new(AREA);
        let mut load = PhaseLoad::new(&phase, AREA, &shared, Time::ZERO, 0).unwrap();
        let at = Time::from_nanos;
        assert_eq!(load.next(at(0)).unwrap().op, Op::Write);
        load.completed(at(1000), at(0), Op::Write);
        assert_eq!(load.next(at(1000)).unwrap().op, Op::Flush);
        load.completed(at(5000), at(1000), Op::Flush);
        let samples = load.recorder.samples(at(10_000_000), shared.written(), 0.0);
        assert_eq!((samples.requests, samples.latency.max), (1, 4.0));
    }

    #[test]
    fn a_phase_that_ends_with_another_goes_on_until_then() {
        let phase = phase(Work::Read, Pattern::Random);
        let shared = SharedProgress::until_ended(AREA);
        let mut load = PhaseLoad::new(&phase, AREA, &shared, Time::ZERO, 0).unwrap();
        assert!(load.next(Time::from_nanos(60_000_000_000)).is_some());
        shared.end();
        assert!(load.next(Time::ZERO).is_none());
    }

    #[test]
    fn a_slow_disk_gets_more_time_but_not_for_ever() {
        let phase = phase(Work::Read, Pattern::Random);
        let shared = SharedProgress::new(AREA);
        let mut load = PhaseLoad::new(&phase, AREA, &shared, Time::ZERO, 0).unwrap();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert!(load.next(at(1500)).is_some());
        assert!(load.next(at(3000)).is_none());
        (0..10).for_each(|_| load.completed(at(900), at(0), Op::Read));
        assert!(load.next(at(1500)).is_none());
    }
}
