//! Whose turn it is in a disk that takes discards in batches.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use forebay_core::{CostCurve, DiskRates, Op, Time};

use super::servers::Due;
use super::{Command, Completion, SimDisk};

/// How a disk takes the discards that it was sent: in batches, one after the other, between which
/// the other commands have a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// Discards of a batch at most; at least 1.
    pub discards: u64,
    /// Bytes of a batch at most; a discard of more is a batch.
    pub bytes: u64,
    /// Other commands that have a turn before the next batch; at least 1.
    pub turns: u64,
}

/// A disk behind an arbiter. While a batch of discards is under way, other commands wait.
pub(crate) struct Arbiter<D> {
    disk: D,
    batches: Batches,
    /// Discards that wait for a batch.
    discards: VecDeque<(u64, Command)>,
    /// The discards of the batch that is under way.
    batch: HashSet<u64>,
    /// What waits for its end.
    others: VecDeque<(u64, Command)>,
    done: Due,
}

impl<D: SimDisk> Arbiter<D> {
    pub(crate) fn new(disk: D, batches: Batches) -> Self {
        Self {
            disk,
            batches,
            discards: VecDeque::new(),
            batch: HashSet::new(),
            others: VecDeque::new(),
            done: Due::default(),
        }
    }

    /// Does all that happens until `now`, in order.
    fn advance(&mut self, now: Time) {
        while let Some(next) = self.disk.next_event().filter(|&next| next <= now) {
            let was_busy = !self.batch.is_empty();
            while let Some(completion) = self.disk.poll_completion(next) {
                self.batch.remove(&completion.id);
                self.done.push(completion);
            }
            if was_busy && self.batch.is_empty() {
                self.turn(next);
            }
        }
    }

    /// A batch has ended: others have their turn, and then comes the next.
    fn turn(&mut self, now: Time) {
        let turns = if self.discards.is_empty() { u64::MAX } else { self.batches.turns };
        let turns = usize::try_from(turns).unwrap_or(usize::MAX).min(self.others.len());
        for (id, command) in self.others.drain(..turns) {
            self.disk.submit(now, id, command);
        }
        let (mut discards, mut bytes) = (0, 0_u64);
        while let Some(&(id, command)) = self.discards.front() {
            bytes = bytes.saturating_add(command.len);
            let fits = discards < self.batches.discards && bytes <= self.batches.bytes;
            if discards > 0 && !fits {
                return;
            }
            discards += 1;
            self.discards.pop_front();
            self.batch.insert(id);
            self.disk.submit(now, id, command);
        }
    }
}

impl<D: SimDisk> SimDisk for Arbiter<D> {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.advance(now);
        match command.op {
            Op::Discard => {
                self.discards.push_back((id, command));
                if self.batch.is_empty() {
                    self.turn(now);
                }
            }
            _ if self.batch.is_empty() => self.disk.submit(now, id, command),
            _ => self.others.push_back((id, command)),
        }
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.done.pop(now)
    }

    fn next_event(&self) -> Option<Time> {
        [self.disk.next_event(), self.done.next()].into_iter().flatten().min()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn discards(&self) -> Option<CostCurve> {
        self.disk.discards()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}
