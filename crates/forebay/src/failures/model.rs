//! Tests of [`FailedRanges`] against a model of memory and of a disk that sometimes fails.

use std::io;
use std::ops::Range;

use proptest::prelude::*;

use super::error::Cause;
use super::failed_ranges::{FailedRanges, Outcome, Scope};
use super::ranges::Ranges;
use crate::page_cache::page_size;

const UNITS: usize = 32;
const UNITS_PER_PAGE: usize = 4;

/// Memory and the disk, in units of a quarter of a page.
#[derive(Default)]
struct Kernel {
    /// The dirty pages.
    dirty: [bool; UNITS / UNITS_PER_PAGE],
    /// The units in which the disk differs from memory.
    differs: [bool; UNITS],
    is_bad: bool,
    /// An error that the next call returns.
    error: bool,
}

impl Kernel {
    fn write(&mut self, units: Range<usize>) {
        units.for_each(|unit| {
            self.dirty[unit / UNITS_PER_PAGE] = true;
            self.differs[unit] = true;
        });
    }

    fn write_back(&mut self, units: Range<usize>) {
        let pages = units.start / UNITS_PER_PAGE..units.end.div_ceil(UNITS_PER_PAGE);
        for page in pages {
            if std::mem::take(&mut self.dirty[page]) {
                let units = page * UNITS_PER_PAGE..(page + 1) * UNITS_PER_PAGE;
                if self.is_bad {
                    self.error = true;
                } else {
                    self.differs[units].fill(false);
                }
            }
        }
    }
}

/// A write in progress: it reads the number of errors, changes memory, and is recorded.
struct Writing {
    units: Range<usize>,
    errors: u64,
    is_made: bool,
}

/// A call in progress: it begins, writes back, may get an error, and is recorded.
struct Calling {
    number: u64,
    units: Range<usize>,
    is_made: bool,
    result: Option<bool>,
    /// For a flush, the units that were written before it began.
    flush: Option<[bool; UNITS]>,
}

/// A flush that is about to be answered.
struct Flushed {
    until: u64,
    covers: [bool; UNITS],
}

#[derive(Default)]
struct Model {
    kernel: Kernel,
    record: FailedRanges,
    writing: Vec<Writing>,
    calling: Vec<Calling>,
    flushed: Vec<Flushed>,
    /// The units that were written and that no write is changing.
    written: [bool; UNITS],
}

fn bytes(units: &Range<usize>) -> Range<u64> {
    let unit = page_size() / UNITS_PER_PAGE as u64;
    units.start as u64 * unit..units.end as u64 * unit
}

fn range(at: u8, len: u8) -> Range<usize> {
    let start = usize::from(at) % UNITS;
    start..(start + 1 + usize::from(len) % 9).min(UNITS)
}

impl Model {
    fn step(&mut self, (what, at, len): (u8, u8, u8)) {
        match what {
            0 => self.writing.push(Writing {
                units: range(at, len),
                errors: self.record.errors(),
                is_made: false,
            }),
            1..=3 => self.go_on_writing(at.into()),
            4 => self.begin(Scope::Part(bytes(&range(at, len))), range(at, len), false),
            5 => self.begin(Scope::Flush, 0..UNITS, true),
            6..=9 => self.go_on_calling(at.into()),
            // Write-back by the kernel.
            10 => self.kernel.write_back(range(at, len)),
            _ => self.kernel.is_bad = at.is_multiple_of(4),
        }
    }

    fn go_on_writing(&mut self, at: usize) {
        let count = self.writing.len();
        let Some(writing) = self.writing.get_mut(at % count.max(1)) else { return };
        if !writing.is_made {
            writing.is_made = true;
            self.kernel.write(writing.units.clone());
            self.written[writing.units.clone()].fill(false);
            // Flushes that began before do not cover this write.
            for flush in self.calling.iter_mut().filter_map(|call| call.flush.as_mut()) {
                flush[writing.units.clone()].fill(false);
            }
            for flush in &mut self.flushed {
                flush.covers[writing.units.clone()].fill(false);
            }
            return;
        }
        let writing = self.writing.swap_remove(at % count);
        self.record.wrote(&bytes(&writing.units), writing.errors);
        let is_alone = |unit: &usize| {
            !self.writing.iter().any(|other| other.is_made && other.units.contains(unit))
        };
        for unit in writing.units.clone().filter(is_alone) {
            self.written[unit] = true;
        }
    }

