//! The bytes of a file that are not on the disk because writing them back failed.
//!
//! The kernel reports an error of writeback for a file, not for a range, and once for each open
//! file description. So an error may belong to any byte that was on its way to the disk, and all of
//! these become failed. A failed byte stays failed until it was written again and written back
//! without an error.
//!
//! Two calls through one description may fail at once, and then only one of them gets the error. So
//! a successful call counts only when all calls that were running at its end have ended as well.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::error::Cause;
use super::ranges::Ranges;
use crate::page_cache::whole_pages;

/// The most ranges of one set. Beyond that, near ranges are joined. This bounds the memory for a
/// file.
const RANGES_MAX: usize = 1024;
/// The most ended calls that wait for the end of others. Beyond that, two of them are joined.
const SETTLING_MAX: usize = 64;
/// The largest length of a file, in bytes.
const LEN_MAX: u64 = i64::MAX as u64;

/// The failed ranges of one file, for all its writers.
#[derive(Debug, Default)]
pub(super) struct FailedRanges {
    failed: Ranges,
    /// The failed ranges that a writer wrote. Only a writer can clear them, by writing them again.
    of_writers: Ranges,
    /// The ranges that were not written back since they were written.
    unwritten: Dirt,
    /// The ranges that were written back, but not flushed since then.
    unflushed: Dirt,
    /// The calls that are running.
    running: BTreeMap<u64, Call>,
    /// The successful calls. They count unless a call that was running at their end fails.
    settling: VecDeque<Settling>,
    last: u64,
    /// The number of errors.
    errors: u64,
    cause: Option<Cause>,
}

/// Ranges with written bytes.
#[derive(Debug, Default)]
struct Dirt {
    /// The bytes that a writer wrote.
    exact: Ranges,
    /// The part of these bytes that had failed before.
    rewritten: Ranges,
    /// The pages that were seen dirty, of any writer.
    seen: Ranges,
}

/// The scope of a call.
#[derive(Debug)]
pub(super) enum Scope {
    Part(Range<u64>),
    /// The whole file, and the cache of the disk.
    Flush,
}

/// The result of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// Nothing was written back, and no error was seen.
    Nothing,
    Failed(Cause),
}

#[derive(Debug)]
struct Call {
    dirt: Dirt,
    is_flush: bool,
}

#[derive(Debug)]
struct Settling {
    call: Call,
    /// The first call that does not matter.
    until: u64,
}

impl FailedRanges {
    /// The number of errors. A writer reads it before a write.
    pub(super) const fn errors(&self) -> u64 {
        self.errors
    }

    /// Notes that a writer wrote a range. `errors_before` is [`Self::errors`] before the write. If
    /// there was an error since then, the range may have failed already.
    pub(super) fn wrote(&mut self, range: &Range<u64>, errors_before: u64) {
        if range.is_empty() {
            return;
        }
        if errors_before == self.errors {
            let rewritten = self.failed.within(range);
            self.unwritten.wrote(range, &rewritten);
        } else {
            self.fail_range(range.clone());
        }
    }

    /// Notes that pages were seen dirty.
    pub(super) fn saw(&mut self, pages: &Ranges) {
        self.unwritten.seen.extend(pages);
        self.unwritten.seen.join(RANGES_MAX);
    }

    /// Begins a call. Returns its number.
    pub(super) fn begin(&mut self, scope: Scope) -> u64 {
        self.last += 1;
        let call = match scope {
            Scope::Part(range) => Call { dirt: self.unwritten.take(&range), is_flush: false },
            Scope::Flush => {
                let mut dirt = std::mem::take(&mut self.unwritten);
                dirt.extend(std::mem::take(&mut self.unflushed));
                Call { dirt, is_flush: true }
            }
        };
        self.running.insert(self.last, call);
        self.last
    }

    /// Ends a call. Returns the first call that does not matter to it: see [`Self::is_settled`]. It
    /// has no effect on a call that has already ended.
    pub(super) fn end(&mut self, call: u64, outcome: Outcome) -> u64 {
        let until = self.last + 1;
        if let Some(call) = self.running.remove(&call) {
            match outcome {
                Outcome::Done => self.settling.push_back(Settling { call, until }),
                Outcome::Nothing => self.unwritten.extend(call.dirt),
                Outcome::Failed(cause) => self.fail(call, cause),
            }
        }
        self.settle();
        until
    }

    /// Whether all calls before this one have ended.
    pub(super) fn is_settled(&self, until: u64) -> bool {
        self.running.first_key_value().is_none_or(|(first, _)| *first >= until)
    }

