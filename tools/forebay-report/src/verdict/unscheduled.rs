//! Unscheduled I/O: what reaches the disk without a permit.

use super::{DiskFigures, Finding, FindingKind};

/// A part of unscheduled I/O that is worth a word,
const UNSCHEDULED_PART: f64 = 0.1;
/// and bytes per second.
const UNSCHEDULED_RATE: f64 = 1e6;
/// It is the process's own if this part of it is.
const OWN_PART: f64 = 0.5;

pub(super) fn writes(figures: &DiskFigures) -> Option<Finding> {
    let DiskFigures { written, written_unscheduled, written_unscheduled_own, .. } = *figures;
    let past = Past { all: written, past: written_unscheduled, own: written_unscheduled_own };
    let what = past.what(figures.seconds, "written")?;
    let remedy = match past.is_own() {
        Some(false) => {
            "Other processes write to this disk, or file systems their journals: find them \
             (`pidstat -d 1`), and move or limit them"
        }
        Some(true) => {
            "The cause is writeback of this process's buffered writes: write with direct I/O, or \
             through `class.buffered_writer`, or flush with `class.sync_data`"
        }
        None => {
            "The cause is writeback of buffered writes, or another process: write with direct \
             I/O, or through `class.buffered_writer`, or flush with `class.sync_data`"
        }
    };
    Some(Finding::new(FindingKind::UnscheduledWrites, what, remedy))
}

pub(super) fn reads(figures: &DiskFigures) -> Option<Finding> {
    let DiskFigures { read, read_unscheduled, read_unscheduled_own, .. } = *figures;
    let past = Past { all: read, past: read_unscheduled, own: read_unscheduled_own };
    let what = past.what(figures.seconds, "read")?;
    let remedy = match past.is_own() {
        Some(false) => {
            "Other processes read from this disk: find them (`pidstat -d 1`), and move or limit \
             them"
        }
        Some(true) => {
            "The causes are read-ahead and mapped files of this process: read with direct I/O, or \
             through `class.read_at`"
        }
        None => {
            "Possible causes are read-ahead, mapped files and other processes: read with direct \
             I/O, or through `class.read_at`"
        }
    };
    Some(Finding::new(FindingKind::UnscheduledReads, what, remedy))
}

/// Bytes of one direction: all, the unscheduled ones, and of these the process's own.
struct Past {
    all: u64,
    past: u64,
    own: Option<u64>,
}

impl Past {
    fn is_own(&self) -> Option<bool> {
        self.own.map(|own| own as f64 >= self.past as f64 * OWN_PART)
    }

    /// How much it was, where that is worth a word.
    fn what(&self, seconds: f64, verb: &str) -> Option<String> {
        let (all, past) = (self.all as f64, self.past as f64);
        let is_much = past > all * UNSCHEDULED_PART && past > UNSCHEDULED_RATE * seconds;
        is_much.then(|| {
            let percent = past / all.max(1.0) * 100.0;
            let rate = past / 1e6 / seconds;
            format!("{percent:.0} % of the bytes {verb} were unscheduled, {rate:.0} MB/s")
        })
    }
}