    fn begin(&mut self, scope: Scope, units: Range<usize>, is_flush: bool) {
        let number = self.record.begin(scope);
        let flush = is_flush.then_some(self.written);
        self.calling.push(Calling { number, units, is_made: false, result: None, flush });
    }

    fn go_on_calling(&mut self, at: usize) {
        let count = self.calling.len();
        let Some(call) = self.calling.get_mut(at % count.max(1)) else { return };
        if !call.is_made {
            call.is_made = true;
            self.kernel.write_back(call.units.clone());
        } else if call.result.is_none() {
            call.result = Some(!std::mem::take(&mut self.kernel.error));
        } else {
            let call = self.calling.swap_remove(at % count);
            let is_good = call.result == Some(true);
            let error = io::Error::from_raw_os_error(libc::EIO);
            let outcome = if is_good { Outcome::Done } else { Outcome::Failed(Cause::of(&error)) };
            let until = self.record.end(call.number, outcome);
            if let (Some(covers), true) = (call.flush, is_good) {
                self.flushed.push(Flushed { until, covers });
            }
        }
        self.answer();
    }

    /// Answers the flushes that need not wait any more. A successful one must have kept its
    /// guarantee.
    fn answer(&mut self) {
        let is_settled = |flush: &Flushed| self.record.is_settled(flush.until);
        let settled: Vec<_> = self
            .flushed
            .iter()
            .filter(|flush| is_settled(flush))
            .map(|flush| flush.covers)
            .collect();
        self.flushed.retain(|flush| !self.record.is_settled(flush.until));
        for covers in settled {
            if self.record.failure(u64::MAX).is_none() {
                let lost = |unit: &usize| covers[*unit] && self.kernel.differs[*unit];
                assert_eq!((0..UNITS).find(lost), None, "acknowledged, and not on the disk");
            }
        }
    }

    fn finish(&mut self) {
        while !self.writing.is_empty() {
            self.go_on_writing(0);
        }
        while !self.calling.is_empty() {
            self.go_on_calling(0);
        }
        assert!(self.flushed.is_empty());
        self.kernel.is_bad = false;
    }

