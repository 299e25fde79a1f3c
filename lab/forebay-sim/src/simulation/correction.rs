//! What the latency target made of each time slice of a run.

use forebay_core::{IoGroup, LoadStatus, Op, Time};
use forebay_load::recorder::Latencies;
use hdrhistogram::CreationError;

/// What is measured without a target.
const WITHOUT_TARGET: (Op, u32) = (Op::Read, 950);

/// What the scheduler did for its latency target in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// How it stood at the end of the slice.
    pub status: LoadStatus,
    /// The percentile that the target is about, in nanoseconds, of all commands of its kind that
    /// succeeded in the slice; of reads the 95th without a target, 0 if there were none.
    pub percentile_nanos: u64,
}

/// Fills the corrections of a trace.
#[derive(Clone, Debug)]
pub(super) struct Corrections {
    groups: Vec<IoGroup>,
    /// The operation and the percentile, in thousandths, that are measured.
    measured: (Op, u32),
    latencies: Latencies,
}

impl Corrections {
    pub(super) fn new(groups: Vec<IoGroup>) -> Result<Self, CreationError> {
        Ok(Self { groups, measured: WITHOUT_TARGET, latencies: Latencies::new()? })
    }

    pub(super) fn completed(&mut self, op: Op, disk_nanos: u64) {
        if op == self.measured.0 {
            self.latencies.record(disk_nanos);
        }
    }

    pub(super) fn end_slice(&mut self, now: Time) -> Correction {
        let quantile = f64::from(self.measured.1) / 1000.0;
        let known = self.latencies.count() > 0;
        let percentile_nanos = if known { self.latencies.quantile_ns(quantile) } else { 0 };
        self.latencies.clear();
        let status = LoadStatus::of(&self.groups, now);
        let target = status.target.map(|status| status.target);
        self.measured = target.map_or(WITHOUT_TARGET, |target| (target.op(), target.permille()));
        Correction { status, percentile_nanos }
    }
}
