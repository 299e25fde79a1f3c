//! The disk time of flushes and discards: what they take from reads that keep the disk busy.
//!
//! How long one takes says little. A disk may serve others at the same time, and a file system may
//! answer before the disk has begun. But reads that are not done were kept from the disk.

use serde::Serialize;

use super::Figure;
use crate::phase::{Purpose, Work};
use crate::run::{MeasuredPhase, Run};
use crate::samples::Samples;
use crate::statistics::mean;

/// Fewer flushes or discards of one size say nothing.
pub(crate) const DISCARDS_MIN: u64 = 5;
/// Reads without them differ by no more than this part where they are alike.
const ALIKE: f64 = 0.05;

/// What discards cost, in microseconds of disk time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DiscardCost {
    /// For each command.
    pub command_us: f64,
    /// For each GiB, on top of that.
    pub gib_us: f64,
}

/// The disk time of a flush in microseconds, without that of the small write before it.
pub(super) fn flush(run: &Run, write_iops: Figure) -> Option<f64> {
    let flushes = displaced_reads(run, Work::Flush).next()?;
    Some((flushes.us - 1e6 / write_iops.value.max(1.0)).max(0.0))
}

/// The straight line through what small and large discards take. Those of files reach the disk
/// with a flush, whose time is not theirs. `None` where reads alone differed by more than discards took.
pub(super) fn discard(run: &Run, flush_us: Option<f64>) -> Option<DiscardCost> {
    let flushed = flush_us.filter(|_| run.target.files).unwrap_or(0.0);
    let mut points = displaced_reads(run, Work::Discard);
    let (small, large) = (points.next()?, points.next()?);
    let per_byte = ((large.us - small.us) / (large.bytes - small.bytes)).max(0.0);
    let sure = [&small, &large].into_iter().all(|displaced| displaced.us >= displaced.unsure_us);
    sure.then_some(DiscardCost {
        command_us: (small.us - per_byte * small.bytes - flushed).max(0.0),
        gib_us: per_byte * f64::from(1 << 30),
    })
}

/// The reads that one request took.
struct DisplacedReads {
    /// Bytes of the request.
    bytes: f64,
    /// Microseconds of reads.
    us: f64,
    /// By so much reads differed without it, if that is more than a little.
    unsure_us: f64,
}

/// The reads that one request of `work` took, by its size.
fn displaced_reads(run: &Run, work: Work) -> impl Iterator<Item = DisplacedReads> {
    let of_reads = |measured: &MeasuredPhase| {
        let is_read =
            measured.purpose == Purpose::Interference && measured.phase.work == Work::Read;
        is_read.then(|| mean(&measured.samples.rates())).filter(|&rate| rate > 0.0)
    };
    run.phases.windows(4).filter_map(move |phases| {
        let [before, during, interfering, after] = phases else { return None };
        if interfering.purpose != Purpose::Interference || interfering.phase.work != work {
            return None;
        }
        let (before, after) = (of_reads(before)?, of_reads(after)?);
        let alone = f64::midpoint(before, after);
        let unsure = (before - after).abs() / alone;
        let part = (1.0 - of_reads(during)? / alone).max(0.0);
        let Samples { requests, interval, ref counts, .. } = interfering.samples;
        // whole intervals, in which alone requests are counted
        let each_us = interval * counts.len() as f64 * 1e6 / requests as f64;
        (requests >= DISCARDS_MIN).then_some(DisplacedReads {
            bytes: interfering.phase.request_bytes.into(),
            us: part * each_us,
            unsure_us: if unsure > ALIKE { unsure * each_us } else { 0.0 },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::phase::Phase;
    use crate::target::TargetInfo;

    fn measured(work: Work, request_bytes: u32, requests: u64) -> MeasuredPhase {
        MeasuredPhase {
            purpose: Purpose::Interference,
            phase: Phase { work, request_bytes, ..Phase::probe() },
            samples: Samples {
                seconds: 2.0,
                requests,
                counts: vec![requests / 2; 2],
                ..Samples::none()
            },
        }
    }

    /// In two seconds: of 1000 reads alone, each of 100 flushes with its write takes 10 ms, small
    /// discards 12 ms and large ones 16 ms.
    fn run(files: bool) -> Run {
        let mut run = Run::new(&Budget::QUICK, TargetInfo { files, ..TargetInfo::default() });
        let reads = |count| measured(Work::Read, 4096, count);
        run.phases.push(reads(1000));
        for (work, bytes, during) in [
            (Work::Flush, 4096, 500),
            (Work::Discard, 64 << 10, 400),
            (Work::Discard, 16 << 20, 200),
        ] {
            run.phases.extend([reads(during), measured(work, bytes, 100), reads(1000)]);
        }
        run
    }

    const WRITES: Figure = Figure { value: 1000.0, margin: 0.0, first: 0.0, request_bytes: 4096 };

    #[test]
    fn the_write_before_a_flush_does_not_count() {
        assert_eq!(flush(&run(true), WRITES), Some(9000.0));
        assert_eq!(flush(&run(true), Figure { value: 50.0, ..WRITES }), Some(0.0));
    }

    #[test]
    fn the_flush_behind_a_discard_of_a_file_does_not_count() {
        let per_byte = 4000.0 / f64::from((16 << 20) - (64 << 10));
        let alone = 12_000.0 - per_byte * f64::from(64 << 10);
        for (files, command_us) in [(false, alone), (true, alone - 9000.0)] {
            let run = run(files);
            let found = discard(&run, flush(&run, WRITES)).unwrap();
            assert!((found.command_us - command_us).abs() < 1.0, "{files}: {found:?}");
            assert!((found.gib_us / per_byte / f64::from(1 << 30) - 1.0).abs() < 0.001);
        }
    }

    #[test]
    fn where_reads_alone_differ_by_more_than_discards_take_nothing_is_said() {
        let mut run = run(true);
        let last = run.phases.last_mut().unwrap();
        last.samples.counts = vec![100; 2];
        assert_eq!(discard(&run, None), None);
    }

    #[test]
    fn without_reads_or_discards_nothing_is_said() {
        let mut none = run(true);
        none.phases.retain(|measured| measured.phase.work == Work::Read);
        assert_eq!((flush(&none, WRITES), discard(&none, None)), (None, None));
        let mut silent = run(true);
        silent.phases.iter_mut().for_each(|measured| measured.samples.requests = 0);
        assert_eq!((flush(&silent, WRITES), discard(&silent, None)), (None, None));
    }
}