    fn flush(&mut self) -> Option<Range<u64>> {
        self.begin(Scope::Flush, 0..UNITS, true);
        self.finish();
        self.record.failure(bytes(&(0..UNITS)).end).map(|(range, _)| range)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_flush_acknowledges_what_is_on_the_disk_only_and_rewriting_ends_a_failure(
        steps in prop::collection::vec((0u8..12, any::<u8>(), any::<u8>()), 1..120),
    ) {
        let mut model = Model::default();
        steps.into_iter().for_each(|step| model.step(step));
        model.finish();
        model.flush();
        // From here on the disk does not fail, and all errors were reported.
        for _ in 0..UNITS {
            let Some(failed) = model.flush() else { break };
            let again = model.flush();
            prop_assert_eq!(Some(&failed), again.as_ref(), "it is failed until it is rewritten");
            let unit = page_size() / UNITS_PER_PAGE as u64;
            let units = (failed.start / unit) as usize..failed.end.div_ceil(unit) as usize;
            let errors = model.record.errors();
            model.writing.push(Writing { units, errors, is_made: false });
            model.finish();
        }
        prop_assert_eq!(model.flush(), None);
        prop_assert!(!model.kernel.differs.contains(&true));
    }

    #[test]
    fn without_an_error_nothing_is_failed(
        steps in prop::collection::vec((0u8..11, any::<u8>(), any::<u8>()), 1..120),
    ) {
        let mut model = Model::default();
        steps.into_iter().for_each(|step| model.step(step));
        model.finish();
        prop_assert_eq!(model.flush(), None);
    }
}

fn error() -> Outcome {
    Outcome::Failed(Cause::of(&io::Error::from_raw_os_error(libc::EIO)))
}

fn failed(record: &FailedRanges) -> Vec<(u64, u64)> {
    record.failed().iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn an_error_of_a_part_fails_what_is_on_its_way_and_not_what_was_written_back() {
    let mut record = FailedRanges::default();
    [0..10, 20..30, 40..50].iter().for_each(|range| record.wrote(range, 0));
    let done = record.begin(Scope::Part(0..16));
    record.end(done, Outcome::Done);
    let part = record.begin(Scope::Part(16..32));
    record.end(part, error());
    assert_eq!(failed(&record), [(20, 30), (40, 50)]);
    let flush = record.begin(Scope::Flush);
    record.end(flush, error());
    assert_eq!(failed(&record), [(0, 10), (20, 30), (40, 50)], "and of a flush all that it covers");
}

#[test]
fn of_two_calls_that_fail_together_one_is_told_and_neither_counts() {
    let mut record = FailedRanges::default();
    [0..10, 20..30].iter().for_each(|range| record.wrote(range, 0));
    let [reported, other] = [0..16, 16..32].map(|range| record.begin(Scope::Part(range)));
    let until = record.end(other, Outcome::Done);
    assert!(!record.is_settled(until));
    record.end(reported, error());
    assert!(record.is_settled(until));
    assert_eq!(failed(&record), [(0, 10), (20, 30)]);
}

#[test]
fn a_half_that_is_rewritten_leaves_the_other_failed() {
    let mut record = FailedRanges::default();
    record.wrote(&(0..100), 0);
    let flush = record.begin(Scope::Flush);
    record.end(flush, error());
    let errors = record.errors();
    record.wrote(&(0..50), errors);
    assert_eq!(failed(&record), [(0, 100)], "it is to be written back first");
    let part = record.begin(Scope::Part(0..4096));
    record.end(part, Outcome::Done);
    assert_eq!(failed(&record), [(50, 100)]);
    assert_eq!(record.failure(70).unwrap().0, 50..70);
    assert!(record.failure(50).is_none(), "truncated");
    assert!(record.failure(u64::MAX).is_none());
}

#[test]
fn a_write_under_way_at_an_error_is_failed() {
    let mut record = FailedRanges::default();
    let flush = record.begin(Scope::Flush);
    record.end(flush, error());
    assert_eq!(failed(&record), [(0, i64::MAX as u64)], "nobody knows what was written");
    assert!(record.failure(0).is_none());
    record.wrote(&(10..20), 0);
    assert_eq!(failed(&record), [(10, 20)]);
}

#[test]
fn of_pages_that_were_seen_dirty_those_of_writers_count_by_their_bytes() {
    let (mut record, page) = (FailedRanges::default(), page_size());
    record.wrote(&(10..20), 0);
    let mut pages = Ranges::default();
    pages.insert(0..2 * page);
    record.saw(&pages);
    let flush = record.begin(Scope::Flush);
    record.end(flush, error());
    assert_eq!(failed(&record), [(10, 20), (page, 2 * page)]);
}

#[test]
fn so_many_ranges_become_fewer_and_none_is_lost() {
    let mut record = FailedRanges::default();
    for n in 0..5_000u64 {
        record.wrote(&(n * 10..n * 10 + 5), 0);
        let part = record.begin(Scope::Part(n * 10..n * 10 + 5));
        record.end(part, Outcome::Done);
    }
    let flush = record.begin(Scope::Flush);
    record.end(flush, error());
    assert!(record.failed().count() <= 1024);
    for n in 0..5_000u64 {
        assert_eq!(record.failed().within(&(n * 10..n * 10 + 5)).total(), 5);
    }
    let errors = record.errors();
    while let Some((range, _)) = record.failure(u64::MAX) {
        record.wrote(&range, errors);
        let flush = record.begin(Scope::Flush);
        record.end(flush, Outcome::Done);
    }
}
