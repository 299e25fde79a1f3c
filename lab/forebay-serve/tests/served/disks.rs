//! Simulated disks that do what a test says.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use forebay_core::{DiskRates, Op, Time};
use forebay_sim::disk::{Command, Completion, SimDisk, Status};

/// Answers at once; fails in one range, and hangs in another until a flush.
#[derive(Default)]
pub(crate) struct Scripted {
    fails: Range<u64>,
    hangs: Range<u64>,
    held: Vec<u64>,
    finished: VecDeque<Completion>,
}

impl Scripted {
    pub(crate) fn failing(fails: Range<u64>) -> Self {
        Self { fails, ..Self::default() }
    }

    pub(crate) fn hanging(hangs: Range<u64>) -> Self {
        Self { hangs, ..Self::default() }
    }
}

impl SimDisk for Scripted {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        let failed = self.fails.contains(&command.offset) && command.op != Op::Flush;
        if command.op == Op::Flush {
            for id in self.held.drain(..) {
                self.finished.push_back(Completion { id, at: now, status: Status::Done });
            }
        } else if self.hangs.contains(&command.offset) {
            return self.held.push(id);
        }
        let status = if failed { Status::Failed } else { Status::Done };
        self.finished.push_back(Completion { id, at: now, status });
    }

    fn poll_completion(&mut self, _: Time) -> Option<Completion> {
        self.finished.pop_front()
    }

    fn next_event(&self) -> Option<Time> {
        self.finished.front().map(|finished| finished.at)
    }

    fn rates(&self) -> DiskRates {
        let most = u64::MAX;
        DiskRates { read_iops: most, write_iops: most, read_bandwidth: most, write_bandwidth: most }
    }

    fn base_latency(&self) -> Duration {
        Duration::ZERO
    }
}