    /// The first failed range of a file of `len` bytes, with the cause. Bytes beyond its end no
    /// longer count.
    pub(super) fn failure(&mut self, len: u64) -> Option<(Range<u64>, &Cause)> {
        self.failed.remove(&(len..u64::MAX));
        self.of_writers.remove(&(len..u64::MAX));
        self.failed.iter().next().zip(self.cause.as_ref())
    }

    #[cfg(test)]
    pub(super) const fn failed(&self) -> &Ranges {
        &self.failed
    }

    /// The failed ranges that no writer wrote.
    pub(super) fn failed_of_others(&self) -> Ranges {
        let mut failed = self.failed.clone();
        failed.subtract(&self.of_writers);
        failed
    }

    /// Clears ranges that others have written again and that were written back, unless there was an
    /// error after the first `errors`. Ranges of writers stay failed.
    pub(super) fn clear(&mut self, ranges: &Ranges, errors: u64) {
        if errors == self.errors {
            let mut ranges = ranges.clone();
            ranges.subtract(&self.of_writers);
            self.failed.subtract(&ranges);
        }
    }

    /// Whether it has to be kept for a file without writers.
    pub(super) fn is_needed(&self) -> bool {
        !(self.failed.is_empty() && self.unwritten.is_empty())
    }

    pub(super) fn is_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Marks a range that a writer wrote as failed.
    fn fail_range(&mut self, range: Range<u64>) {
        insert(&mut self.of_writers, range.clone());
        insert(&mut self.failed, range);
    }

    fn fail(&mut self, call: Call, cause: Cause) {
        self.errors += 1;
        self.cause = Some(cause);
        let mut dirt = call.dirt;
        dirt.extend(std::mem::take(&mut self.unwritten));
        if call.is_flush {
            dirt.extend(std::mem::take(&mut self.unflushed));
        }
        let others = self.settling.iter_mut().map(|settling| &mut settling.call);
        for call in others.chain(self.running.values_mut()) {
            dirt.extend(std::mem::take(&mut call.dirt));
        }
        // In pages that a writer wrote, the exact bytes are known.
        for range in dirt.exact.iter() {
            dirt.seen.remove(&whole_pages(&range));
            self.fail_range(range);
        }
        dirt.seen.iter().for_each(|range| insert(&mut self.failed, range));
        if self.failed.is_empty() {
            // The written bytes are unknown, so any byte may have failed.
            insert(&mut self.failed, 0..LEN_MAX);
        }
    }

    /// Counts the successful calls at whose end only calls were running that have ended since.
    fn settle(&mut self) {
        while let Some(first) = self.settling.front()
            && self.is_settled(first.until)
            && let Some(Settling { call, .. }) = self.settling.pop_front()
        {
            self.failed.subtract(&call.dirt.rewritten);
            self.of_writers.subtract(&call.dirt.rewritten);
            if !call.is_flush {
                let rewritten = Ranges::default();
                self.unflushed.extend(Dirt { rewritten, ..call.dirt });
            }
        }
        if self.settling.len() > SETTLING_MAX
            && let Some(last) = self.settling.pop_back()
            && let Some(before) = self.settling.back_mut()
        {
            before.until = last.until;
            before.call.is_flush &= last.call.is_flush;
            before.call.dirt.extend(last.call.dirt);
        }
    }
}

impl Dirt {
    fn wrote(&mut self, range: &Range<u64>, rewritten: &Ranges) {
        insert(&mut self.exact, range.clone());
        // Ranges beyond the maximum have to be written once more.
        for range in rewritten.iter().take(RANGES_MAX.saturating_sub(self.rewritten.count())) {
            self.rewritten.insert(range);
        }
    }

    fn take(&mut self, range: &Range<u64>) -> Self {
        Self {
            exact: self.exact.remove(range),
            rewritten: self.rewritten.remove(range),
            seen: self.seen.remove(range),
        }
    }

    fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.exact.extend(&other.exact);
        self.exact.join(RANGES_MAX);
        self.seen.extend(&other.seen);
        self.seen.join(RANGES_MAX);
        for range in other.rewritten.iter() {
            if self.rewritten.count() < RANGES_MAX {
                self.rewritten.insert(range);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.seen.is_empty()
    }
}

/// Adds a range to a set, which keeps at most [`RANGES_MAX`] ranges.
fn insert(ranges: &mut Ranges, range: Range<u64>) {
    ranges.insert(range);
    if ranges.count() > RANGES_MAX {
        ranges.join(RANGES_MAX / 2);
    }
}
